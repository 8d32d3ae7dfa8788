# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the time to gather hardware facts with a shell script that runs the same tools and reads the same files.

The machines are trees of files, as in the unit tests, and the tools only print. The times leave out the start of Python
and the round trip to the node, which every module has.
"""

from __future__ import annotations

import importlib.util
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from nodes import ROOT

from ansible_collections.baremetal.inference.plugins.module_utils.core import commands
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu import facts as gpu_facts
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma import facts as rdma_facts

UNIT = ROOT / "tests/unit/plugins/module_utils"
TIMES = 10
"""Runs of each measurement. The fastest run counts, because other work on the machine can only add time."""
NICS, GIDS, COUNTERS = 8, 256, 40
"""Numbers as on a node with eight GPUs. A table of GIDs has 256 places; few of them are in use."""


def bench() -> list[dict[str, Any]]:
    """Measure. Returns rows for the table of `make bench`."""
    with tempfile.TemporaryDirectory() as scratch:
        return [*_gpus(Path(scratch) / "gpu"), *_rdma(Path(scratch) / "rdma")]


def _gpus(root: Path) -> list[dict[str, Any]]:
    data = UNIT / "hardware/gpu/data"
    tool = root / "nvidia-smi"
    tool.parent.mkdir()
    answers = {"-q -x": "report-580.xml", "-L": "list.txt", "nvlink -s": "nvlink.txt", "topo -m": "topology.txt"}
    cases = "\n".join(f"'{words}') exec cat {shlex.quote(str(data / name))} ;;" for words, name in answers.items())
    tool.write_text(f'#!/bin/sh\ncase "$*" in\n{cases}\nesac\n')
    tool.chmod(0o755)
    (root / "dev").mkdir()
    (root / "dev/kmsg").write_text((data / "kern.log").read_text())
    plain = "\n".join(f"{tool} {words}" for words in answers) + f"\ncat {root}/dev/kmsg"
    run = partial(commands.run, timeout=30)
    return _compared(
        "facts of 2 GPUs", plain, lambda: gpu_facts.gather(root, run, str(tool), gpu_facts.PARTS, timeout=30)
    )


def _rdma(root: Path) -> list[dict[str, Any]]:
    spec = importlib.util.spec_from_file_location("synthetic", UNIT / "hardware/rdma/conftest.py")
    assert spec is not None and spec.loader is not None
    synthetic = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(synthetic)
    machine = synthetic.Machine(root)
    for number in range(NICS):
        function = machine.pci(f"0000:{0x10 + number:02x}:00.0", driver="mlx5_core")
        port = machine.port(machine.rdma(f"mlx5_{number}", function))
        for index in range(GIDS):
            used = f"0000:0000:0000:0000:0000:ffff:c000:02{number:02x}" if index == 3 else ":".join(["0000"] * 8)
            machine.gid(port, index, used, "RoCE v2", f"ens{number}")
        machine.counters(port, "hw_counters", {f"errors_{index}": "0" for index in range(COUNTERS)})
    plain = f"find {root}/sys -type f -exec cat {{}} +"
    return _compared(
        f"facts of {NICS} NICs",
        plain,
        lambda: rdma_facts.gather(root, rdma_facts.PARTS, rdma_facts.Programs(), partial(commands.run, timeout=30)),
    )


def _compared(what: str, script: str, gather: Callable[[], object]) -> list[dict[str, Any]]:
    plain = _fastest(lambda: subprocess.run(["sh", "-c", script], stdout=subprocess.DEVNULL, check=True))
    ours = _fastest(gather)
    return [
        {"what": f"{what}, plain shell script", "seconds": round(plain, 3)},
        {"what": what, "seconds": round(ours, 3), "ratio": round(ours / plain, 2)},
    ]


def _fastest(action: Callable[[], object]) -> float:
    times = []
    for _run in range(TIMES):
        started = time.perf_counter()
        action()
        times.append(time.perf_counter() - started)
    return min(times)
