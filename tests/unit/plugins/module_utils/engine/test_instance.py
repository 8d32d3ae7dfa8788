# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One engine as the site declares it."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine import instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance import Instance


def test_an_instance_without_settings_of_its_own_has_those_of_all_engines() -> None:
    found = Instance("main", "tiny", 5005)
    own = {"image", "environment", "shm_size", "memory", "ulimits", "user"}
    assert not any(getattr(found, name) for name in own)
    assert (found.accelerator, found.state, found.nodes, found.executor) == ("nvidia", "present", (), "")
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.port = 5006  # type: ignore[misc]


def test_the_file_imports_nothing_of_the_collection() -> None:
    """Each command of an engine's unit would load such an import."""
    program = (
        "import importlib.util, sys\n"
        "spec = importlib.util.spec_from_file_location('alone', sys.argv[1])\n"
        "module = importlib.util.module_from_spec(spec)\n"
        "sys.modules['alone'] = module\n"
        "spec.loader.exec_module(module)\n"
        "assert not [name for name in sys.modules if name.startswith(('ansible', 'yaml', 'jinja2'))]\n"
    )
    done = subprocess.run([sys.executable, "-I", "-c", program, instance.__file__], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
