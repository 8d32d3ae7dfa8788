# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of this scenario's tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(os.environ["MOLECULE_PROJECT_DIRECTORY"]) / "molecule/shared"))

from fixtures import deb12, deb13, node, used
from lanes import pytest_collection_modifyitems, pytest_runtest_protocol
from node import CACHE

__all__ = ["deb12", "deb13", "node", "pytest_collection_modifyitems", "pytest_runtest_protocol", "used"]

# The key of hosts.yml. Tests search for this key in places that must not have the key.
API_KEY = "molecule-key-7f3a91"


@pytest.fixture(scope="session")
def api_key() -> str:
    return API_KEY


@pytest.fixture(scope="session")
def installed_collection(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The collection of all files that git does not ignore. Returns the environment that makes Ansible use it."""
    scratch = tmp_path_factory.mktemp("collection")
    script = Path(os.environ["MOLECULE_PROJECT_DIRECTORY"]) / "tests/tools/install-collection"
    subprocess.run([script, scratch], check=True)
    return {"ANSIBLE_COLLECTIONS_PATH": str(scratch)}


@pytest.fixture(scope="session")
def models() -> dict[str, dict[str, object]]:
    """Two models of the scenario's model registry, with the paths of this machine."""
    flags = {"dtype": "float32", "max-model-len": 512, "enforce-eager": True}
    return {name: {"model": f"controller:{CACHE}/models/{name}", **flags} for name in ("tiny-a", "tiny-b")}
