# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Proposes driver, repositories, container toolkit and Docker for a machine, with reasons. Private to the collection.
Pure."""

from __future__ import annotations

from ...core.sizes import counted
from ...hardware.driver.choice import LONG_TERM, Node, Wish
from ...hardware.driver.compatibility import Compatibility
from ...hardware.driver.packages import NVIDIA
from ...hardware.driver.plan import decide
from ...hardware.gpu.driver import upstream
from ...models.flags.images import LEAST, last
from .finding import Proposal
from .machine import Machine, cards
from .names import DECIDE

EXACT = "580.105.08"
"""A full version of the newest branch with long-term support. Source: NVIDIA's repositories for Debian 12 and 13."""

CUDA_REPOSITORY = "https://developer.download.nvidia.com/compute/cuda/repos/debian{release}/x86_64/"
TOOLKIT_REPOSITORY = "https://nvidia.github.io/libnvidia-container/stable/deb/amd64/"
TOOLKIT = "1.20.0"

KEYS_DIRECTORY = "controller:{{ inventory_dir }}/group_vars/all/keys"
"""Where the inventory keeps the keys of repositories. Ansible reads files beside hosts.yml as inventories."""

KEY_URLS: dict[str, str] = {
    "nvidia-debian12.asc": "https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64/3bf863cc.pub",
    "nvidia-debian13.asc": "https://developer.download.nvidia.com/compute/cuda/repos/debian13/x86_64/8793F200.pub",
    "nvidia-container-toolkit.asc": "https://nvidia.github.io/libnvidia-container/gpgkey",
}
"""Where the vendor publishes the key of a repository, by the file's name in the directory keys."""

CUDA_FINGERPRINTS = {
    12: "EB693B3035CD5710E231E123A4B469963BF863CC",
    13: "02182E60104FCDC26EAE1B8597A5D4CB8793F200",
}
"""The fingerprint of the key of CUDA_REPOSITORY, by each Debian release of a node. The keys belong to
`cudatools <cudatools@nvidia.com>` and `Kitmaker (Debian 13 Trixie) <kitmaker@nvidia.com>`. The last eight digits are
NVIDIA's name for the file with the key."""

TOOLKIT_FINGERPRINT = "C95B321B61E88C1809C4F759DDCAE044F796ECB0"

WITH_CODE = (7, 5)
"""The least compute capability that images built with CUDA 13 have code for. Source: CUDA 13's release notes."""

DOCKERS_OWN = "28.*"
"""The tested version of Docker's own packages. It supports CDI."""


def propose(machine: Machine, known: Compatibility, cuda: str = "", month: str = "") -> Proposal:
    """The driver and everything that gives containers their GPUs. `cuda` is the CUDA version of the engines' image."""
    found = Proposal()
    if not machine.usable_gpus:
        return found
    version, reason = _version(machine, known)
    wish = Wish(NVIDIA, version, cuda=cuda)
    node = Node(machine.debian, machine.usable_gpus, machine.nvswitch, secure_boot=None, month=month)
    decision = decide(wish, node, known)
    found.findings += [*_present(machine, version), *decision.warnings]
    if decision.plan is None:
        found.findings += [f"no driver can be proposed: {problem}" for problem in decision.problems]
        found.ask(
            "nvidia_driver_version", DECIDE, f"no driver fits {cards(machine.usable_gpus)}: {decision.problems[0]}"
        )
        return found
    found.add("common_apt_sources", _sources(machine), "the repositories of the driver and of the container toolkit")
    branch = known.branches.get(decision.plan.branch)
    runs = f", which runs images with CUDA {branch.cuda} and earlier" if branch else ""
    found.add(
        "nvidia_driver_source",
        NVIDIA,
        f"NVIDIA's repository has branch {decision.plan.branch}{runs}"
        + ("; and the fabric manager that the NVSwitches need, in the driver's version" if machine.nvswitch else ""),
    )
    found.add(
        "nvidia_driver_version", version, f"{reason}. Kernel module {decision.plan.flavor}: {decision.plan.reason}"
    )
    found.add("docker_nvidia_toolkit_version", TOOLKIT, "gives containers their GPUs by CDI")
    _image(machine, found, cuda)
    _docker(machine, found)
    _secure_boot(machine, found)
    return found


def _image(machine: Machine, found: Proposal, cuda: str) -> None:
    """Ask for an older image, if the newest images have no code for the GPUs."""
    texts = [str(gpu.get("compute_capability") or "") for gpu in machine.usable_gpus]
    lowest = min((tuple(map(int, text.split("."))) for text in texts if "." in text), default=WITH_CODE)
    if lowest < WITH_CODE and not cuda:
        remedy = "Name an image with code for them, and set engine_cuda to its CUDA"
        if lowest < LEAST:
            remedy = "Remove the machine from the group inference, or replace its GPUs"
        found.ask(
            "engine_image",
            DECIDE,
            f"images built with CUDA 13 have no code for {cards(machine.usable_gpus)} ({machine.entry}); "
            f"{last((lowest[0], lowest[1]))}. {remedy}",
        )


def _version(machine: Machine, known: Compatibility) -> tuple[str, str]:
    """The wanted version, and why this version."""
    long_term = max(branch.branch for branch in known.branches.values() if branch.kind == LONG_TERM)
    if machine.nvswitch:
        return EXACT, "driver and fabric manager of NVSwitches must have exactly the same version"
    return str(long_term), "the newest branch with long-term support"


def _present(machine: Machine, wanted: str) -> list[str]:
    """A line about a driver that the machine has already. `wanted` is the proposed version, or its beginning."""
    package, version = machine.driver.get("package"), machine.driver.get("module_version")
    lines = []
    if package:
        fits = f"{upstream(package['version'])}.".startswith(f"{wanted}.")
        then = "" if fits else ": the first run replaces it"
        lines.append(f"has the driver of the package {package['name']} {package['version']}{then}")
    elif version:
        lines.append(
            f"has driver {version} of no package, probably of NVIDIA's installer: the first run removes it by "
            "nvidia-uninstall"
        )
    broken = machine.driver.get("error") or {}
    if version and broken:
        lines.append(f"its driver does not work: {broken.get('message') or broken.get('kind')}")
    return lines


def _sources(machine: Machine) -> list[dict[str, object]]:
    release = machine.debian or 0
    return [
        {
            "name": "nvidia",
            "uris": [CUDA_REPOSITORY.format(release=release)],
            "suites": ["/"],
            "key": f"{KEYS_DIRECTORY}/nvidia-debian{release}.asc",
            "fingerprints": [CUDA_FINGERPRINTS[release]],
        },
        {
            "name": "nvidia-container-toolkit",
            "uris": [TOOLKIT_REPOSITORY],
            "suites": ["/"],
            "key": f"{KEYS_DIRECTORY}/nvidia-container-toolkit.asc",
            "fingerprints": [TOOLKIT_FINGERPRINT],
        },
    ]


def _docker(machine: Machine, found: Proposal) -> None:
    """Propose a source of Docker that supports CDI."""
    owner = machine.docker.get("owner") or ""
    if owner == "snap":
        found.findings.append("has Docker as a snap, which cannot give GPUs to containers")
        found.ask("docker_source", DECIDE, f"{machine.entry} has Docker as a snap: who uses it, and may it be removed?")
    if owner in ("docker", "") and (owner or machine.debian == 12):
        reason = "Docker's own packages are installed already" if owner else "Debian 12's Docker does not support CDI"
        found.add("docker_source", "docker", reason)
        found.add("docker_version", DOCKERS_OWN, "a version that is tested with this collection")
    running = machine.docker.get("running") or []
    if running:
        found.findings.append(
            f"Docker runs {counted(len(running), 'container')} already ({', '.join(running[:5])}): the set-up takes "
            "over /etc/docker/daemon.json, and restarts Docker only if docker_restart_allowed is set"
        )


def _secure_boot(machine: Machine, found: Proposal) -> None:
    if machine.secure_boot.get("enabled") is None:
        found.findings.append(
            "it is unknown whether Secure Boot is on: run `mokutil --sb-state` there. If Secure Boot is on, read "
            "docs/hardware.md, Secure Boot, before the first run"
        )
    if machine.secure_boot.get("enabled"):
        found.findings.append("Secure Boot is on: the kernel loads the driver only after its signing key is enrolled")
        found.ask(
            "nvidia_driver_mok_password",
            "group_vars/all/vault.yml",
            f"{machine.entry} has Secure Boot on: switch it off, or set a password that a person types at the console "
            "at the next boot (docs/hardware.md, Secure Boot)",
        )
