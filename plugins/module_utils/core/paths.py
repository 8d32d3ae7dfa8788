# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where things lie on a node. Private to the collection.

Every path is defined here once; tests pass another root.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Paths:
    """The node's layout below ``root`` (``/`` on a node, a temporary directory in tests)."""

    root: Path = Path("/")

    @property
    def etc(self) -> Path:
        """Desired state."""
        return self.root / "etc/inference"

    @property
    def state(self) -> Path:
        """What the node remembers: releases, drain intents, probe results."""
        return self.root / "var/lib/inference"

    @property
    def store_hashes(self) -> Path:
        """Hashes of the files in the store, so that a file is read once."""
        return self.state / "manifests.json"

    @property
    def docker_daemon(self) -> Path:
        """The keys of Docker's daemon.json that this collection has set."""
        return self.state / "docker-daemon.json"

    @property
    def gateway(self) -> Path:
        """What the running HAProxy has loaded, and the settings behind it."""
        return self.state / "gateway.json"

    @property
    def monitoring(self) -> Path:
        """What the running Prometheus and Alertmanager have loaded."""
        return self.state / "monitoring.json"

    @property
    def registry(self) -> Path:
        return self.etc / "registry.json"

    @property
    def instances(self) -> Path:
        return self.etc / "instances"

    def instance(self, name: str) -> Path:
        return self.instances / f"{name}.json"

    def env(self, name: str) -> Path:
        """The environment of the release whose unit is installed; mode 0600."""
        return self.etc / "env" / f"{name}.env"

    @property
    def all_releases(self) -> Path:
        return self.state / "releases"

    def releases(self, name: str) -> Path:
        return self.all_releases / name

    def release(self, name: str, number: int) -> Path:
        return self.releases(name) / str(number)

    def active(self, name: str) -> Path:
        """The link to the release whose unit is installed."""
        return self.releases(name) / "active"

    def current(self, name: str) -> Path:
        """The link to the release that last proved itself."""
        return self.releases(name) / "current"

    def known_good(self, name: str) -> Path:
        """Checksums of the files that the instance last proved itself with."""
        return self.state / "known-good" / f"{name}.json"

    def starts(self, name: str) -> Path:
        """How often the instance has tried to start in a row; there is no file once it has been ready."""
        return self.state / "starts" / f"{name}.json"

    @property
    def lock(self) -> Path:
        """The owner of the node's lock; there is no file while the node is not locked."""
        return self.state / "lock"

    @property
    def lock_guard(self) -> Path:
        """Held for a moment by every process that reads or changes the lock."""
        return self.state / ".lock.guard"

    def pin(self, name: str) -> Path:
        """The release that runs in the place of the inventory's."""
        return self.state / "pin" / f"{name}.json"

    def history(self, name: str) -> Path:
        """The releases that the instance has served with."""
        return self.state / "history" / f"{name}.json"

    def swap(self, name: str) -> Path:
        """The swap of releases that is under way."""
        return self.state / "swap" / f"{name}.json"

    def swap_meanwhile(self, name: str) -> Path:
        """The same in memory, for as long as the disk takes nothing."""
        return self.root / "run/inference/swap" / f"{name}.json"

    def swap_report(self, name: str) -> Path:
        """How the last swap of an instance ended."""
        return self.state / "swapped" / f"{name}.json"

    @property
    def swap_settings(self) -> Path:
        """The node's gateways, golden prompts and terms; mode 0600."""
        return self.etc / "swap.json"

    @property
    def gpu_settings(self) -> Path:
        """What is set on the GPUs at every boot."""
        return self.etc / "gpu-settings.json"

    @property
    def gpu_clocks(self) -> Path:
        """To which clocks the GPUs were locked since boot, which no driver tells."""
        return self.root / "run/inference/gpu-clocks.json"

    def hub_token(self, key: str) -> Path:
        """Shows a hub who fetches a model; there is no file once it is complete, nor after a boot."""
        return self.root / "run/inference" / f"hub-token-{key}"

    @property
    def share(self) -> Path:
        """What this node gives other nodes of the site while a playbook runs: the server, and who may ask it."""
        return self.root / "run/inference/share"

    @property
    def drains(self) -> Path:
        return self.state / "drain"

    def drain(self, name: str) -> Path:
        """The intent to keep requests away from an instance; there is no file while the instance is not drained."""
        return self.drains / name

    @property
    def probes(self) -> Path:
        return self.state / "probe"

    def probe(self, name: str) -> Path:
        """What the agent last found out about an instance."""
        return self.probes / f"{name}.json"

    def gateway_answers(self, name: str) -> Path:
        """When each gateway last asked the agent for an instance, and what it was answered."""
        return self.root / "run/inference/gateways" / f"{name}.json"

    @property
    def textfiles(self) -> Path:
        """Where node_exporter reads metrics of others; Debian's package of it brings the directory."""
        return self.root / "var/lib/prometheus/node-exporter"

    @property
    def probe_metrics(self) -> Path:
        return self.textfiles / "inference-probe.prom"

    def metrics(self, collector: str) -> Path:
        """What a collector of `inferctl metrics` has last told."""
        return self.textfiles / f"inference-{collector}.prom"

    @property
    def doctor_settings(self) -> Path:
        """Which checks are off, and where they draw the line."""
        return self.etc / "doctor.json"

    @property
    def recovery_settings(self) -> Path:
        """Budget and alerts of the recovery; mode 0600, for a webhook's address may hold a secret."""
        return self.etc / "recovery.json"

    @property
    def recovery(self) -> Path:
        """What the recovery remembers and keeps."""
        return self.state / "recovery"

    def recovered(self, name: str) -> Path:
        """What was done to an instance, and whether its breaker is open."""
        return self.recovery / f"{name}.json"

    def recovered_meanwhile(self, name: str) -> Path:
        """The same in memory, for as long as the disk takes nothing: a full one must not make a loop of restarts."""
        return self.root / "run/inference/recovered" / f"{name}.json"

    def deaths(self, name: str) -> Path:
        """When an instance that served has died and was restarted by systemd."""
        return self.recovery / "deaths" / f"{name}.json"

    def evidence(self, name: str) -> Path:
        """What was seen before each act, one directory each."""
        return self.recovery / "evidence" / name

    def aside(self, name: str) -> Path:
        """Managed files that were wrong, as they were found."""
        return self.recovery / "aside" / name

    @property
    def recovery_requests(self) -> Path:
        """Where the agent asks for a recovery: in memory, for a full disk is one of the things to recover from."""
        return self.root / "run/inference/recover"

    @property
    def command(self) -> Path:
        """The node tool; every unit calls it by this path."""
        return self.root / "usr/local/bin/inferctl"

    @property
    def library(self) -> Path:
        """The package that the node tool runs."""
        return self.root / "usr/local/lib/inference"

    @property
    def shipped_library(self) -> Path:
        """Archives of libraries that a run has sent to a node whose own library is missing, or of another version."""
        return self.root / "run/inference/library"

    @property
    def units(self) -> Path:
        return self.root / "etc/systemd/system"

    def unit(self, name: str) -> Path:
        return self.units / unit_name(name)

    @property
    def target(self) -> Path:
        return self.units / "inference.target"

    @property
    def agent_unit(self) -> Path:
        return self.units / AGENT_UNIT

    @property
    def metrics_units(self) -> dict[str, Path]:
        """The units that gather metrics, by name."""
        return {name: self.units / name for name in (METRICS_TEMPLATE, *METRICS_TIMERS)}

    @property
    def recovery_units(self) -> dict[str, Path]:
        """The units of the recovery, by name."""
        return {name: self.units / name for name in (RECOVERY_TEMPLATE, RECOVERY_DISPATCH, RECOVERY_PATH)}

    @property
    def swap_units(self) -> dict[str, Path]:
        """The units of swaps, by name."""
        return {name: self.units / name for name in (SWAP_TEMPLATE, GATES_UNIT)}


AGENT_UNIT = "inference-agent.service"

METRICS_TEMPLATE = "inference-metrics@.service"
METRICS_TIMERS = ("inference-metrics@node.timer", "inference-metrics@doctor.timer")
"""What is quick, and what takes its time."""

RECOVERY_TEMPLATE = "inference-recovery@.service"
RECOVERY_DISPATCH = "inference-recovery.service"
RECOVERY_PATH = "inference-recovery.path"

SWAP_TEMPLATE = "inference-swap@.service"
GATES_UNIT = "inference-gates.service"


def swap_unit(instance: str) -> str:
    """The unit that leads the swap of an instance."""
    return SWAP_TEMPLATE.replace("@", f"@{instance}")


def recovery_unit(instance: str) -> str:
    """The unit that recovers an instance once."""
    return RECOVERY_TEMPLATE.replace("@", f"@{instance}")


def unit_name(instance: str) -> str:
    """The systemd unit of an instance; also the journal tag without its suffix."""
    return f"vllm@{instance}.service"


def journal_tag(instance: str) -> str:
    """The tag under which the engine logs: ``journalctl -t vllm@NAME``."""
    return f"vllm@{instance}"


def container_name(instance: str) -> str:
    """The Docker container of an instance."""
    return f"vllm-{instance}"
