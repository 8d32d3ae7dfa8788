# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values as nvidia-smi writes them."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu import values


@pytest.mark.parametrize(
    "text", ["N/A", "[N/A]", "None", "[Not Supported]", "", None, " [Unknown Error] ", "[GPU is lost]", "ERR!"]
)
def test_words_that_mean_no_value_are_none(text: str | None) -> None:
    assert values.word(text) is None


def test_a_word_loses_only_the_space_around_it() -> None:
    assert values.word(" NVIDIA H100 80GB HBM3 ") == "NVIDIA H100 80GB HBM3"


@pytest.mark.parametrize(
    ("text", "unit", "number"),
    [
        ("81559 MiB", "MiB", 81559.0),
        ("115.04 W", "W", 115.04),
        ("-3 C", "C", -3.0),
        ("12", "", 12.0),
        ("12", "MiB", 12.0),
        ("79 GiB", "MiB", None),
        ("12 34", "MiB", None),
        ("N/A", "MiB", None),
        (None, "MiB", None),
        ("1" * 16, "", None),
    ],
)
def test_a_quantity_in_another_unit_is_unknown(text: str | None, unit: str, number: float | None) -> None:
    assert values.quantity(text, unit) == number
    assert values.whole(text, unit) == (None if number is None else round(number))


@pytest.mark.parametrize(
    ("text", "found"),
    [("580.105.08", "580.105.08"), ("13.0 (deprecated)", "13.0"), ("580", None), ("N/A", None), (None, None)],
)
def test_a_version_is_read_from_the_beginning_of_a_text(text: str | None, found: str | None) -> None:
    assert values.version(text) == found


@pytest.mark.parametrize(
    ("text", "found"), [("Enabled", "enabled"), ("[Disabled]", "disabled"), ("Default", None), (None, None)]
)
def test_a_mode_is_on_off_or_unknown(text: str | None, found: str | None) -> None:
    assert values.mode(text) == found


@pytest.mark.parametrize(("text", "found"), [("Yes", True), ("[No]", False), ("N/A", None), (None, None)])
def test_a_flag_is_yes_no_or_unknown(text: str | None, found: bool | None) -> None:
    assert values.flag(text) is found
