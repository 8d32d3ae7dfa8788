# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parameters of parts for images and sound."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.config.towers import towers

PIXTRAL = {
    "model_type": "pixtral",
    "hidden_size": 1024,
    "num_hidden_layers": 24,
    "intermediate_size": 4096,
    "hidden_act": "gelu",
}


def test_without_parts_for_images_and_sound_there_are_no_parameters() -> None:
    assert towers([], 4096) == 0


def test_the_parameters_of_a_published_part_for_images_are_computed() -> None:
    # Mistral Small 3.2: 0.8 GiB in bfloat16.
    assert (towers([PIXTRAL], 5120) or 0) * 2 / (1 << 30) == pytest.approx(0.8, abs=0.03)


def test_other_names_of_sizes_are_read() -> None:
    part = {"embed_dim": 64, "depth": 2, "mlp_ratio": 4}
    projector = 64 * 128 + 128 * 128
    assert towers([part], 128) == 2 * (4 * 64 * 64 + 2 * 64 * 256) + projector
    assert towers([part, part], 128) == 2 * (towers([part], 128) or 0)


def test_a_part_without_sizes_makes_the_result_unknown() -> None:
    assert towers([PIXTRAL, {"hidden_size": 64}], 5120) is None
    assert towers([PIXTRAL], None) is None
