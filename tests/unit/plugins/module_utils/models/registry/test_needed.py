# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The entries that an engine needs in addition to its own."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.needed import needed

MODELS = {
    "large": {"model": "/srv/large", "speculative-config": {"model": "small"}},
    "short": {"base": "large"},
    "small": {"base": "tiny"},
    "tiny": {"model": "/srv/tiny"},
    "legal": {"base": "large", "adapter": "/srv/legal"},
    "odd": None,
}


def test_an_entry_needs_its_bases_drafts_and_adapters() -> None:
    assert needed(MODELS, ["large"]) == {"large", "small", "tiny", "legal"}
    assert needed(MODELS, ["short"]) == {"short", "large", "small", "tiny"}
    assert needed(MODELS, ["tiny"]) == {"tiny"}
    assert needed(MODELS, ["gone"]) == set()
