# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fabric of the NVSwitches, which is ready some time after the start of its manager."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver import fabric
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.cuda import Check

WORKS = Check(True, 0, "CUDA_SUCCESS", 8, "13.0")
NOT_READY = Check(False, 802, "CUDA_ERROR_SYSTEM_NOT_READY", message="CUDA says 802: see the manager")


def gpu(state: str | None, status: str | None = None, address: str = "0000:1b:00.0") -> dict[str, Any]:
    return {"pci_bus_id": address, "uuid": None, "fabric": {"state": state, "status": status}}


UP, COMING = gpu("Completed", "Success"), gpu("In Progress", None, "0000:43:00.0")


class Machine:
    """A machine with an answer for each try. The last answer stays."""

    def __init__(self, *answers: tuple[Check, list[dict[str, Any]]]) -> None:
        self.answers = list(answers)
        self.now, self.asked = 0.0, 0

    def ask(self) -> Check:
        self.asked += 1
        self.current = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return self.current[0]

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def wait(self, seconds: float) -> Check:
        return fabric.wait(self.ask, lambda: self.current[1], seconds, self.sleep, lambda: self.now)


@pytest.mark.parametrize("gpus", [[UP, UP], [gpu(None)], [gpu("Completed")], []])
def test_a_fabric_that_is_up_is_not_waited_for(gpus: list[dict[str, Any]]) -> None:
    """A GPU for which nvidia-smi has no state, as before Hopper, is not waited for either."""
    machine = Machine((WORKS, gpus))
    assert machine.wait(300) == WORKS
    assert (machine.asked, machine.now) == (1, 0)


def test_a_fabric_that_comes_up_is_waited_for() -> None:
    answers = [(NOT_READY, [COMING, COMING]), (NOT_READY, [UP, COMING]), (WORKS, [UP, COMING]), (WORKS, [UP, UP])]
    machine = Machine(*answers)
    assert machine.wait(300) == WORKS
    assert machine.asked == 4


def test_an_ampere_machine_waits_for_cuda_alone() -> None:
    machine = Machine((NOT_READY, [gpu(None)]), (WORKS, [gpu(None)]))
    assert machine.wait(300).ok


def test_a_fabric_that_does_not_come_up_is_an_error() -> None:
    machine = Machine((NOT_READY, [UP, COMING]))
    found = machine.wait(300)
    assert (found.ok, found.code) == (False, 802)
    assert found.message == f"{NOT_READY.message}. Waited for 300 s (GPU 0000:43:00.0: In Progress)"
    assert 300 <= machine.now <= 310


def test_a_gpu_that_the_fabric_refuses_is_an_error() -> None:
    """CUDA starts on this GPU, but reaches no other GPU."""
    found = Machine((WORKS, [gpu("Completed", "Failure (0xf)")])).wait(7)
    assert (found.ok, found.code) == (False, 0)
    assert "nvidia-fabricmanager" in found.message and "0000:1b:00.0: Completed, Failure (0xf)" in found.message


def test_an_error_that_waiting_cannot_clear_is_returned_at_once() -> None:
    machine = Machine((Check(False, 999, message="broken"), [COMING]))
    assert machine.wait(300).message == "broken"
    assert machine.asked == 1
