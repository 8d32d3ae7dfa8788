# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module that imports too much is reported, with the chain to the import with the largest part of the size."""

from __future__ import annotations

import check_closures
import pytest

UTILS = "ansible_collections.baremetal.inference.plugins.module_utils"
MODULE = "plugins/modules/gpu_facts.py"


def library(count: int, text: str = "") -> dict[str, str]:
    """A module that imports core/small.py, and by core/way.py and core/heavy.py many others."""
    parts = [f"core/part{number}.py" for number in range(count)]
    return {
        MODULE: f"from {UTILS}.core import small, way\n" + "x" * 500_000,
        "plugins/module_utils/__init__.py": "",
        "plugins/module_utils/core/__init__.py": "",
        "plugins/module_utils/core/small.py": "",
        "plugins/module_utils/core/way.py": "from . import heavy, small",
        "plugins/module_utils/core/heavy.py": "\n".join(f"from .part{number} import X" for number in range(count)),
        **{f"plugins/module_utils/{part}": text for part in parts},
    }


@pytest.fixture(autouse=True)
def _without_the_modules_own_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """The size of a module itself does not count. Its text need not be Python here."""
    read = check_closures.imports
    monkeypatch.setattr(
        check_closures, "imports", lambda file, text, known: read(file, text.partition("\nxxx")[0], known)
    )


# library() has five files in addition to the parts: small, way, heavy, and two packages.
def test_a_small_closure_is_accepted() -> None:
    assert check_closures.problems(library(check_closures.FILES - 5)) == []
    assert check_closures.problems(library(10, "#" * 20 * 1024)) == []


def test_a_module_that_is_not_sent_may_import_anything() -> None:
    files = library(100)
    files[MODULE] = files[MODULE].replace("\nxxx", "\nnode_call.refuse(AnsibleModule())\nxxx", 1)
    assert check_closures.problems(files) == []


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (library(check_closures.FILES - 4), "imports 41 files, 1 KiB: at most 40 files, 250 KiB"),
        (library(10, "#" * 26 * 1024), "imports 15 files, 260 KiB"),
    ],
    ids=["files", "size"],
)
def test_a_closure_that_is_too_large_is_reported(files: dict[str, str], words: str) -> None:
    (line,) = check_closures.problems(files)
    assert line.startswith(f"{MODULE}: {words}")
    assert "comes by plugins/modules/gpu_facts.py -> core/way.py -> core/heavy.py. Without this import, 4" in line


def test_a_circle_of_imports_ends() -> None:
    files = {**library(0), "plugins/module_utils/core/heavy.py": "from . import way"}
    assert set(check_closures.closure(MODULE, check_closures.graph(files))) == {
        "plugins/module_utils/__init__.py",
        *(f"plugins/module_utils/core/{name}.py" for name in ("__init__", "small", "way", "heavy")),
    }


# The step lint runs the same check.
@pytest.mark.full
def test_the_collections_modules_are_small() -> None:
    assert check_closures.main() == 0
