# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks that Docker answers, and that containers have their GPUs. Private to the collection."""

from __future__ import annotations

from ...core.docker_api import DockerError, DockerUnavailable
from ...core.sizes import counted
from ...hardware import cdi, container_gpus
from ..recovery import inspect
from .check import FAIL, OK, WARN, CannotTell, Check, Finding
from .driver import NO_GPU, applies
from .host import TOOL_TIMEOUT, Host


def answers(host: Host) -> Finding:
    """dockerd answers. With live-restore, engines run without it, but none can start."""
    try:
        host.docker.ping()
    except (DockerUnavailable, DockerError) as error:
        if not host.releases() and not host.docker.path.exists():
            return Finding(OK, "does not apply: there is no Docker, and no instance")
        ends = (
            "engines continue (live-restore)" if inspect.live_restore(host.paths) else "engines end (no live-restore)"
        )
        return Finding(FAIL, str(error), f"systemctl restart docker: {ends}")
    return Finding(OK, "answers")


def specification(host: Host) -> Finding:
    """The CDI specifications fit this driver and these GPUs."""
    if not applies(host):
        return NO_GPU
    specs = cdi.read(host.root)
    broken = [f"{spec.path} {spec.error}" for spec in specs if spec.error]
    if broken and not any(spec.kind == cdi.KIND for spec in specs):
        raise CannotTell("; ".join(broken), "remove these files, then run baremetal.inference.site")
    reality = cdi.reality(host.driver().module_version, host.gpus()["gpus"])
    findings = cdi.judge(host.root, specs, reality)
    why = cdi.refresh_reason(findings, reality)
    stale = [f"{finding.spec.path} {finding.stale}" for finding in findings if finding.stale]
    if why:
        return Finding(FAIL if host.wants_gpus() else WARN, why, "systemctl restart nvidia-cdi-refresh")
    if stale:
        return Finding(WARN, "; ".join(stale), "run baremetal.inference.site, which moves these files away")
    return Finding(OK, f"{cdi.OWN} fits this driver")


def gpus(host: Host) -> Finding:
    """Containers can still open their GPUs. A daemon-reload may have cut them off."""
    if not applies(host):
        return NO_GPU
    found = container_gpus.find(lambda command: host.run(command, TOOL_TIMEOUT), host.root)
    if found.error:
        raise CannotTell(found.error, "docker ps; systemctl status docker")
    lost = [
        f"{container.name} cannot open {', '.join(container.lost)}" for container in found.containers if container.lost
    ]
    if lost:
        return Finding(FAIL, "; ".join(lost), "restart these containers; request GPUs by CDI instead of --gpus")
    untried = [f"{container.name}: {container.error}" for container in found.containers if container.error]
    if untried:
        raise CannotTell("; ".join(untried), "docker inspect NAME; docker exec NAME ls -l /dev")
    number = len(found.containers)
    return Finding(OK, f"{counted(number, 'container')} can open {'its' if number == 1 else 'their'} GPUs")


CHECKS = (
    Check("docker-answers", answers),
    Check("docker-cdi", specification),
    Check("docker-gpus", gpus),
)
