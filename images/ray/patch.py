# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lets vLLM 0.32 run its workers on processors by Ray, which vLLM itself refuses. For tests alone.

A pretended GPU of Ray is the place of a worker. Workers of different nodes get different names for shared memory, so
that they exchange data over the network, as real nodes must.
"""

from pathlib import Path

VLLM = Path("/opt/vllm/vllm")

CHANGES = (
    ("platforms/cpu.py", '    device_name: str = "cpu"\n', '    ray_device_key: str = "GPU"\n'),
    (
        "v1/worker/cpu_worker.py",
        '            else init_method.split(":")[-1]\n        )\n',
        '        os.environ["VLLM_DIST_IDENT"] += "-" + os.environ.get("VLLM_HOST_IP", "")\n',
    ),
)
"""File, a text that it has once, and the text to add after this text."""

for name, after, added in CHANGES:
    text = (VLLM / name).read_text(encoding="utf-8")
    if text.count(after) != 1:
        raise SystemExit(f"{name} has {text.count(after)} times, not once: {after}")
    (VLLM / name).write_text(text.replace(after, after + added), encoding="utf-8")
