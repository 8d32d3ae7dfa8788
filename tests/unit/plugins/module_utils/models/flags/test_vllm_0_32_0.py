# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The oldest catalogue, with every flag of vLLM 0.32.0. tests/unit/tools/test_catalogue.py shows that `make catalogue`
has written it."""

from __future__ import annotations

from dataclasses import fields

from ansible_collections.baremetal.inference.plugins.module_utils.models.flags import vllm_0_32_0
from ansible_collections.baremetal.inference.plugins.module_utils.models.flags.catalogue import Flag


def test_the_oldest_catalogue_has_the_flags_that_the_engine_printed() -> None:
    flags = vllm_0_32_0.FLAGS
    assert (vllm_0_32_0.VERSION, len(flags)) == ("0.32.0", 315)
    assert flags["tensor-parallel-size"] == {"aliases": ["tp"], "type": "integer"}
    assert flags["enforce-eager"] == {"negatable": True, "type": "switch"}
    assert flags["disable-cascade-attn"]["deprecated"] == {"removed": "0.33.0"}


def test_the_catalogue_reads_every_fact_of_a_flag() -> None:
    known = {field.name for field in fields(Flag)} - {"name"}
    assert {key for facts in vllm_0_32_0.FLAGS.values() for key in facts} <= known
