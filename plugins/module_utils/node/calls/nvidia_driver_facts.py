# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The implementation of the module nvidia_driver_facts."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from ...core import commands
from ...core.call import Call
from ...core.gather_subset import chosen
from ...core.systemd import SystemdError
from ...debian.apt_pins import PinError
from ...hardware.driver import cuda, dkms, fabric, kernel_check
from ...hardware.driver.comparison import Comparison
from ...hardware.driver.facts import Reader
from ...hardware.driver.kernels import Kernel
from ...hardware.gpu import facts as gpu_facts

ROOT = Path("/")

DRIVER = "driver"
KERNEL_CHECK = "kernel_check"
CUDA = "cuda"
PARTS = (DRIVER, KERNEL_CHECK, CUDA)


def judge(kernels: list[Kernel], modules: list[dkms.Module], wanted: kernel_check.Wanted) -> dict[str, Any]:
    """The fact of the subset kernel_check."""
    candidates = wanted.among(modules)
    ready = [(kernel, kernel_check.ready(kernel, candidates)) for kernel in kernels]
    return {
        "kernels": [
            {
                "release": kernel.release,
                "headers": kernel.headers,
                "module": f"{module.name}/{module.version}" if module else None,
            }
            for kernel, module in ready
        ],
        "problems": [str(problem) for problem in kernel_check.problems(kernels, modules, wanted)],
    }


def refusal(found: dict[str, Any], warnings: list[str]) -> str:
    """Why the kernels do not pass the check; empty if they pass."""
    if warnings:
        return f"The kernels could not be read: {'; '.join(warnings)}. Correct this before you reboot the node."
    advice = "Do not reboot this node: a kernel could come up without the NVIDIA driver."
    return "\n- ".join([advice, *found["problems"]]) if found["problems"] else ""


def ask(library: str, timeout: float, fabric_wait: float) -> cuda.Check:
    """CUDA's result. With `fabric_wait`, in seconds, the call first waits for the fabric."""
    if not fabric_wait:
        return cuda.check(library, timeout)

    def gpus() -> list[dict[str, Any]]:
        found = gpu_facts.gather(
            Path("/"), lambda command: commands.run(command, timeout), "nvidia-smi", (gpu_facts.NVIDIA_SMI,), timeout
        )
        return list(found["gpus"])

    return fabric.wait(lambda: cuda.check(library, timeout), gpus, fabric_wait)


def shortfall(found: cuda.Check, devices: int | None, fabric_wait: float = 0) -> str:
    """Why CUDA does not find what the options require; empty if CUDA does, or if the options require nothing."""
    if not found.ok:
        fabric_down = fabric_wait and found.code in (0, fabric.NOT_READY)
        return found.message if devices is not None or fabric_down else ""
    if devices is None or found.devices == devices:
        return ""
    return (
        f"CUDA finds {found.devices} GPUs instead of {devices}: compare with lspci -d 10de:, read dmesg for lost GPUs, "
        "and check that CUDA_VISIBLE_DEVICES is not set"
    )


def compare(module: Call) -> dict[str, Any]:
    """The part of the result about the comparison. Fails if the plan has problems or the node cannot be read."""
    params = module.params
    wanted = params["compare"]
    decision = wanted["decision"]
    for warning in decision["warnings"]:
        module.warn(warning)
    if decision["problems"]:
        words = ["no driver fits. To correct:", *decision["problems"]]
        module.fail_json(msg="\n- ".join(words) + f"\n{wanted['advice']}")
    asked = (params["version"], params["kernels"], params["devices"])
    try:
        comparison = Comparison(wanted, *asked, module.run_command, params["timeout"], params["library"], ROOT)
        found, waits = comparison.reasons(), comparison.reboot_reason()
    except (PinError, SystemdError, OSError, UnicodeDecodeError) as error:
        module.fail_json(msg=str(error))
    return {"plan": decision["plan"], "due": bool(found), "reasons": found, "reboot_reason": waits}


def run(module: Call) -> None:
    """Answer a call."""
    params = module.params
    parts = chosen(params["gather_subset"], PARTS)
    facts: dict[str, Any] = {}
    if KERNEL_CHECK in parts:
        reader = Reader(Path("/"), commands.run, params["timeout"])
        wanted = kernel_check.Wanted(params["version"], "" if params["flavor"] == "any" else params["flavor"])
        modules = reader.dkms_modules()
        facts["nvidia_driver_boot"] = judge(reader.installed_kernels(params["kernels"]), modules, wanted)
        problem = refusal(facts["nvidia_driver_boot"], reader.warnings)
        if problem:
            module.fail_json(msg=problem, ansible_facts=facts)
    if DRIVER in parts:
        reader = Reader(Path("/"), commands.run, params["timeout"], Path(params["firmware_root"]))
        facts["nvidia_driver"] = reader.facts()
        for warning in reader.warnings:
            module.warn(warning)
    if CUDA in parts:
        found = ask(params["library"], params["timeout"], params["fabric_wait"])
        facts["cuda"] = asdict(found)
        problem = shortfall(found, params["devices"], params["fabric_wait"])
        if problem:
            module.fail_json(msg=problem, ansible_facts=facts)
    compared = compare(module) if params["compare"] else {}
    module.exit_json(changed=False, ansible_facts=facts, **compared)
