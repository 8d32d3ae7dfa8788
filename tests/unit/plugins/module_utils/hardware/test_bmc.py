# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The power of a machine, by a simulated Redfish service over HTTPS and by a fake of ipmitool."""

from __future__ import annotations

import http.client
import io
import json
import ssl
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.hardware import bmc

sys.path.insert(0, str(Path(__file__).parents[5] / "molecule/shared"))

from redfish import SYSTEM, Machine, serve

PASSWORD = "p:ss wörd 4711"


class Clock(bmc.Clock):
    """Time passes on this clock only by sleep()."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> float:
        return sum(self.slept)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def service(machine: Machine, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The service's address, and the authority of its certificate."""
    with serve(machine, PASSWORD, tmp_path) as where:
        yield where


def redfish(service: tuple[str, Path], password: str = PASSWORD, **more: Any) -> bmc.Redfish:
    context = ssl.create_default_context(cafile=service[1])
    return bmc.Redfish(service[0], "admin", password, context=context, **more)


def test_a_cycle_switches_the_power_off_and_waits(machine: Machine, service: tuple[str, Path]) -> None:
    clock = Clock()
    assert bmc.cycle(redfish(service), "cycle", 10, 60, clock) == "on"
    assert machine.orders == ["ForceOff", "On"]
    assert machine.state == "On"
    assert 10 in clock.slept


def test_a_broken_answer_does_not_leave_the_machine_off(
    machine: Machine, service: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, breaks = redfish(service), [http.client.IncompleteRead(b"{"), http.client.BadStatusLine("?")]
    answer = client.opener.open

    def broken(request: Any, **more: Any) -> Any:
        if machine.orders == ["ForceOff"] and breaks:
            raise breaks.pop()
        return answer(request, **more)

    monkeypatch.setattr(client.opener, "open", broken)
    bmc.cycle(client, "cycle", 10, 60, Clock())
    assert (machine.orders, machine.state, breaks) == (["ForceOff", "On"], "On", [])


@pytest.mark.parametrize(
    ("status", "answer", "words"),
    [
        (200, {"Members": None}, "has these systems: none; check the user's rights"),
        (200, {"Members": ["busy", {}, {"@odata.id": 7}]}, "has these systems: none; check the user's rights"),
        (500, {"error": "Unauthorized"}, r"answers 500: \{"),
        (500, ["busy"], r"answers 500: \["),
        (200, ["busy"], "does not answer with an object"),
    ],
)
def test_an_answer_in_another_form_is_an_error(
    service: tuple[str, Path], monkeypatch: pytest.MonkeyPatch, status: int, answer: object, words: str
) -> None:
    client = redfish(service)

    class Answer(io.BytesIO):
        pass

    def given(_request: Any, **_more: Any) -> Any:
        response = Answer(json.dumps(answer).encode())
        response.status = status  # type: ignore[attr-defined]
        return response

    monkeypatch.setattr(client.opener, "open", given)
    with pytest.raises(bmc.BmcError, match=words):
        client.state()


@pytest.mark.parametrize("address", ["bmc:x", "bmc:99999", "[fd00::5", "bmc/path", "user@bmc", ""])
def test_a_text_that_is_not_an_address_is_an_error(address: str) -> None:
    with pytest.raises(bmc.BmcError, match="is not an address"):
        bmc.Redfish(address, "admin", PASSWORD, context=ssl.create_default_context())
    with pytest.raises(bmc.BmcError, match="is not an address"):
        bmc.Ipmi(address, "admin", PASSWORD, run=lambda *_words, **_more: (0, "", ""))


def test_an_ipv6_address_needs_no_brackets() -> None:
    context = ssl.create_default_context()
    assert bmc.Redfish("fd00::5", "admin", PASSWORD, context=context).base == "https://[fd00::5]"
    assert bmc.Redfish("[fd00::5]:8443", "admin", PASSWORD, context=context).base == "https://[fd00::5]:8443"
    command = bmc.Ipmi("fd00::5", "admin", PASSWORD, run=lambda *_words, **_more: (0, "", "")).command
    assert command[command.index("-H") + 1] == "fd00::5" and command[command.index("-p") + 1] == "623"


def test_a_reset_is_one_order(machine: Machine, service: tuple[str, Path]) -> None:
    bmc.cycle(redfish(service), "reset", 10, 60, Clock())
    assert machine.orders == ["ForceRestart"]


@pytest.mark.parametrize("action", ["cycle", "reset"])
def test_a_machine_that_is_off_is_switched_on(machine: Machine, service: tuple[str, Path], action: str) -> None:
    machine.state = "Off"
    assert bmc.cycle(redfish(service), action, 10, 60, Clock()) == "off"
    assert machine.orders == ["On"]


def test_a_machine_that_stays_on_is_an_error(machine: Machine, service: tuple[str, Path]) -> None:
    machine.stuck = True
    with pytest.raises(bmc.BmcError, match="the power is 'on' after 6 s, and should be 'off'"):
        bmc.cycle(redfish(service), "cycle", 10, 6, Clock())
    assert machine.orders == ["ForceOff"]


def test_a_user_who_may_not_change_the_power_is_an_error(service: tuple[str, Path]) -> None:
    client = redfish(service)
    for resource in ({}, {"Actions": None}, {"Actions": {"#ComputerSystem.Reset": ["On"]}}):
        client.resource = partial(dict, resource)  # type: ignore[method-assign]
        with pytest.raises(bmc.BmcError, match="offers this user no change of the power"):
            client.offers("on")


def test_an_order_that_the_bmc_does_not_support_is_not_sent(machine: Machine, service: tuple[str, Path]) -> None:
    machine.allowed = ["GracefulShutdown", "On"]
    with pytest.raises(bmc.BmcError, match="does not support ForceOff: it supports GracefulShutdown, On"):
        bmc.cycle(redfish(service), "cycle", 10, 6, Clock())
    assert machine.orders == []


def test_bmc_system_must_name_one_of_several_systems(machine: Machine, service: tuple[str, Path]) -> None:
    machine.members = [SYSTEM, "/redfish/v1/Systems/HGX_Baseboard_0"]
    with pytest.raises(bmc.BmcError, match="node, HGX_Baseboard_0; set bmc_system to one of them"):
        redfish(service).state()
    assert redfish(service, system="node").state() == "on"


def test_a_wrong_password_or_an_unknown_certificate_is_an_error(service: tuple[str, Path]) -> None:
    with pytest.raises(bmc.BmcError, match="refuses the user or the password") as refusal:
        redfish(service, "wr0ng").state()
    assert "wr0ng" not in str(refusal.value)
    with pytest.raises(bmc.BmcError, match="bmc_ca"):
        bmc.Redfish(service[0], "admin", PASSWORD, context=ssl.create_default_context()).state()


class Ipmitool:
    """In place of run_command. Its output is that of ipmitool 1.8.19 with a simulated BMC."""

    def __init__(self) -> None:
        self.on = True
        self.calls: list[str] = []

    def __call__(self, command: list[str], data: str, handle_exceptions: bool) -> tuple[int, str, str]:
        assert data == PASSWORD and PASSWORD not in " ".join(command)
        assert command[command.index("-f") + 1] == "/dev/stdin"
        self.calls.append(command[-1])
        if command[-1] == "status":
            return 0, f"Chassis Power is {'on' if self.on else 'off'}\n", ""
        self.on = command[-1] != "off"
        return 0, f"Chassis Power Control: {command[-1]}\n", ""


def test_a_cycle_by_ipmi_switches_the_power_off_and_on() -> None:
    tool = Ipmitool()
    assert bmc.cycle(bmc.Ipmi("bmc:6230", "admin", PASSWORD, tool), "cycle", 10, 60, Clock()) == "on"
    assert tool.calls == ["status", "off", "status", "on", "status"]
    command = bmc.Ipmi("[2001:db8::1]:6230", "admin", PASSWORD, tool).command
    assert command[4:7] == ["2001:db8::1", "-p", "6230"]


def test_the_error_of_ipmi_names_the_cause() -> None:
    def missing(*_: Any, **__: Any) -> tuple[int, str, str]:
        raise FileNotFoundError("ipmitool")

    with pytest.raises(bmc.BmcError, match="ipmitool is not installed"):
        bmc.Ipmi("bmc", "admin", PASSWORD, missing).state()

    def forbidden(*_: Any, **__: Any) -> tuple[int, str, str]:
        raise PermissionError(13, "Permission denied", "ipmitool")

    with pytest.raises(bmc.BmcError, match=r"ipmitool cannot be started on the controller: .*Permission denied"):
        bmc.Ipmi("bmc", "admin", PASSWORD, forbidden).state()

    def refused(*_: Any, **__: Any) -> tuple[int, str, str]:
        return 1, "", "Error: Unable to establish IPMI v2 / RMCP+ session\n"

    with pytest.raises(bmc.BmcError, match="Unable to establish IPMI v2"):
        bmc.Ipmi("bmc", "admin", PASSWORD, refused).state()
