# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks that the NVIDIA driver is loaded, is the installed one, has its device nodes, serves CUDA, and will load after
the next boot. Private to the collection."""

from __future__ import annotations

from ...core.commands import NOT_INSTALLED
from ...hardware.driver import cuda, dkms, kernel_check, kernels
from .check import FAIL, OK, WARN, CannotTell, Check, Finding
from .host import TOOL_TIMEOUT, Host

NO_GPU = Finding(OK, "does not apply: there is no NVIDIA GPU, and no instance wants one")

UVM_NODES = ("dev/nvidiactl", "dev/nvidia-uvm")
"""Without /dev/nvidia-uvm, nvidia-smi works, but CUDA does not."""

MISSING_GPUS = ("gpu_lost", "gpu_missing", "no_devices", "gpu_handle_error")
"""Failures of nvidia-smi that the check gpu-count reports."""


def applies(host: Host) -> bool:
    """Whether this node has a driver, or should have one."""
    return host.has_gpus() or host.wants_gpus()


def loaded(host: Host) -> Finding:
    """The kernel module is loaded, and nvidia-smi reaches it."""
    if not applies(host):
        return NO_GPU
    failure = host.gpus()["gpu_driver"]["error"]
    version = host.driver().module_version
    if version is None:
        return Finding(FAIL, "the kernel module nvidia is not loaded", "modprobe nvidia; see dmesg and dkms status")
    if failure and failure["kind"] in ("timeout", "endless_output"):
        raise CannotTell(failure["message"], "a GPU may hang: see dmesg and ps -eo pid,stat,wchan,args")
    if failure and failure["kind"] in ("driver_not_loaded", "driver_library_mismatch", "library_not_found"):
        return Finding(FAIL, failure["message"], "reboot, or unload and load the driver's modules")
    if failure and failure["kind"] == NOT_INSTALLED:
        return Finding(WARN, failure["message"], "install nvidia-smi: without it, the GPUs' health is unknown")
    if failure and failure["kind"] not in MISSING_GPUS:
        # No other check reports such an error, for example of a power cable that is not attached.
        return Finding(WARN, failure["message"], "nvidia-smi; see dmesg")
    return Finding(OK, f"driver {version} is loaded")


def package(host: Host) -> Finding:
    """The loaded driver is the installed one. After an upgrade without a reload, the next start of an engine fails."""
    if not applies(host):
        return NO_GPU
    driver = host.driver()
    advice = "reboot, or unload and load the driver's modules; hold the packages"
    if driver.module_version and driver.library_version and driver.module_version != driver.library_version:
        message = f"the loaded module is {driver.module_version}, the libraries are {driver.library_version}"
        return Finding(FAIL, message, advice)
    if driver.matches_package is None:
        raise CannotTell(
            "not exactly one package of the kernel module is installed, or no module is loaded",
            "dpkg -l '*nvidia*'; cat /proc/driver/nvidia/version",
        )
    if driver.matches_package:
        return Finding(OK, f"module and package are {driver.module_version}")
    installed = driver.package.version if driver.package else "unknown"
    return Finding(FAIL, f"the loaded module is {driver.module_version}, the installed package {installed}", advice)


def nodes(host: Host) -> Finding:
    """The device nodes that CUDA opens exist."""
    if not applies(host):
        return NO_GPU
    missing = [f"/{node}" for node in UVM_NODES if not (host.root / node).exists()]
    if missing:
        return Finding(FAIL, f"{' and '.join(missing)} missing: CUDA fails", "nvidia-modprobe -c 0 -u")
    return Finding(OK, "nvidiactl and nvidia-uvm exist")


def cuda_works(host: Host) -> Finding:
    """cuInit succeeds, as an engine calls it. On some nodes nvidia-smi works, but cuInit fails."""
    if not applies(host):
        return NO_GPU
    found = cuda.check(cuda.LIBRARY, TOOL_TIMEOUT, host.run)
    if found.ok:
        return Finding(OK, f"CUDA {found.cuda_version or 'works'} sees {found.devices} devices")
    if found.code is None:
        raise CannotTell(found.message, "nvidia-smi; see dmesg")
    return Finding(FAIL, found.message, "nvidia-smi; see dmesg; then drain the node and reboot it")


def next_kernel(host: Host) -> Finding:
    """Every kernel that may boot has the driver's module."""
    if not applies(host):
        return NO_GPU
    installed = kernels.installed(host.root)
    if not installed:
        raise CannotTell(
            "there is no kernel in /boot: this machine boots from elsewhere",
            "before the next reboot, make sure that the driver is built for the kernel that will boot: dkms status",
        )
    modules = dkms.parse(host.ask("dkms", "status"))
    problems = kernel_check.problems(installed, modules, kernel_check.Wanted())
    if problems:
        return Finding(WARN, "; ".join(map(str, problems)), "correct this before the next reboot, or the GPUs are gone")
    return Finding(OK, f"built for {', '.join(kernel.release for kernel in installed)}")


CHECKS = (
    Check("driver-loaded", loaded),
    Check("driver-package", package),
    Check("driver-nodes", nodes),
    Check("driver-cuda", cuda_works),
    Check("driver-kernels", next_kernel),
)
