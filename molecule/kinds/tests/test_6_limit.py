# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An engine whose container needs more memory than its limit: the kernel kills it, systemd starts it again."""

from __future__ import annotations

import json
import re

import pytest
from node import Node, wait_for

MIB = 1 << 20

ROOM = 128
"""MiB that the container may take beyond the memory of its engine. The engine stays the largest process, which the
kernel kills."""


def used_mib(node: Node, instance: str) -> int:
    """The memory of a container's processes that the kernel cannot take back, in MiB. Adds up all processes, since the
    engine is not the first one."""
    pids = [pid for pid in node.run(f"docker top vllm-{instance} -eo pid").split() if pid.isdigit()]
    status = node.run(f"cat {' '.join(f'/proc/{pid}/status' for pid in pids)}")
    return sum(int(number) for number in re.findall(r"^Rss(?:Anon|Shmem):\s+(\d+) kB", status, re.MULTILINE)) // 1024


@pytest.mark.full
def test_an_engine_above_its_limit_is_killed_and_restarted(deb13: Node) -> None:
    others = {name: deb13.engine_pid(name) for name in ("main", "embed", "speech")}
    pid, restarts = deb13.engine_pid("rank"), int(deb13.unit("NRestarts", "rank"))
    limit = used_mib(deb13, "rank") + ROOM
    deb13.run(f"docker update --memory {limit}m --memory-swap {limit}m vllm-rank")
    # The command ends with its container.
    deb13.run(f"docker exec vllm-rank python3 -c 'print(len(bytes([1]) * {1024 * MIB}))'", check=False)
    wait_for("systemd restarts the engine", lambda: int(deb13.unit("NRestarts", "rank")) > restarts, 120)
    size = f"{limit / 1024:.1f} GiB" if limit >= 1024 else f"{limit}.0 MiB"
    words = f"killed by the kernel because memory ran out; the container's limit is {size}"
    assert words in deb13.run("journalctl --no-pager --output cat -u vllm@rank")

    deb13.wait_ready("rank")
    assert deb13.engine_pid("rank") != pid
    (found,) = json.loads(deb13.run("docker inspect vllm-rank"))
    assert found["HostConfig"]["Memory"] == 9 << 30, "the new container lacks the limit of its release"
    status, answer = deb13.request("/v1/score", {"model": "rank", "text_1": "a", "text_2": ["b"]}, 5007)
    assert status == 200 and answer["data"], answer
    assert {name: deb13.engine_pid(name) for name in others} == others
