# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sizes as text."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.sizes import human


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 bytes"), (2048, "2.0 KiB"), (3 << 19, "1.5 MiB"), (140 << 30, "140.0 GiB")]
)
def test_a_size_has_a_fitting_unit(size: int, text: str) -> None:
    assert human(size) == text
