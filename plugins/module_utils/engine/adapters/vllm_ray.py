# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""vLLM over several nodes by Ray. Private to the collection; data and pure functions.

Each container has its own Ray node. The Ray node of the leader is the head, and the engine runs in the same container.
The engine starts its workers by Ray in all containers. Sources: `ray start --help` of Ray 2.60.0, and
vllm/v1/executor/ray_executor_v2.py of vLLM 0.32.0.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable

from .contract import Executor, Rank

SECRET = "INFERENCE_RAY_TOKEN"

PORTS = 128
"""The number of Ray's ports. The first is the port at which the engines find each other."""

OPENED = 120
"""How many of these ports other members reach, counted from the first: those of head, node, objects and workers."""

_NODE, _OBJECTS, _FIRST_WORKER = 1, 2, 3
_LOCAL = {
    "runtime-env-agent-port": OPENED,
    "dashboard-agent-grpc-port": OPENED + 1,
    "dashboard-agent-listen-port": OPENED + 2,
    "metrics-export-port": OPENED + 3,
}
"""Ports that only processes of the same container need, as distances from the first port."""

_CLIENTS = OPENED + 4
"""The port of the head for Ray's clients, which Ray always opens."""

_DASHBOARD = OPENED + 5

_OBJECT_STORE = 128 * 1024**2
"""Bytes of /dev/shm for Ray's objects. Engines exchange no large objects by Ray."""

_TRIES = 20
"""How often a follower starts its Ray node at most. Each start fails until the leader's Ray node has registered."""

_VERSION = """\
import sys
try:
    import ray
except ImportError:
    sys.exit("this image has no Ray: set image of the instance to one with Ray 2.52 or later, or remove executor: ray")
if tuple(map(int, ray.__version__.split(".")[:2])) < (2, 52):
    sys.exit(f"Ray {ray.__version__} of this image knows no token: the image needs Ray 2.52 or later")
"""

_WAIT = """\
import ray, sys, time
ray.init(address=sys.argv[1], logging_level="ERROR", log_to_driver=False)
while ray.cluster_resources().get("GPU", 0) < int(sys.argv[2]):
    time.sleep(1)
"""
"""Waits until Ray has the GPUs of all members."""


def executor(private: Iterable[str]) -> Executor:
    """Ray as an executor. `private` are the variables that the leader must not copy to other members."""
    names = json.dumps(sorted({*private, SECRET}))
    return Executor(
        argv=lambda _rank: ["--distributed-executor-backend", "ray"],
        environment=_environment,
        script=lambda rank, start: _script(rank, start, names),
        ports=PORTS,
        opened=OPENED,
    )


def _environment(rank: Rank) -> dict[str, str]:
    return {
        SECRET: rank.secret,
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": f"{rank.directory}/ray.token",
        "RAY_USAGE_STATS_ENABLED": "0",
        # The leader's journal has the lines of all workers: each line whole, and without colours.
        "RAY_COLOR_PREFIX": "0",
        "RAY_DEDUP_LOGS": "0",
        # Ray must kill no process to save memory: the container has a limit, and the supervisor reports it if memory
        # runs out.
        "RAY_memory_monitor_refresh_ms": "0",
        # On a busy node, the default of a few seconds is too short.
        "RAY_raylet_start_wait_time_s": "240",
        # The directory with the list of variables that stay on the leader.
        "VLLM_CONFIG_ROOT": rank.directory,
    }


def _script(rank: Rank, start: str, private: str) -> str:
    """The shell commands of a member. `start` is the command that starts the engine, on the leader."""
    head = f"[{rank.leader}]:{rank.port}" if ":" in rank.leader else f"{rank.leader}:{rank.port}"
    ray = shlex.join(["ray", "start", *_options(rank, head)])
    secret = (
        f'printf %s "${SECRET}" >"$RAY_AUTH_TOKEN_PATH" || exit 1; unset {SECRET};'
        f' printf %s {shlex.quote(private)} >"$VLLM_CONFIG_ROOT/ray_non_carry_over_env_vars.json" || exit 1;'
        f" python3 -c {shlex.quote(_VERSION)} || exit 1;"
    )
    if rank.number == 0:
        devices = str(rank.devices * rank.nodes)
        wait = shlex.join(["python3", "-c", _WAIT, head, devices])
        return f"{secret} {ray} && {wait} && export RAY_ADDRESS={shlex.quote(head)} && {start}"
    return (
        f"{secret} n=0; until {ray}; do n=$((n+1)); [ $n -lt {_TRIES} ] || exit 1; sleep 2; done;"
        " while grep -qsx raylet /proc/[0-9]*/comm; do sleep 2; done; echo 'Ray has ended' >&2; exit 1"
    )


def _options(rank: Rank, head: str) -> list[str]:
    first = rank.port
    dashboard = ["--include-dashboard=false"]
    if rank.dashboard:
        dashboard = ["--include-dashboard=true", "--dashboard-host=127.0.0.1", f"--dashboard-port={first + _DASHBOARD}"]
    own = ["--head", f"--port={first}", *dashboard, f"--ray-client-server-port={first + _CLIENTS}"]
    return [
        *(own if rank.number == 0 else [f"--address={head}"]),
        f"--node-ip-address={rank.address}",
        f"--node-manager-port={first + _NODE}",
        f"--object-manager-port={first + _OBJECTS}",
        f"--min-worker-port={first + _FIRST_WORKER}",
        f"--max-worker-port={first + OPENED - 1}",
        *(f"--{option}={first + offset}" for option, offset in _LOCAL.items()),
        f"--num-cpus={rank.devices}",
        f"--num-gpus={rank.devices}",
        f"--object-store-memory={_OBJECT_STORE}",
        "--disable-usage-stats",
    ]
