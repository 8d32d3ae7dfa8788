# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Saved virtual machines: when one is made, and what a copy of it gets. A thread stands in for qemu's monitor."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import machines
import pytest
import saved_machines
from machines import Machine, MachineError

Answer = Callable[[str], dict[str, object]]
Serve = Callable[[Answer], list[str]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with a disk. Machines are emulated."""
    disk = tmp_path / "disk.qcow2"
    disk.touch()
    monkeypatch.setattr(saved_machines, "DISK", disk)
    monkeypatch.setattr(saved_machines, "SAVED", tmp_path / "saved")
    monkeypatch.setattr("nodes.CACHE", tmp_path)
    monkeypatch.setattr(machines, "accelerator", lambda: "tcg")
    return tmp_path


@pytest.fixture
def calls(home: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was done with machines, in place of qemu."""
    done: list[str] = []

    def up(machine: Machine) -> None:
        machine.directory.mkdir(parents=True)
        done.append("up")

    def ssh(_machine: Machine, command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        done.append(command)
        if "fails" in command:
            raise MachineError(command)
        return subprocess.CompletedProcess([], 0, "", "")

    monkeypatch.setattr(Machine, "up", up)
    monkeypatch.setattr(Machine, "ssh", ssh)
    monkeypatch.setattr(Machine, "down", lambda _machine: done.append("down"))
    monkeypatch.setattr(saved_machines, "save", lambda _machine: done.append("save"))
    return done


def test_a_machine_is_made_once_for_each_script(home: Path, calls: list[str]) -> None:
    first = saved_machines.ensure("one")
    assert calls == ["up", "one", "save"]
    assert saved_machines.ensure("one") == first and first.is_dir() and len(calls) == 3
    second = saved_machines.ensure("two")
    assert second != first and [path.name for path in (home / "saved").iterdir()] == [second.name]


def test_another_disk_makes_another_machine(home: Path) -> None:
    before = saved_machines.key("one")
    (home / "disk.qcow2").unlink()
    (home / "disk.qcow2").symlink_to("other.qcow2")
    assert saved_machines.key("one") != before


def test_a_script_that_fails_leaves_no_machine(calls: list[str]) -> None:
    with pytest.raises(MachineError):
        saved_machines.ensure("fails")
    assert calls == ["up", "fails", "down"]
    assert not (saved_machines.SAVED / saved_machines.key("fails")).exists()


def test_a_machine_that_cannot_be_saved_is_ended(calls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def save(_machine: Machine) -> None:
        raise ConnectionRefusedError("qmp")

    monkeypatch.setattr(saved_machines, "save", save)
    with pytest.raises(ConnectionRefusedError):
        saved_machines.ensure("one")
    assert calls == ["up", "one", "down"]


def test_where_the_processor_is_not_emulated_the_machine_boots(
    tmp_path: Path, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machines, "accelerator", lambda: "kvm")
    saved_machines.up(Machine(tmp_path / "box"), "one")
    assert calls == ["up", "one"]


@pytest.mark.usefixtures("calls")
def test_without_a_disk_no_machine_starts(home: Path) -> None:
    (home / "disk.qcow2").unlink()
    with pytest.raises(MachineError, match="make setup"):
        saved_machines.up(Machine(home / "box"), "one")


def test_a_copy_has_its_own_disks_and_the_current_time(
    home: Path, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = home / "saved/abc"
    saved.mkdir(parents=True)
    for name in ("id_ed25519", "id_ed25519.pub", *(f"{serial}.raw" for serial in machines.SERIALS)):
        (saved / name).write_text(name)
    machine = Machine(home / "box")
    options: list[str] = []
    bases: list[Path] = []
    monkeypatch.setattr(Machine, "start", lambda _machine, *words: options.extend(words))
    monkeypatch.setattr(Machine, "make_disk", lambda _machine, base: bases.append(base))
    monkeypatch.setattr(Machine, "wait", lambda _machine: calls.append("wait"))
    saved_machines.restore(machine, saved)
    assert options == ["-incoming", f"exec:cat {saved}/memory"] and bases == [saved / "disk.qcow2"]
    assert (machine.directory / "blank1.raw").read_text() == "blank1.raw" and machine.key.read_text() == "id_ed25519"
    assert calls[0] == "wait" and calls[1].startswith("date --utc --set=@")


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts a monitor at the machine's socket. Returns the list of commands that it gets."""
    with ExitStack() as stack:

        def start(answer: Answer) -> list[str]:
            got: list[str] = []
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(str(tmp_path / "qmp"))
            listener.listen()

            def talk() -> None:
                connection, _address = listener.accept()
                with connection, connection.makefile("rw") as stream:
                    print('{"QMP": {}}', file=stream, flush=True)
                    for line in stream:
                        got.append(json.loads(line)["execute"])
                        print('{"event": "STOP"}', file=stream)
                        print(json.dumps(answer(got[-1])), file=stream, flush=True)

            thread = threading.Thread(target=talk)
            thread.start()
            stack.callback(thread.join, 10)
            return got

        yield start


def test_the_memory_is_written_to_a_file_and_the_machine_ends(
    tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = iter(("active", "completed"))
    got = serve(lambda command: {"return": {"status": next(states)} if command == "query-migrate" else {}})
    monkeypatch.setattr(Machine, "ssh", lambda _machine, _command: None)
    monkeypatch.setattr(Machine, "disconnect", lambda _machine: None)
    saved_machines.save(Machine(tmp_path))
    assert got == ["qmp_capabilities", "migrate-set-parameters", "migrate", "query-migrate", "query-migrate", "quit"]


def test_a_refusal_of_qemu_is_an_error(tmp_path: Path, serve: Serve) -> None:
    serve(lambda command: {"error": {"desc": "no such thing"}} if command == "jump" else {"return": {}})
    with (
        saved_machines.Monitor(Machine(tmp_path, "box")) as monitor,
        pytest.raises(MachineError, match="box: qemu refuses jump: no such thing"),
    ):
        monitor.ask("jump")
