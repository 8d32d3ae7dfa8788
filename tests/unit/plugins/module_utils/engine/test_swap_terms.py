# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The terms of a swap."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.swap_terms import Terms


def test_terms_come_back_as_they_were_written() -> None:
    terms = Terms(drain_seconds=70, error_share=0.1, force=True)
    assert Terms.from_dict(terms.to_dict()) == terms
    assert Terms.from_dict({}) == Terms()


def test_numbers_get_the_type_of_their_field() -> None:
    """Ansible's templates turn a number into a text, and a share such as 1.0 into a whole number."""
    found = Terms.from_dict({"drain_seconds": "70", "speed_bound": 1, "force": True})
    assert found == Terms(drain_seconds=70, speed_bound=1.0, force=True)
    assert isinstance(found.drain_seconds, int) and isinstance(found.speed_bound, float)


def test_keys_of_another_version_are_left_out() -> None:
    assert Terms.from_dict({"watch_seconds": 5, "patience": 3}) == Terms(watch_seconds=5)


@pytest.mark.parametrize("wrong", [{"drain_seconds": "soon"}, {"error_share": None}])
def test_a_value_that_is_no_number_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        Terms.from_dict(wrong)
