# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics as text."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.exposition import Samples


def test_families_are_in_the_order_of_their_declaration() -> None:
    samples = Samples({"a_total": "All of a.", "b": "How b is.", "c": "Never known."})
    samples.add("b", 1.5, name='x"\n\\')
    samples.add("b", True)
    samples.add("a_total", 2.0, gpu="0", node="n1")
    samples.add("c", None)
    assert samples.text() == (
        "# HELP a_total All of a.\n# TYPE a_total counter\n"
        'a_total{gpu="0",node="n1"} 2\n'
        "# HELP b How b is.\n# TYPE b gauge\n"
        'b{name="x\\"\\n\\\\"} 1.500\nb 1\n'
    )
    with pytest.raises(KeyError):
        samples.add("d", 1)


def test_without_samples_the_text_is_empty() -> None:
    assert Samples({"a": "A."}).text() == ""
