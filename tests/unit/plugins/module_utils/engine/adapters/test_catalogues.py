# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogues of the engines' flags."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.module_utils.engine.adapters import ENGINES, catalogues


def test_each_engine_has_a_catalogue_by_version() -> None:
    assert catalogues.CATALOGUES.keys() == ENGINES.keys()
    for name in ENGINES:
        newest = catalogues.choose(name=name)
        assert newest.flags and not newest.wanted
        assert catalogues.choose(newest.version, name).exact
