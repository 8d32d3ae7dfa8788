# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""fleet_record.py records the answers of ssh, here of a script in place of the real ssh. fleet_answer.py replays them.

The last test runs Ansible with both.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import bench_fleet
import fleet_answer
import fleet_record
import pytest

PLAYBOOK = """
- hosts: all
  gather_facts: false
  tasks:
    - {name: Ask once, ansible.builtin.raw: "true", run_once: true, changed_when: true, notify: Ask a handler}
    - {name: Ask twice, ansible.builtin.raw: "true", changed_when: false, loop: [1, 2]}
  handlers:
    - {name: Ask a handler, ansible.builtin.raw: "true", changed_when: false}
"""


def ssh(directory: Path, script: str) -> str:
    """Write a script in place of the real ssh. Returns the PATH that finds it."""
    command = directory / "bin/ssh"
    command.parent.mkdir(exist_ok=True)
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    return f"{command.parent}:{os.environ['PATH']}"


def test_an_answer_is_passed_on_and_kept(tmp_path: Path) -> None:
    environment = {
        "PATH": ssh(tmp_path, r"cat; printf ' of gpu1 at 192.0.2.1 \377'; echo warned >&2; exit 3"),
        "FLEET_RECORDING": str(tmp_path),
        "FLEET_TASK": "aa",
        "FLEET_NODE": "gpu1",
    }
    for call, given in enumerate((b"module", b"")):
        command = [fleet_record.__file__, "-C", "192.0.2.1", "/bin/sh -c 'python3'"]
        asked = subprocess.run(command, env=environment, input=given, capture_output=True, check=False)
        assert asked.returncode == 3
        assert (asked.stdout, asked.stderr) == (given + b" of gpu1 at 192.0.2.1 \xff", b"warned\n")
        header, _, said = Path(fleet_answer.path_of(str(tmp_path), "aa", call)).read_bytes().partition(b"\n")
        out = given + b" of " + fleet_answer.NAME + b" at " + fleet_answer.ADDRESS + b" \xff"
        assert said == out + b"warned\n"
        seconds, *rest = header.split()
        assert 0 <= float(seconds) < 60
        assert list(map(int, rest)) == [len(given), 3, len(out)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gpu1 http://192.0.2.1:5005", "NAME http://ADDRESS:5005"),
        ('{"host":"gpu1","at":["192.0.2.1"]}', '{"host":"NAME","at":["ADDRESS"]}'),
        ("Reached gpu1. From 192.0.2.1.", "Reached NAME. From ADDRESS."),
        # The JSON holds lines of a file.
        (r'"# hosts\n192.0.2.1\tgpu1\n"', r'"# hosts\nADDRESS\tNAME\n"'),
        *((other, other) for other in ("gpu10", "gpu1-a", "my-gpu1", "192.0.2.10", "1192.0.2.1", "192.0.2.1.5")),
    ],
)
def test_only_the_node_itself_gets_a_mark(text: str, expected: str) -> None:
    made = fleet_record.marked(text.encode(), "gpu1", "192.0.2.1")
    assert made.replace(fleet_answer.NAME, b"NAME").replace(fleet_answer.ADDRESS, b"ADDRESS").decode() == expected


def test_more_nodes_answer_a_run_than_were_recorded(tmp_path: Path) -> None:
    (tmp_path / "play.yml").write_text(PLAYBOOK)
    asked, state, recording = tmp_path / "asked", tmp_path / "state", tmp_path / "recording"
    recording.mkdir()
    (recording / "nodes").write_text("a a\nb b\n")
    environment = {
        **os.environ,
        "PATH": ssh(tmp_path, f"echo asked >> {asked}"),
        "ANSIBLE_CALLBACK_PLUGINS": str(bench_fleet.TOOLS / "fleet_callback"),
        "ANSIBLE_CALLBACKS_ENABLED": "fleet_task",
        "FLEET_RECORDING": str(recording),
        "FLEET_STATE": str(state),
        "FLEET_NODE": "real",
    }

    def play(hosts: str, stand_in: str) -> None:
        command = ["ansible-playbook", "-i", hosts, str(tmp_path / "play.yml")]
        ran = subprocess.run(
            command,
            env={**environment, "ANSIBLE_SSH_EXECUTABLE": str(bench_fleet.TOOLS / stand_in)},
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr

    play("real,", "fleet_record.py")
    # The first task asks once, the second asks twice, and the handler once.
    assert asked.read_text().split() == ["asked"] * 4
    play("a,b,", "fleet_answer.py")
    assert asked.read_text().split() == ["asked"] * 4
    # The node a ran all three tasks. The node b ran only the loop, with two calls.
    assert len(list(state.glob("a.*"))) == 3
    assert [path.stat().st_size for path in state.glob("b.*")] == [2]
