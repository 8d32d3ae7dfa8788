# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import multiprocessing
import subprocess
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.fleet import playbook_process as process

BOOT, SPACE = "5c0e", "pid:[4026531836]"


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A machine with process 7. Its name looks like more fields of /proc/7/stat."""
    (tmp_path / "sys/kernel/random").mkdir(parents=True)
    (tmp_path / "sys/kernel/random/boot_id").write_text(f"{BOOT}\n")
    (tmp_path / "self/ns").mkdir(parents=True)
    (tmp_path / "self/ns/pid").symlink_to(SPACE)
    (tmp_path / "7").mkdir()
    (tmp_path / "7/stat").write_text(f"7 (a) 1 (b) S 1 {'0 ' * 17}4711 0 0\n")
    return tmp_path


@pytest.mark.parametrize(
    ("said", "ended"),
    [
        (f"{BOOT}:{SPACE}:7:4711", False),
        (f"{BOOT}:{SPACE}:7:4712", True),
        (f"{BOOT}:{SPACE}:8:4711", True),
        (f"another:{SPACE}:8:4711", False),
        (f"{BOOT}:pid:[1]:8:4711", False),
        ("", False),
        ("nonsense", False),
        ("a:b:c", False),
    ],
)
def test_only_a_process_of_this_machine_and_boot_is_known_to_have_ended(proc: Path, said: str, ended: bool) -> None:
    assert process.has_ended(said, proc) is ended


def test_without_proc_no_process_counts_as_ended(tmp_path: Path) -> None:
    assert process.of_this_run(tmp_path) == ""
    assert process.has_ended(f"{BOOT}:{SPACE}:7:4711", tmp_path) is False


def _say(to: Connection) -> None:
    to.send(process.of_this_run())


def test_a_worker_names_the_process_of_its_playbook() -> None:
    ours, theirs = multiprocessing.Pipe()
    worker = multiprocessing.get_context("fork").Process(target=_say, args=(theirs,))
    worker.start()
    said = ours.recv()
    worker.join()
    assert said == process.of_this_run() and f":{worker.pid}:" not in said
    assert process.has_ended(said) is False


def test_a_process_that_was_killed_has_ended() -> None:
    child = subprocess.Popen(["sleep", "60"])
    boot_and_space = process.of_this_run().rsplit(":", 2)[0]
    began = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[19]
    said = f"{boot_and_space}:{child.pid}:{began}"
    assert process.has_ended(said) is False
    child.kill()
    child.wait()
    assert process.has_ended(said) is True
