# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of this scenario's tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

sys.path.insert(0, str(Path(os.environ["MOLECULE_PROJECT_DIRECTORY"]) / "molecule/shared"))

from fixtures import deb12, deb13, node
from lanes import pytest_collection_modifyitems, pytest_runtest_protocol
from node import PROJECT, Node

__all__ = ["deb12", "deb13", "node", "pytest_collection_modifyitems", "pytest_runtest_protocol"]

PARTS = {
    "plugins/module_utils": "ansible_collections/baremetal/inference/plugins/module_utils",
    "molecule/handover/lab": "lab",
    "molecule/shared/load.py": "lab/load.py",
    "tests/tools/paced_engine.py": "lab/paced_engine.py",
}
"""The files that a node gets, below /lab."""

NAMESPACES = "unshare --net --mount --pid --fork --kill-child --mount-proc"
"""A case has its own network. All its processes end with it."""

COPIED: set[str] = set()


def _copy(node: Node) -> None:
    node.run("rm -rf /lab; mkdir -p /lab/ansible_collections/baremetal/inference/plugins")
    for source, target in PARTS.items():
        subprocess.run(
            ["docker", "cp", "--quiet", str(PROJECT / source), f"{node.container}:/lab/{target}"], check=True
        )
    defaults = yaml.safe_load((PROJECT / "roles/gateway/defaults/main.yml").read_text())
    subprocess.run(
        node.argv("tee", "/lab/defaults.json"),
        input=json.dumps(defaults).encode(),
        check=True,
        stdout=subprocess.DEVNULL,
    )
    COPIED.add(node.name)


@pytest.fixture
def lab(node: Node) -> Callable[[str], dict[str, Any]]:
    """A function that runs a case on the node, and returns its result."""
    if node.name not in COPIED:
        _copy(node)

    def run(case: str) -> dict[str, Any]:
        command = f"PYTHONPATH=/lab {NAMESPACES} python3 /lab/lab/lab.py {case} 2>/lab/{case}.log"
        said = node.run(command, check=False)
        if not said:
            raise AssertionError(node.run(f"tail -50 /lab/{case}.log"))
        result = dict(json.loads(said.splitlines()[-1]))
        print(json.dumps(result, indent=1))
        return result

    return run
