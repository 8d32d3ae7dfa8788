# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module monitoring_exporters: which process answers on a port, what is installed and removed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.debian import tested
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.exporters import dcgm_unit
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.places import HEADER
from ansible_collections.baremetal.inference.plugins.modules import monitoring_exporters as module
from ansible_collections.baremetal.inference.plugins.modules.monitoring_exporters import (
    is_young,
    no_answer,
    of_dcgm,
)

Call = Callable[..., dict[str, Any]]

NOW = 1_795_590_481.35
"""Seconds since 1970. The time is fixed, since it is in names of tests, which all processes of pytest must share."""

LIMIT = 1.0
"""Seconds: enough for two answers, also on a busy machine."""


class Exporter(BaseHTTPRequestHandler):
    status, text = 200, ""

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(self.text.encode())

    def log_message(self, *_words: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    with HTTPServer(("127.0.0.1", 0), Exporter) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("status", "text", "said"),
    [
        (200, f"go_goroutines 7\nprocess_start_time_seconds {NOW:.2f}\n", ""),
        (200, f"process_start_time_seconds {NOW - 1:.9e}\n", ""),
        (200, f"process_start_time_seconds {NOW - 600:.2f}\n", "another program answers"),
        (200, "process_start_time_seconds yesterday\n", "another program answers"),
        (200, "process_start_time_seconds 1.7.9\n", "another program answers"),
        (200, "hello\n", "another program answers"),
        (404, f"process_start_time_seconds {NOW:.2f}\n", "another program answers"),
    ],
)
def test_another_program_on_the_port_is_recognized(
    port: int, monkeypatch: pytest.MonkeyPatch, status: int, text: str, said: str
) -> None:
    monkeypatch.setattr(Exporter, "status", status)
    monkeypatch.setattr(Exporter, "text", text)
    found = no_answer("", port, partial(is_young, NOW), LIMIT)
    assert found == (f"{said} on port {port} within 1 s" if said else "")


DCGM = """\
# HELP DCGM_FI_DEV_SM_CLOCK SM clock frequency (in MHz).
# TYPE DCGM_FI_DEV_SM_CLOCK gauge
DCGM_FI_DEV_SM_CLOCK{gpu="0",UUID="GPU-0",device="nvidia0",modelName="NVIDIA H200",Hostname="n1"} 345
# HELP DCGM_FI_DEV_GPU_TEMP GPU temperature (in C).
# TYPE DCGM_FI_DEV_GPU_TEMP gauge
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-0",device="nvidia0",modelName="NVIDIA H200",Hostname="n1"} 32
"""
"""Metrics of dcgm-exporter. They do not have the start time of its process."""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (DCGM, ""),
        ("# no DCGM_FI_DEV_GPU_TEMP{ here\n", "another program answers"),
        (f"process_start_time_seconds {NOW:.2f}\n", "another program answers"),
    ],
)
def test_dcgm_exporter_is_recognized_by_its_fields(
    port: int, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.setattr(Exporter, "text", text)
    found = no_answer("", port, of_dcgm, LIMIT)
    assert found == (f"{said} on port {port} within 1 s" if said else "")


def test_a_port_without_a_server_does_not_answer() -> None:
    assert no_answer("127.0.0.1", 1, partial(is_young, NOW), 0.4).startswith("it does not answer on port 1 ")


def test_the_state_absent_removes_only_dcgm_exporter(
    run_module: Call, services: Callable[[Iterable[str]], Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(module, "UNITS", tmp_path)
    fake = services([module.DCGM_UNIT])
    unit, node = tmp_path / module.DCGM_UNIT, tmp_path / f"{module.NODE_UNIT}.d/inference.conf"
    node.parent.mkdir()
    node.write_text(HEADER)
    unit.write_text(dcgm_unit(f"dcgm@sha256:{'0' * 64}", "", 9400, "cdi"))
    assert run_module(module, check=True, state="absent")["removed"] == [str(unit)] and fake.calls == []
    done = run_module(module, state="absent")
    assert (done["stopped"], done["removed"], done["foreign"]) == ([module.DCGM_UNIT], [str(unit)], [])
    assert fake.calls == [f"stop {module.DCGM_UNIT}", f"disable {module.DCGM_UNIT}", "daemon-reload"]
    assert node.exists() and not unit.exists()
    assert run_module(module, state="absent")["changed"] is False


class Machine:
    """Fakes of systemd and dpkg, and of an exporter that may not answer."""

    def __init__(self) -> None:
        self.active = {module.NODE_UNIT: "active", module.DCGM_UNIT: "inactive"}
        self.enabled = {module.NODE_UNIT: "disabled", module.DCGM_UNIT: ""}
        self.loaded = {module.NODE_UNIT: "loaded", module.DCGM_UNIT: "not-found"}
        self.stale = False
        self.silence = ""
        self.refuses = ""
        self.packages: list[str] = []
        self.calls: list[str] = []

    def show(self, units: Iterable[str], properties: Iterable[str]) -> dict[str, dict[str, str]]:
        return {
            unit: {
                "LoadState": self.loaded[unit],
                "ActiveState": self.active[unit],
                "UnitFileState": self.enabled[unit],
                "NeedDaemonReload": "yes" if self.stale else "no",
            }
            for unit in units
        }

    def run_command(self, _module: AnsibleModule, argv: list[str], **_options: Any) -> tuple[int, str, str]:
        if argv[0] == "dpkg-query":
            return 1, "".join(f"install installed {name} 1.5\n" for name in self.packages), ""
        if argv[0] == "journalctl":
            return 0, "it broke\n", ""
        verb, unit = argv[1], argv[-1]
        if verb == "is-active":
            return int(self.active[unit] != "active"), "", ""
        if verb == "is-enabled":
            return int(self.enabled[unit] != "enabled"), "", ""
        self.calls.append(" ".join(argv[1:]))
        if verb == self.refuses:
            return 1, "", f"{verb}: refused"
        self.change(verb, unit)
        return 0, "", ""

    def systemctl(self, *words: str) -> str:
        self.calls.append(" ".join(words))
        self.change(words[0], words[-1])
        return ""

    def change(self, verb: str, unit: str) -> None:
        self.stale = self.stale and verb != "daemon-reload"
        if verb in ("restart", "start"):
            self.loaded[unit] = "loaded"
        if verb in ("restart", "start", "stop"):
            self.active[unit] = "inactive" if verb == "stop" else "active"
        if verb in ("enable", "disable"):
            self.enabled[unit] = f"{verb}d"


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    found = Machine()

    # As a function of the class, and not a bound method, it gets the module as its first argument.
    def run_command(*given: Any, **more: Any) -> Any:
        return found.run_command(*given, **more)

    monkeypatch.setattr(module, "UNITS", tmp_path)
    monkeypatch.setattr(module.systemd, "show", found.show)
    monkeypatch.setattr(module.systemd, "systemctl", found.systemctl)
    monkeypatch.setattr(AnsibleModule, "run_command", run_command)
    monkeypatch.setattr(module, "no_answer", lambda *_given: found.silence)
    monkeypatch.setattr(tested, "refusal", lambda _what, _package: "")
    return found


IMAGE = f"dcgm@sha256:{'0' * 64}"


def test_node_exporter_gets_its_options_once(run_module: Call, machine: Machine, tmp_path: Path) -> None:
    predicted = run_module(module, check=True, address="192.0.2.11")
    assert predicted["changed"] and machine.calls == [] and list(tmp_path.iterdir()) == []
    done = run_module(module, address="192.0.2.11")
    assert done["restarted"] == predicted["restarted"] == [module.NODE_UNIT]
    verbs = ("reset-failed", "restart", "enable")
    assert machine.calls == ["daemon-reload", *(f"{verb} {module.NODE_UNIT}" for verb in verbs)]
    drop_in = tmp_path / f"{module.NODE_UNIT}.d/inference.conf"
    assert "192.0.2.11:9100" in drop_in.read_text()
    assert done["diff"][0]["after"] == drop_in.read_text() and done["diff"][0]["before"] == ""
    again = run_module(module, address="192.0.2.11")
    assert (again["changed"], again["restarted"], again["diff"]) == (False, [], [])


def test_check_mode_reports_whether_the_module_is_due(run_module: Call, machine: Machine, tmp_path: Path) -> None:
    def due(**more: Any) -> Any:
        found = run_module(module, check=True, packages=["prometheus-node-exporter"], **more)
        return found["due"], found["missing"]

    run_module(module)
    assert due() == (True, ["prometheus-node-exporter"])
    machine.packages.append("prometheus-node-exporter")
    assert due() == (False, [])
    machine.active[module.NODE_UNIT] = "inactive"
    assert due()[0]
    machine.active[module.NODE_UNIT], machine.enabled[module.NODE_UNIT] = "active", "disabled"
    assert due()[0]
    machine.enabled[module.NODE_UNIT] = "enabled"
    assert not due()[0] and due(dcgm_image=IMAGE)[0] and due(port=9101)[0]
    (tmp_path / f"{module.NODE_UNIT}.d/inference.conf").write_text("[Service]\n")
    assert due()[0]
    machine.calls.clear()
    due()
    assert machine.calls == []


def test_every_mistake_of_the_input_is_reported_at_once(run_module: Call, machine: Machine, tmp_path: Path) -> None:
    said = run_module(module, port=0, dcgm_port=0, dcgm_image="dcgm:latest")["msg"]
    for words in (
        "node_exporter_port: 0",
        "dcgm_exporter_port: 0",
        "also the port of node_exporter",
        "'dcgm:latest'",
        "Nothing was changed",
    ):
        assert words in said
    assert list(tmp_path.iterdir()) == [] and machine.calls == []


def test_dcgm_exporter_is_installed_with_an_image_and_removed_without(
    run_module: Call, machine: Machine, tmp_path: Path
) -> None:
    done = run_module(module, dcgm_image=IMAGE)
    assert done["restarted"] == [module.NODE_UNIT, module.DCGM_UNIT]
    assert IMAGE in (tmp_path / module.DCGM_UNIT).read_text()
    assert run_module(module, dcgm_image=IMAGE)["changed"] is False
    machine.calls.clear()
    assert run_module(module)["changed"] and not (tmp_path / module.DCGM_UNIT).exists()
    assert machine.calls == [f"stop {module.DCGM_UNIT}", f"disable {module.DCGM_UNIT}", "daemon-reload"]


@pytest.mark.parametrize(("silence", "refuses"), [("it does not answer on port 9100", ""), ("", "daemon-reload")])
def test_a_node_exporter_that_does_not_come_up_gets_its_old_options(
    run_module: Call, machine: Machine, tmp_path: Path, silence: str, refuses: str
) -> None:
    drop_in = tmp_path / f"{module.NODE_UNIT}.d/inference.conf"
    drop_in.parent.mkdir()
    drop_in.write_text("[Service]\n")
    machine.silence, machine.refuses = silence, refuses
    said = run_module(module)
    why = "it broke" if silence else "daemon-reload failed: daemon-reload: refused"
    assert said["failed"] and why in said["msg"] and "back in place" in said["msg"]
    assert drop_in.read_text() == "[Service]\n"
    assert "daemon-reload" in machine.calls and machine.calls[-1].endswith(f" {module.NODE_UNIT}")


def test_a_dcgm_exporter_that_does_not_answer_is_a_warning(run_module: Call, machine: Machine) -> None:
    run_module(module)
    machine.silence = "it does not answer on port 9400"
    said = run_module(module, dcgm_image=IMAGE)
    assert said["changed"] and "does not answer on port 9400" in str(said["warnings"])


def test_a_machine_without_node_exporter_is_refused(run_module: Call, machine: Machine, tmp_path: Path) -> None:
    machine.loaded[module.NODE_UNIT] = "masked"
    said = run_module(module)
    assert said["failed"] and "is masked: install prometheus-node-exporter" in said["msg"]
    assert machine.calls == [] and list(tmp_path.iterdir()) == []


def test_a_run_that_was_cut_off_is_finished(run_module: Call, machine: Machine) -> None:
    run_module(module)
    machine.stale = True
    assert run_module(module, check=True)["due"]
    machine.calls.clear()
    assert run_module(module)["restarted"] == [module.NODE_UNIT]
    assert machine.calls[0] == "daemon-reload" and machine.calls[-1] == f"restart {module.NODE_UNIT}"
    assert not run_module(module, check=True)["due"]
