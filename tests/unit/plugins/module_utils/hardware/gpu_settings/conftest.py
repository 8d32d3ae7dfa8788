# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs whose settings a fake of nvidia-smi changes.

The script runs in this process: a process for each call would take longer than all other work of the tests.
test_boot.py and the tests of the module gpu_settings show that the collection runs a program, and limits its time.
"""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu_settings.apply import Result, Setter
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu_settings.clocks import Clocks
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu_settings.settings import Wanted

FAKE = Path(__file__).with_name("fake_nvidia_smi.py")
PARTS = runpy.run_path(str(FAKE))


class Machine:
    """A node with GPUs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.driver = 1
        self.nvidia_smi: Callable[[list[str]], Outcome] = self._call
        self.plug(1)

    def plug(self, count: int, **more: Any) -> None:
        """Give the node this number of equal GPUs."""
        self.put([PARTS["gpu"](number, **more) for number in range(count)])

    def put(self, gpus: list[dict[str, Any]], **more: Any) -> None:
        (self.root / "gpus.json").write_text(json.dumps({"gpus": gpus, **more}))

    @property
    def gpus(self) -> list[dict[str, Any]]:
        gpus: list[dict[str, Any]] = json.loads((self.root / "gpus.json").read_text())["gpus"]
        return gpus

    def edit(self, number: int = 0, **more: Any) -> None:
        """Change the state of a GPU by hand."""
        gpus = self.gpus
        gpus[number] |= more
        self.put(gpus)

    def reboot(self) -> None:
        gpus = self.gpus
        PARTS["reboot"](gpus)
        self.put(gpus)
        self.driver += 1

    def _call(self, arguments: list[str]) -> Outcome:
        """One call of the script."""
        code, output = PARTS["call"](self.root, arguments)
        return Outcome(code, f"{output}\n")

    def calls(self) -> list[str]:
        """The calls that may have changed something, since this method was last called."""
        log = self.root / "calls.log"
        text = log.read_text() if log.exists() else ""
        log.unlink(missing_ok=True)
        return text.splitlines()

    def settle(
        self,
        settings: Mapping[str, Any],
        *overrides: Mapping[str, Any],
        check: bool = False,
        all_or_nothing: bool = True,
    ) -> Result:
        """Set the GPUs; with `check`, predict the changes."""
        clocks = Clocks.read(self.root / "clocks.json", self.driver)
        setter = Setter(self.nvidia_smi, clocks, Wanted.of(settings, overrides))
        if check:
            return setter.foresee()
        result = setter.apply(all_or_nothing)
        clocks.write()
        return result


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)
