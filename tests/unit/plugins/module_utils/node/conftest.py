# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node of files: an instance with its release, GPUs on the bus, programs, and secrets in many files."""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import commands, files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Rendered, Settings, render
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import releases
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor import host
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.settings import (
    Settings as RecoverySettings,
)
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored_model import StoredModel

GPU = {"vendor": "0x10de", "device": "0x2330", "class": "0x030200"}


GPU_DATA = Path(__file__).parents[1] / "hardware/gpu/data"


def missing(program: str) -> Outcome:
    """The outcome of a program that is not installed."""
    return Outcome(None, failure="not_installed", message=f"{program} is not installed")


def write(path: Path, text: str) -> None:
    """A file, with the directories above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def plug(root: Path, *addresses: str) -> None:
    """GPUs on the PCI bus, bound to NVIDIA's driver."""
    for address in addresses:
        device = root / "sys/bus/pci/devices" / address
        for name, text in GPU.items():
            write(device / name, text)
        (device / "driver").symlink_to("../../drivers/nvidia")


def install(
    paths: Paths,
    name: str = "main",
    *,
    accelerator: str = "cpu",
    gpus: Sequence[str] = (),
    environment: dict[str, str] | None = None,
    engine_argv: Sequence[str] = (),
    image: str = "image",
    model: str = "tiny-a",
    directory: str = "models/tiny-a",
    revision: str = "r",
) -> int:
    """The next release of an instance, installed and proven, with its model's directory below the root. Returns its
    number."""
    stored = StoredModel(str(paths.root / directory), revision)
    (paths.root / directory).mkdir(parents=True, exist_ok=True)
    instance = Instance(name=name, model=model, port=5005, accelerator=accelerator, gpus=tuple(gpus))
    settings = Settings(environment=environment or {})

    def rendered(number: int) -> Rendered:
        return render(instance, [*engine_argv], stored, image, settings, number=number)

    staged, _changed = releases.stage(paths, name, rendered(0).release.id, rendered, pytest.fail)
    releases.activate(paths, name, staged.release.number)
    releases.commit(paths, name, staged.release.number)
    return staged.release.number


KEY, OLD_KEY, HOOK = "key-of-the-engine", "key-of-an-earlier-release", "https://alerts.example/in/4f2a9b"


PROMPT = "my medical history"


class Tools:
    """The programs of a node. `outcomes` has the outcomes of some commands; other programs print their names and KEY.

    Programs of `absent` are not installed.
    """

    def __init__(self) -> None:
        self.outcomes: dict[str, Outcome] = {}
        self.absent = {"nvidia-bug-report.sh", "dkms"}
        self.calls: list[Sequence[str]] = []
        self.report = ""

    def run(self, command: Sequence[str], _timeout: float, *_more: object, **_options: object) -> Outcome:
        self.calls.append(command)
        if command[0] in self.absent:
            return missing(command[0])
        if command[0] == "nvidia-bug-report.sh":
            with gzip.open(f"{command[2]}.gz", "wt") as log:
                log.write(self.report)
        return self.outcomes.get(" ".join(command), Outcome(0, f"{command[0]} with {KEY}\n"))


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Tools:
    tools = Tools()
    monkeypatch.setattr(commands, "run", tools.run)
    monkeypatch.setattr(host.Host.__init__, "__defaults__", (tools.run, None, None))
    return tools


@pytest.fixture
def secret_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    """A node with one instance, two releases, and secrets in many files."""
    paths = Paths(tmp_path / "root")

    for key in (OLD_KEY, KEY):
        install(paths, environment={"VLLM_API_KEY": key})
    files.write_json(paths.recovery_settings, RecoverySettings(webhook=HOOK).to_json())
    registry = {"schema": 1, "models": {"bot": {"system-prompt": PROMPT, "dtype": "float32"}}}
    files.write_json(paths.registry, registry)
    files.write(paths.evidence("main") / "2026-05-04T030000Z/engine.log", f"last words {KEY}\n", 0o600)
    files.write(paths.aside("main") / "2026-main.env", "VLLM_API_KEY=key-that-was-wrong\n", 0o600)
    files.write(paths.root / "etc/docker/daemon.json", '{"proxies": {"http-proxy": "http://a:hunter2@p.example"}}')
    files.write(paths.root / "var/log/kern.log", "[  5.0] NVRM: Xid (PCI:0000:1b:00): 79, pid=1, off the bus\n")
    unit = {
        "LoadState": "loaded",
        "ActiveState": "active",
        "SubState": "running",
        "NRestarts": "0",
        "Result": "success",
    }
    monkeypatch.setattr(
        systemd,
        "show",
        lambda names, properties: {name: {key: unit.get(key, "") for key in properties} for name in names},
    )
    return paths


def unpack(path: Path) -> dict[str, str]:
    """The texts of a bundle, by their names in the bundle."""
    with tarfile.open(path) as bundle:
        members = {member.name.partition("/")[2]: member for member in bundle.getmembers()}
        assert {member.mode for member in members.values()} == {0o600}
        return {name: bundle.extractfile(member).read().decode() for name, member in members.items()}  # type: ignore[union-attr]  # each is a file
