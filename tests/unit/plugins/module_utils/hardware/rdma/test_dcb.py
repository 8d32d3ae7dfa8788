# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answers of `dcb`, in the forms of Debian 12 and 13."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma import dcb

PFC = {"pfc_cap": 8, "macsec_bypass": False, "delay": 7, "prio_pfc": [False, False, False, True, *[False] * 4]}
ETS = {
    "willing": False,
    "ets_cap": 8,
    "cbs": False,
    "tc_bw": [50, 0, 0, 50, 0, 0, 0, 0],
    "tc_tsa": ["ets", "strict", "strict", "ets", *["strict"] * 4],
    "prio_tc": [0, 0, 0, 3, 0, 0, 6, 0],
}
DEBIAN_12 = {"dscp_prio": [[48, 6], [26, 3]]}
DEBIAN_13 = {"dscp_prio": [[48, 6, " "], [26, 3, " "]]}
NO_DCB = Outcome(1, "", "Attribute read: Operation not supported")


def answering(**answers: Any) -> dcb.Run:
    """A `dcb` with answers for some subcommands; the driver does not support the others."""

    def run(command: Sequence[str]) -> Outcome:
        assert command[:2] == ["dcb", "-j"] and command[3:] == ["show", "dev", "ens1"]
        answer = answers.get(command[2], NO_DCB)
        return answer if isinstance(answer, Outcome) else Outcome(0, json.dumps(answer))

    return run


@pytest.mark.parametrize("app", [DEBIAN_12, DEBIAN_13])
def test_all_settings_of_dcb_are_read(app: dict[str, Any]) -> None:
    found = dcb.read("dcb", "ens1", answering(pfc=PFC, ets=ETS, app=app, dcbx={"host": True, "ieee": True}))
    ets = dcb.Ets(False, ETS["tc_bw"], ETS["tc_tsa"], ETS["prio_tc"])  # type: ignore[arg-type]
    assert found == dcb.Dcb([3], 7, ets, {26: 3, 48: 6}, ["host", "ieee"], [])


def test_a_network_device_without_dcb_has_no_settings() -> None:
    assert dcb.read("dcb", "ens1", answering()) is None
    assert dcb.read(None, "ens1", answering(pfc=PFC)) is None


def test_settings_that_the_driver_does_not_support_are_unknown() -> None:
    assert dcb.read("dcb", "ens1", answering(pfc=PFC, app={})) == dcb.Dcb([3], 7, None, {}, None, [])


def test_each_subcommand_that_fails_has_an_error() -> None:
    broken = Outcome(1, "", "No such device")
    hangs = Outcome(None, failure="timeout", message="dcb did not end within 10 s")
    found = dcb.read("dcb", "ens1", answering(pfc=broken, ets=hangs, app=Outcome(0, "{"), dcbx={"host": True}))
    assert found and (found.pfc, found.ets, found.dscp, found.modes) == (None, None, None, ["host"])
    assert len(found.errors) == 3
    assert "No such device" in found.errors[0] and "did not end" in found.errors[1] and "not JSON" in found.errors[2]


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=9)))
def test_json_of_any_shape_is_no_exception(value: Any) -> None:
    for answer in (value, dict.fromkeys(("prio_pfc", "delay", "tc_bw", "tc_tsa", "prio_tc", "dscp_prio"), value)):
        dcb.pfc(answer), dcb.ets(answer), dcb.dscp(answer), dcb.modes(answer)
