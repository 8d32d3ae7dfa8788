# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A misfit as text and as plain values."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.misfit import Misfit


def test_a_misfit_reads_as_key_value_and_reason() -> None:
    assert str(Misfit("heads", "tensor-parallel-size", 3, "does not divide 64")) == (
        "tensor-parallel-size: 3: does not divide 64"
    )
    assert str(Misfit("dtype", "dtype", "fp16", "is unknown")) == "dtype: 'fp16': is unknown"
    # A misfit without a value shows only key and reason.
    assert str(Misfit("files", "directory", None, "is empty")) == "directory: is empty"


def test_a_misfit_has_plain_values() -> None:
    found = Misfit("gpus", "gpus", 1, "is too few", ({"gpus": 2},)).to_dict()
    assert found == {"check": "gpus", "key": "gpus", "value": 1, "message": "is too few", "fits": [{"gpus": 2}]}
    assert Misfit("gpus", "gpus", 1, "is too few").to_dict()["fits"] == []
