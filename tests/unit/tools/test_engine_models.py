# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configurations that the engine is asked about."""

from __future__ import annotations

import engine_models


def test_values_that_equal_a_default_are_left_out_at_every_depth() -> None:
    config = {"a": 1, "b": 2, "part": {"c": 3, "d": 4, "inner": {"e": 5}}, "same": {"f": 6}, "list": [1]}
    defaults = {"a": 1, "b": 3, "part": {"c": 3, "d": 5, "inner": {"e": 5}}, "same": {"f": 6}, "list": [2]}
    assert engine_models.without(config, defaults) == {"b": 2, "part": {"d": 4}, "list": [1]}
    assert engine_models.without({"part": {"c": 3}}, {}) == {"part": {"c": 3}}
