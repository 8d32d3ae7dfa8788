# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a member of a gang runs with Ray. The shell commands run for real, with programs that only record their call."""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.engine.adapters import get, vllm_ray
from ansible_collections.baremetal.inference.plugins.module_utils.engine.adapters.contract import Rank
from ansible_collections.baremetal.inference.plugins.module_utils.models.flags.catalogue import choose

RAY = get().gangs.executors["ray"]
SECRET = "0123456789abcdef-s3cret"
LEADER = Rank(
    *(0, 2, "10.0.0.1", "10.0.0.1", 29510),
    devices=8,
    executor="ray",
    secret=SECRET,
    directory="/run/inference",
)
FOLLOWER = replace(LEADER, number=1, address="10.0.0.2")
START = 'exec vllm "$@"'
PORT = re.compile(r"--([a-z-]*port)=(\d+)")

RECORD = """#!/bin/sh
echo "$(basename "$0") $* RAY_ADDRESS=$RAY_ADDRESS" >>"$CALLS"
test ! -e "$FAILS" || { rm "$FAILS"; exit 1; }
"""


def run(rank: Rank, place: Path, *, fails: bool = False) -> tuple[int, list[str]]:
    """Run the shell commands of a member. Returns their exit code and the programs that they called."""
    programs = place / "bin"
    programs.mkdir()
    for name in ("ray", "python3", "vllm", "sleep"):
        (programs / name).write_text(RECORD)
        (programs / name).chmod(0o755)
    calls, failing = place / "calls", place / "fails"
    calls.touch()
    if fails:
        failing.touch()
    rank = replace(rank, directory=str(place))
    variables = {**RAY.environment(rank), "CALLS": str(calls), "FAILS": str(failing)}
    path = f"{programs}:{os.environ['PATH']}"
    # Skip the first call, which asks for Ray's version: `fails` is for the start of Ray.
    script = RAY.script(rank, START).replace("python3 -c", "true -c", 1)
    argv = ["/bin/sh", "-c", f"umask 077; {script}", "vllm", "serve", "/models/a"]
    done = subprocess.run(argv, env={**variables, "PATH": path}, timeout=30, check=False)
    return done.returncode, calls.read_text().splitlines()


def test_the_leader_starts_the_head_waits_for_all_devices_and_serves(tmp_path: Path) -> None:
    code, calls = run(LEADER, tmp_path)
    text = "\n".join(calls)
    assert code == 0 and text.startswith("ray start --head --port=29510 --include-dashboard=false")
    assert "10.0.0.1:29510 16 RAY_ADDRESS=\n" in text
    assert calls[-1] == "vllm serve /models/a RAY_ADDRESS=10.0.0.1:29510"


def test_a_leader_whose_head_does_not_start_ends(tmp_path: Path) -> None:
    code, calls = run(LEADER, tmp_path, fails=True)
    assert code != 0 and len(calls) == 1


def test_a_follower_repeats_a_failed_start_of_ray_and_ends_when_ray_ends(tmp_path: Path) -> None:
    code, calls = run(FOLLOWER, tmp_path, fails=True)
    joins = [call for call in calls if call.startswith("ray start --address=10.0.0.1:29510")]
    # In this test no process of Ray runs, so the follower ends after its second try.
    assert code == 1 and len(joins) == 2 and not any(call.startswith("vllm") for call in calls)
    assert all("--head" not in call and "--node-ip-address=10.0.0.2" in call for call in joins)


@pytest.mark.parametrize("rank", [LEADER, FOLLOWER])
def test_the_secret_is_in_a_file_of_mode_0600_and_in_no_command(rank: Rank, tmp_path: Path) -> None:
    _code, calls = run(rank, tmp_path)
    token = tmp_path / "ray.token"
    assert token.read_text() == SECRET and token.stat().st_mode & 0o777 == 0o600
    assert SECRET not in "\n".join(calls) + RAY.script(rank, START) + repr(rank)
    assert RAY.environment(rank)["RAY_AUTH_MODE"] == "token"


@pytest.mark.parametrize("name", ["ray.token", "ray_non_carry_over_env_vars.json"])
@pytest.mark.parametrize("rank", [LEADER, FOLLOWER])
def test_no_program_starts_if_a_file_cannot_be_written(rank: Rank, name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    assert run(rank, tmp_path) == (1, [])


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ('__version__ = "2.51.1"', "Ray 2.51.1 of this image knows no token: the image needs Ray 2.52 or later"),
        ("raise ModuleNotFoundError", "this image has no Ray: set image of the instance to one with Ray 2.52 or later"),
        ('__version__ = "2.52.0"', ""),
        ('__version__ = "3.0.0"', ""),
    ],
)
def test_an_image_without_ray_2_52_or_later_is_refused(program: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "ray.py").write_text(program)
    question = next(word for word in shlex.split(RAY.script(LEADER, START)) if word.startswith("import "))
    argv = [sys.executable, "-c", question]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == (1 if words else 0) and done.stderr.startswith(words) and "Traceback" not in done.stderr


def test_the_variables_that_stay_on_the_leader_are_listed_for_ray(tmp_path: Path) -> None:
    run(LEADER, tmp_path)
    kept = (tmp_path / "ray_non_carry_over_env_vars.json").read_text()
    for name in ("VLLM_API_KEY", "VLLM_HOST_IP", "NCCL_IB_HCA", vllm_ray.SECRET):
        assert f'"{name}"' in kept


@given(
    port=st.integers(1024, 32767 - vllm_ray.PORTS),
    nodes=st.integers(2, 64),
    devices=st.integers(1, 16),
    number=st.integers(0, 63),
)
def test_every_port_is_one_of_the_gang(port: int, nodes: int, devices: int, number: int) -> None:
    number %= nodes
    rank = replace(LEADER, number=number, nodes=nodes, devices=devices, port=port)
    text = RAY.script(rank, START)
    ports = {name: int(value) for name, value in PORT.findall(text)}
    assert len(set(ports.values())) == len(ports) >= 8
    assert all(port <= each < port + RAY.ports for each in ports.values())
    # Other members reach these ports.
    names = ["node-manager-port", "object-manager-port", "min-worker-port", "max-worker-port"]
    assert all(ports[name] < port + RAY.opened for name in names)
    # Other members do not reach the other ports, which begin after those of the workers.
    assert all(each > ports["max-worker-port"] for name, each in ports.items() if name not in (*names, "port"))
    assert ports["max-worker-port"] - ports["min-worker-port"] > 4 * devices
    assert f"--num-gpus={devices}" in text and (f"{nodes * devices} &&" in text) == (number == 0)


def test_the_dashboard_runs_on_the_leader_alone_and_listens_on_loopback() -> None:
    shown = replace(LEADER, dashboard=True)
    text = RAY.script(shown, START)
    assert "--include-dashboard=true --dashboard-host=127.0.0.1 --dashboard-port=29635 " in text
    assert "dashboard-port" not in RAY.script(LEADER, START) + RAY.script(replace(FOLLOWER, dashboard=True), START)


def test_an_ipv6_address_is_in_brackets() -> None:
    rank = replace(FOLLOWER, address="fd00::2", leader="fd00::1")
    assert "'--address=[fd00::1]:29510'" in RAY.script(rank, START)


def test_the_flag_is_in_the_catalogue_and_the_programs_are_python() -> None:
    (flag, value) = RAY.argv(LEADER)
    assert value in str(choose().flags[flag.removeprefix("--")])
    programs = [word for word in shlex.split(RAY.script(LEADER, START)) if word.startswith("import ")]
    assert len(programs) == 2
    for program in programs:
        ast.parse(program)
