# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the tools importable. They are scripts and modules in one directory, not packages."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT / "images"), str(ROOT / "tests/tools")]


@pytest.fixture(scope="session")
def script() -> Callable[[str], ModuleType]:
    """Imports a command of tests/tools. The name of a command has no extension."""

    def load(name: str) -> ModuleType:
        loader = importlib.machinery.SourceFileLoader(f"tool_{name}", str(ROOT / "tests/tools" / name))
        spec = importlib.util.spec_from_loader(loader.name, loader)
        assert spec
        module = importlib.util.module_from_spec(spec)
        # A dataclass looks up its module there.
        sys.modules[loader.name] = module
        loader.exec_module(module)
        return module

    return load
