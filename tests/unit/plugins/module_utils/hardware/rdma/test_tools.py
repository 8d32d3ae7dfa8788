# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs for data about RDMA that sysfs lacks: their answers and errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma import tools


def saying(*outcomes: Outcome) -> tuple[Callable[[Sequence[str]], Outcome], list[list[str]]]:
    """A runner that returns these outcomes in order, and the list of its commands."""
    asked: list[list[str]] = []
    left = list(outcomes)

    def run(command: Sequence[str]) -> Outcome:
        asked.append(list(command))
        return left.pop(0)

    return run, asked


def test_a_program_that_is_left_out_is_not_run() -> None:
    run, asked = saying()
    for answer in (tools.rdma(None, run), tools.mtus(None, run), tools.addresses(None, run)):
        assert answer.status == tools.Status(None, None)
    assert asked == []


def test_the_addresses_of_each_network_device_are_read() -> None:
    devices = [
        {
            "ifname": "eth0",
            "addr_info": [{"local": "192.0.2.7", "prefixlen": 24}, {"prefixlen": 64}],
            "address": "02:00:00:00:00:01",
            "permaddr": "02:00:00:00:00:07",
            "min_mtu": 68,
            "max_mtu": 9978,
        },
        {"ifname": "lo", "addr_info": [], "address": "00:00:00:00:00:00", "max_mtu": 0},
    ]
    run, asked = saying(Outcome(0, json.dumps(devices)))
    found = tools.addresses("ip", run)
    assert (found.status.ok, found.by_netdev) == (True, {"eth0": ["192.0.2.7/24"], "lo": []})
    assert found.netdevs == {
        "eth0": tools.Netdev("02:00:00:00:00:07", 9978),
        "lo": tools.Netdev("00:00:00:00:00:00", 0),
    }
    assert asked == [["ip", "-j", "-d", "address"]]


@pytest.mark.parametrize("output", ["{", "[{}]", "[7]", "7"])
def test_an_answer_of_another_form_is_an_error(output: str) -> None:
    found = tools.addresses("ip", saying(Outcome(0, output))[0])
    assert found.status.error is not None
    assert (found.status.ok, found.status.error.kind, found.by_netdev) == (False, tools.MALFORMED, {})


@pytest.mark.parametrize(
    ("outcome", "kind", "words"),
    [
        (Outcome(None, failure="timeout", message="hung"), "timeout", "hung"),
        (Outcome(1, stderr="Failed to open NETLINK_RDMA socket"), tools.NO_RDMA_SUBSYSTEM, "exit status 1"),
        (Outcome(255, "No IB devices found\n"), tools.NO_DEVICES, "exit status 255: No IB devices found"),
        (Outcome(3), tools.FAILED, "exit status 3: without a message"),
    ],
)
def test_a_failed_program_has_an_error(outcome: Outcome, kind: str, words: str) -> None:
    for found in (tools.mtus("ibv_devinfo", saying(outcome)[0]), tools.addresses("ip", saying(outcome)[0])):
        assert found.status.ok is False
        assert found.status.error is not None
        assert (found.status.error.kind, words in found.status.error.message) == (kind, True)


def test_rdma_lists_devices_only_if_it_lists_links() -> None:
    run, asked = saying(Outcome(0, "[]"), Outcome(0, "[]"))
    assert tools.rdma("rdma", run) == tools.Rdma(tools.Status(True))
    assert asked == [["rdma", "-j", "link"], ["rdma", "-j", "dev"]]
    run, asked = saying(Outcome(1, "[]", "Failed to open NETLINK_RDMA socket"))
    assert tools.rdma("rdma", run).status.ok is False
    assert len(asked) == 1


def test_an_answer_of_rdma_in_another_form_is_an_error() -> None:
    found = tools.rdma("rdma", saying(Outcome(0, "{"))[0])
    assert found.status.error is not None
    assert (found.status.ok, found.status.error.kind) == (False, tools.MALFORMED)
