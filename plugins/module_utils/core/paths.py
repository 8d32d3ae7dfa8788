# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Paths of the collection's files on a node. Private to the collection.

Each path has only one definition. Tests use another root.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path


@dataclass(frozen=True)
class Paths:
    """The node's layout below ``root`` (``/`` on a node, a temporary directory in tests)."""

    root: Path = Path("/")

    @cached_property
    def etc(self) -> Path:
        """Desired state."""
        return self.root / "etc/inference"

    @cached_property
    def state(self) -> Path:
        """The node's state: releases, drains, probe results and more."""
        return self.root / "var/lib/inference"

    @property
    def store_hashes(self) -> Path:
        """Hashes of the files in the store, so that each file is read only once."""
        return self.state / "manifests.json"

    @property
    def docker_daemon(self) -> Path:
        """The keys of Docker's daemon.json that this collection has set."""
        return self.state / "docker-daemon.json"

    @property
    def image_signatures(self) -> Path:
        """The digests of images whose signatures were verified, with the fingerprints of the keys."""
        return self.state / "image-signatures.json"

    @property
    def gateway(self) -> Path:
        """The configuration that the running HAProxy has loaded, and its settings."""
        return self.state / "gateway.json"

    @property
    def monitoring(self) -> Path:
        """The configuration that the running Prometheus and Alertmanager have loaded."""
        return self.state / "monitoring.json"

    @property
    def registry(self) -> Path:
        return self.etc / "registry.json"

    @property
    def instances(self) -> Path:
        return self.etc / "instances"

    def instance(self, name: str) -> Path:
        return self.instances / f"{name}.json"

    @property
    def gang_key(self) -> Path:
        """The key with which the members of gangs prove who they are; mode 0600."""
        return self.etc / "gang.key"

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

    @property
    def flag_files(self) -> Path:
        """Files of the controller that flags of engines name, in a directory for each digest."""
        return self.state / "files"

    def flag_file(self, digest: str) -> Path:
        """The directory for the copy of a file or directory with this digest."""
        return self.flag_files / digest[:16]

    def active(self, name: str) -> Path:
        """The link to the release whose unit is installed."""
        return self.releases(name) / "active"

    def current(self, name: str) -> Path:
        """The link to the release that last proved itself."""
        return self.releases(name) / "current"

    def known_good(self, name: str) -> Path:
        """The known-good checksums of an instance."""
        return self.state / "known-good" / f"{name}.json"

    def starts(self, name: str) -> Path:
        """The number of starts in a row without success. There is no file after the instance has been ready."""
        return self.state / "starts" / f"{name}.json"

    @property
    def lock(self) -> Path:
        """The owner of the node's lock; there is no file while the node is not locked."""
        return self.state / "lock"

    @property
    def lock_guard(self) -> Path:
        """Each process that reads or changes the lock holds this file for a moment."""
        return self.state / ".lock.guard"

    def pin(self, name: str) -> Path:
        """The pin of an instance."""
        return self.state / "pin" / f"{name}.json"

    def history(self, name: str) -> Path:
        """The last releases with which the instance has served."""
        return self.state / "history" / f"{name}.json"

    def swap(self, name: str) -> Path:
        """The swap of an instance that is under way."""
        return self.state / "swap" / f"{name}.json"

    def swap_meanwhile(self, name: str) -> Path:
        """The copy of `swap` in memory, used while the disk cannot be written."""
        return self.root / "run/inference/swap" / f"{name}.json"

    def swap_report(self, name: str) -> Path:
        """The outcome of the last swap of an instance."""
        return self.state / "swapped" / f"{name}.json"

    @property
    def swap_settings(self) -> Path:
        """What swaps need: the node's name, gateways and golden prompts, and the terms of swaps; mode 0600."""
        return self.etc / "swap.json"

    @property
    def gpu_settings(self) -> Path:
        """The settings that are made on the GPUs at every boot."""
        return self.etc / "gpu-settings.json"

    @property
    def gpu_clocks(self) -> Path:
        """The clocks to which the GPUs were locked since the driver was loaded. The driver does not report them."""
        return self.root / "run/inference/gpu-clocks.json"

    @property
    def rdma_settings(self) -> Path:
        """The settings of RDMA rails that are made at every boot."""
        return self.etc / "rdma.json"

    @property
    def rdma_lock(self) -> Path:
        """The lock of processes that make settings of RDMA rails."""
        return self.root / "run/inference/rdma.lock"

    @property
    def rdma_waiting(self) -> Path:
        """The settings of RDMA rails that wait until the node is drained."""
        return self.state / "rdma-waiting.json"

    def hub_token(self, key: str) -> Path:
        """The token for a hub while a model is fetched. Removed when the model is complete or comes from elsewhere, and
        at a boot."""
        return self.root / "run/inference" / f"hub-token-{key}"

    @property
    def share(self) -> Path:
        """Files of the server that shares models with other nodes while a playbook runs.

        Not below /run/inference: the agent's unit makes that directory with mode 0700, and the server runs as
        another user.
        """
        return self.root / "run/inference-share"

    def gang(self, name: str) -> Path:
        """The supervisor's record of the gang of an instance."""
        return self.state / "gang" / f"{name}.json"

    def gang_move(self, name: str) -> Path:
        """The release to which a follower moves. Removed when its leader has accepted it."""
        return self.state / "gang-move" / f"{name}.json"

    @property
    def drains(self) -> Path:
        return self.state / "drain"

    def drain(self, name: str) -> Path:
        """The drain of an instance. The file of an expired drain may remain."""
        return self.drains / name

    @property
    def probes(self) -> Path:
        return self.state / "probe"

    def probe(self, name: str) -> Path:
        """The agent's last probe results of an instance."""
        return self.probes / f"{name}.json"

    def gateway_answers(self, name: str) -> Path:
        """Time and content of the agent's last answer to each gateway about an instance."""
        return self.root / "run/inference/gateways" / f"{name}.json"

    @property
    def textfiles(self) -> Path:
        """The directory from which node_exporter reads other programs' metrics. Debian's package creates it."""
        return self.root / "var/lib/prometheus/node-exporter"

    @property
    def probe_metrics(self) -> Path:
        return self.textfiles / "inference-probe.prom"

    def metrics(self, collector: str) -> Path:
        """The last metrics of a collector of `inferctl metrics`."""
        return self.textfiles / f"inference-{collector}.prom"

    @property
    def doctor_settings(self) -> Path:
        """The settings of the doctor: disabled checks, and limits of the other checks."""
        return self.etc / "doctor.json"

    @property
    def recovery_settings(self) -> Path:
        """Budget and alerts of recovery. Mode 0600, because the address of a webhook can contain a secret."""
        return self.etc / "recovery.json"

    @property
    def recovery(self) -> Path:
        """State and evidence of recovery."""
        return self.state / "recovery"

    def recovered(self, name: str) -> Path:
        """The steps that recovery took for an instance, and the state of its breaker."""
        return self.recovery / f"{name}.json"

    def recovered_meanwhile(self, name: str) -> Path:
        """The copy of `recovered` in memory, used while the disk cannot be written: a full disk must not cause endless
        restarts."""
        return self.root / "run/inference/recovered" / f"{name}.json"

    def deaths(self, name: str) -> Path:
        """The deaths of an engine that served, with the requests that were in flight."""
        return self.recovery / "deaths" / f"{name}.json"

    def evidence(self, name: str) -> Path:
        """The evidence before the last steps of recovery: one directory for each step."""
        return self.recovery / "evidence" / name

    def aside(self, name: str) -> Path:
        """Damaged files, in the state before recovery repaired them."""
        return self.recovery / "aside" / name

    @property
    def recovery_requests(self) -> Path:
        """The agent's requests for recovery. They are in memory, because recovery must also work with a full disk."""
        return self.root / "run/inference/recover"

    @property
    def command(self) -> Path:
        """The node tool. Units call it by this path."""
        return self.root / "usr/local/bin/inferctl"

    @property
    def library(self) -> Path:
        """The library of the node tool."""
        return self.root / "usr/local/lib/inference"

    @property
    def shipped_library(self) -> Path:
        """Archives of the library that runs have sent, because the node's library is missing or of another version."""
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
        """The units of recovery, by name."""
        return {name: self.units / name for name in (RECOVERY_TEMPLATE, RECOVERY_DISPATCH, RECOVERY_PATH)}

    @property
    def swap_units(self) -> dict[str, Path]:
        """The units of swaps, by name."""
        return {name: self.units / name for name in (SWAP_TEMPLATE, GATES_UNIT)}


AGENT_UNIT = "inference-agent.service"

METRICS_TEMPLATE = "inference-metrics@.service"
METRICS_TIMERS = ("inference-metrics@node.timer", "inference-metrics@doctor.timer")
"""The quick collectors, and the slow ones."""

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
    """The systemd unit of an instance."""
    return f"vllm@{instance}.service"


def journal_tag(instance: str) -> str:
    """The tag under which the engine logs: ``journalctl -t vllm@NAME``."""
    return f"vllm@{instance}"


def container_name(instance: str) -> str:
    """The Docker container of an instance."""
    return f"vllm-{instance}"
