# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wrong imports and wrong includes are found, right ones are not."""

from __future__ import annotations

import check_layers
import pytest

FILES = {
    "plugins/module_utils/core/files.py": "",
    "plugins/module_utils/hardware/pci.py": "",
    "plugins/module_utils/gateway/keys.py": "",
    "plugins/module_utils/monitoring/api.py": "",
    "plugins/module_utils/node/__init__.py": "",
    "plugins/module_utils/node/agent.py": "",
    "plugins/module_utils/fleet/page.py": "",
    "plugins/modules/gpu_facts.py": "",
    "plugins/filter/fleet.py": "",
}
UTILS = "ansible_collections.baremetal.inference.plugins.module_utils"


def found(file: str, text: str) -> list[str]:
    return check_layers.wrong_imports({**FILES, file: text})


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("plugins/module_utils/hardware/pci.py", "from ..core import files"),
        ("plugins/module_utils/gateway/keys.py", "from ..core.files import write"),
        ("plugins/module_utils/node/agent.py", "from ..gateway import keys"),
        ("plugins/filter/fleet.py", f"from {UTILS}.fleet import page"),
        ("plugins/module_utils/node/agent.py", "from . import other"),
        ("plugins/module_utils/core/files.py", "import json"),
    ],
)
def test_imports_from_the_same_or_an_earlier_folder_are_accepted(file: str, text: str) -> None:
    assert found(file, text) == []


@pytest.mark.parametrize(
    ("file", "text", "line", "words"),
    [
        ("plugins/module_utils/core/files.py", "from ..hardware import pci", 1, "core may import from nothing"),
        (
            "plugins/module_utils/hardware/pci.py",
            "\nfrom ..gateway.keys import Key",
            2,
            "hardware may import from core, debian",
        ),
        ("plugins/module_utils/gateway/keys.py", "from ..monitoring import api", 1, "gateway may import from core"),
        (
            "plugins/module_utils/gateway/keys.py",
            "def f():\n    from ..node import agent",
            2,
            "gateway may import from",
        ),
        ("plugins/module_utils/fleet/page.py", "from ..node import agent", 1, "node/ is imported by node/ alone"),
        ("plugins/filter/fleet.py", f"from {UTILS}.node import agent", 1, "runs on the controller"),
        ("plugins/modules/gpu_facts.py", f"from {UTILS}.node import agent", 1, "by core/node_call.py"),
        ("plugins/modules/gpu_facts.py", f"from {UTILS}.fleet import page", 1, "controller's alone"),
        ("plugins/filter/fleet.py", "from ..modules import gpu_facts", 1, "a module is imported by nothing"),
    ],
)
def test_wrong_imports_are_reported_with_their_line(file: str, text: str, line: int, words: str) -> None:
    (problem,) = found(file, text)
    assert problem.startswith(f"{file}:{line}: imports plugins/")
    assert words in problem


def test_a_file_outside_of_the_known_folders_is_reported() -> None:
    assert "file is loose" in found("plugins/module_utils/pci.py", "")[0]
    assert "folder gpu is not one of core, debian" in found("plugins/module_utils/gpu/facts.py", "")[0]


def test_a_role_that_includes_another_role_is_reported() -> None:
    text = "- ansible.builtin.include_role:\n    name: baremetal.inference.{}\n    tasks_from: hold\n"
    roles = frozenset({"common", "docker", "maintenance", "vllm"})
    files = {
        "roles/docker/tasks/install.yml": text.format("common"),
        "roles/common/tasks/apt.yml": text.format("common"),
        "roles/maintenance/tasks/work.yml": text.format("vllm"),
    }
    (docker, maintenance) = check_layers.wrong_includes(files, roles)
    assert docker.startswith("roles/docker/tasks/install.yml:2: role docker includes role common")
    assert maintenance.startswith("roles/maintenance/tasks/work.yml:2: role maintenance includes role vllm")
