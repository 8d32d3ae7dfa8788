# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules that keep a node in order: what they would do, what they do, and that they do it once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import basic

from ansible_collections.baremetal.inference.plugins.module_utils.core import commands, files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.debian import apt_pins
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instances import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Settings, render
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import releases
from ansible_collections.baremetal.inference.plugins.module_utils.maintenance import docker_disk
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored import StoredModel
from ansible_collections.baremetal.inference.plugins.modules import maintenance_facts, node_cleanup, package_updates

RunModule = Callable[..., dict[str, Any]]


class Apt:
    """A node's packages: `offers` are the newer versions, as apt-get simulates them."""

    def __init__(self) -> None:
        self.installed = {
            "curl": ["install", "installed", "1"],
            "tzdata": ["install", "installed", "1"],
            "docker.io": ["hold", "installed", "1"],
        }
        self.offers = {"curl": "2 Debian-Security:12/stable-security", "tzdata": "2 Debian:12/stable"}
        self.takes_along: list[str] = []
        self.fails = ""
        self.calls: list[str] = []

    def __call__(self, _module: object, argv: list[str], **more: Any) -> tuple[int, str, str]:
        words = [word for word in argv if not word.startswith("--") or word in ("--simulate", "--configure")]
        if argv[0] == "dpkg-query":
            rows = [f"{want} {status} {name} {version}" for name, (want, status, version) in self.installed.items()]
            return 0, "\n".join(rows), ""
        if "--simulate" not in words:
            self.calls.append(" ".join([*words, more.get("data", "").strip()]).strip())
        if self.fails and "--simulate" not in words:
            return 100, "", f"E: {self.fails}"
        names = [word.partition("=")[0] for word in words[words.index("install") + 1 :]] if "install" in words else None
        if argv[0] == "apt-get" and "--simulate" in words:
            return 0, "\n".join([*self.simulated(names), *self.takes_along]), ""
        if argv[0] == "apt-get":
            for name in names or ():
                self.installed[name] = ["install", "installed", self.offers.pop(name).split()[0]]
        if argv[:2] == ["dpkg", "--configure"]:
            for package in self.installed.values():
                package[1] = "installed"
        return 0, "", ""

    def simulated(self, names: list[str] | None) -> list[str]:
        # An upgrade leaves what is on hold.
        chosen = [name for name in self.offers if self.installed[name][0] != "hold"] if names is None else names
        return [f"Inst {name} [{self.installed[name][2]}] ({self.offers[name]} [amd64])" for name in chosen]


@pytest.fixture
def apt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Apt:
    apt = Apt()

    def run_command(*given: Any, **more: Any) -> Any:
        return apt(*given, **more)

    monkeypatch.setattr(basic.AnsibleModule, "run_command", run_command)
    monkeypatch.setattr(apt_pins, "ETC_APT", tmp_path)
    blacklist = tmp_path / "apt.conf.d" / apt_pins.file_name("docker")
    blacklist.parent.mkdir()
    item = '        "^docker\\.io$";\n'
    blacklist.write_text(f"// {apt_pins.HEADER}\nUnattended-Upgrade::Package-Blacklist {{\n{item}}};\n")
    return apt


def test_security_updates_come_and_then_no_more(apt: Apt, run_module: RunModule) -> None:
    foreseen = run_module(package_updates, check=True)
    assert foreseen["lines"] == ["curl 1 -> 2"] and foreseen["changed"] and apt.calls == []
    assert foreseen["held"] == ["docker.io"]
    found = run_module(package_updates)
    assert found["updates"] == [{"name": "curl", "old": "1", "new": "2"}]
    assert apt.calls == ["apt-get install curl=2"]
    assert run_module(package_updates)["changed"] is False


@pytest.mark.parametrize(("mode", "names"), [("all", ["curl", "tzdata"]), ("none", [])])
def test_other_updates(apt: Apt, run_module: RunModule, mode: str, names: list[str]) -> None:
    assert [one["name"] for one in run_module(package_updates, mode=mode)["updates"]] == names


def test_what_is_held_comes_only_with_its_own_word_and_stays_held(apt: Apt, run_module: RunModule) -> None:
    apt.offers["docker.io"] = "1.1 Debian:12/stable"
    assert "docker.io" not in str(run_module(package_updates, mode="all", check=True)["updates"])
    found = run_module(package_updates, mode="security", release=["docker"])
    assert [one["name"] for one in found["updates"]] == ["curl", "docker.io"]
    assert "docker.io hold" in apt.calls[-1]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("Remv nginx [1]", "it would remove nginx"),
        ("Inst docker.io [1] (2 Debian:12/stable [amd64])", "it would change docker.io, which is on hold"),
    ],
)
def test_what_takes_others_along_is_refused(apt: Apt, run_module: RunModule, line: str, words: str) -> None:
    apt.takes_along = [line]
    found = run_module(package_updates)
    assert found["failed"] and words in found["msg"] and "Nothing was changed" in found["msg"]
    assert apt.calls == []


def test_what_failed_half_way_is_finished(apt: Apt, run_module: RunModule) -> None:
    apt.installed["tzdata"][1] = "half-configured"
    assert run_module(package_updates, mode="none", check=True)["lines"] == ["finish tzdata"]
    found = run_module(package_updates, mode="none")
    assert found["finished"] == ["tzdata"] and apt.calls == ["dpkg --configure"]
    assert run_module(package_updates, mode="none")["changed"] is False


def test_an_update_that_fails_says_why(apt: Apt, run_module: RunModule) -> None:
    apt.fails = "disk full"
    assert "disk full" in run_module(package_updates)["msg"]


# --- clean-up


@pytest.fixture
def journals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A journal with one archived file of a MiB."""
    directory = tmp_path / "journal/machine"
    directory.mkdir(parents=True)
    for name in ("system.journal", "system@1.journal"):
        (directory / name).write_bytes(b"x" * (1 << 20))
    monkeypatch.setattr(node_cleanup, "JOURNALS", (tmp_path / "journal",))
    monkeypatch.setattr(node_cleanup, "LOGROTATE", tmp_path / "logrotate.conf")
    monkeypatch.setattr(node_cleanup, "MEMORY", tmp_path / "status")
    monkeypatch.setattr(node_cleanup.Docker, "path", tmp_path / "no.sock", raising=False)
    return directory


def test_the_journal_is_cut_once(journals: Path, run_module: RunModule, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def run(_module: object, argv: list[str], **_more: Any) -> tuple[int, str, str]:
        asked.append(argv)
        (journals / "system@1.journal").unlink()
        return 0, "", "Vacuuming done, freed 1.0M of archived journals from /var/log/journal/machine.\n"

    monkeypatch.setattr(basic.AnsibleModule, "run_command", run)
    foreseen = run_module(node_cleanup, check=True, images=False, journal_max_mib=1)
    assert foreseen["changed"] and foreseen["freed_bytes"] == 1 << 20 and asked == []
    found = run_module(node_cleanup, images=False, journal_max_mib=1, journal_max_days=3)
    assert found["lines"] == ["1 files of the journal: 1.0 MiB"]
    assert asked == [["journalctl", "--vacuum-size=1048576", "--vacuum-time=259200s"]]
    assert run_module(node_cleanup, images=False, journal_max_mib=1)["changed"] is False
    assert len(asked) == 1


def test_logs_are_rotated(journals: Path, run_module: RunModule, monkeypatch: pytest.MonkeyPatch) -> None:
    node_cleanup.LOGROTATE.write_text("")
    node_cleanup.MEMORY.write_text('"/var/log/a.log" 2026-11-1-0:0:0\n')

    def run(_module: object, argv: list[str], **_more: Any) -> tuple[int, str, str]:
        if "--debug" in argv:
            return 0, "", "considering log /var/log/a.log\n  log needs rotating\n"
        node_cleanup.MEMORY.write_text('"/var/log/a.log" 2026-11-21-0:0:0\n')
        return 0, "", ""

    monkeypatch.setattr(basic.AnsibleModule, "run_command", run)
    monkeypatch.setattr(basic.AnsibleModule, "get_bin_path", lambda *_given: "/usr/sbin/logrotate")
    assert run_module(node_cleanup, check=True, images=False)["lines"] == ["rotate /var/log/a.log"]
    assert run_module(node_cleanup, images=False)["lines"] == ["rotate /var/log/a.log"]
    assert run_module(node_cleanup, images=False)["changed"] is False


def test_a_program_that_fails_is_told(journals: Path, run_module: RunModule, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(basic.AnsibleModule, "run_command", lambda *_given, **_more: (1, "", "no space"))
    found = run_module(node_cleanup, images=False, journal_max_mib=1)
    assert found["failed"] and "no space" in found["msg"]


def test_the_inventorys_image_is_kept(run_module: RunModule, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[docker_disk.Disk] = []

    def clean(disk: docker_disk.Disk, *, caches: bool, check: bool) -> list[docker_disk.Item]:
        seen.append(disk)
        assert caches and check
        return [docker_disk.Item("image", "vllm@sha256:old", 3 << 30)]

    monkeypatch.setattr(docker_disk.Disk, "clean", clean)
    (tmp_path / "docker.sock").touch()
    monkeypatch.setattr(node_cleanup, "Docker", lambda: docker_disk.Docker(tmp_path / "docker.sock"))
    found = run_module(node_cleanup, check=True, logs=False, keep=["vllm@sha256:new"])
    assert found["freed_gib"] == 3.0 and found["lines"] == ["image vllm@sha256:old: 3.0 GiB"]
    assert seen[0].keep == {"vllm@sha256:new"} and seen[0].repositories == {"vllm"}


def test_releases_that_nobody_goes_back_to_go_with_their_images(
    run_module: RunModule, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[docker_disk.Disk] = []
    paths = Paths(tmp_path)
    for number in (1, 2, 3):
        settings = Settings()
        instance = Instance(name="main", model="tiny-a", port=5005, accelerator="cpu")
        made = render(instance, [], StoredModel("/m/a", "r"), f"vllm-{number}@sha256:0", settings, number=number)
        files.write(paths.release("main", number) / "release.json", made.release.to_json())
    # Damaged, and of no use: it does not keep the others.
    files.write(paths.release("main", 2) / "release.json", "")
    files.write_json(paths.instance("main"), {"release": 3})

    def clean(disk: docker_disk.Disk, *, caches: bool, check: bool) -> list[docker_disk.Item]:
        seen.append(disk)
        return []

    monkeypatch.setattr(docker_disk.Disk, "clean", clean)
    monkeypatch.setattr(node_cleanup, "Paths", lambda: paths)
    (tmp_path / "docker.sock").touch()
    monkeypatch.setattr(node_cleanup, "Docker", lambda: docker_disk.Docker(tmp_path / "docker.sock"))
    predicted = run_module(node_cleanup, check=True, logs=False, keep_releases=1)
    assert releases.numbers(paths, "main") == [1, 2, 3]
    done = run_module(node_cleanup, logs=False, keep_releases=1)
    assert done["lines"] == predicted["lines"] == ["release 1 of main", "release 2 of main"]
    assert releases.numbers(paths, "main") == [3]
    # What they needed goes in check mode, too, and their repositories are ours although nobody else has one.
    for disk in seen:
        assert disk.repositories == {"vllm-1"} and disk.without == {("main", 1), ("main", 2)}
        assert docker_disk.kept_images(paths, disk.without) == {"vllm-3@sha256:0"}
    assert not run_module(node_cleanup, logs=False, keep_releases=1)["changed"]


# --- facts


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text(
        f"22 1 8:1 / {tmp_path} rw shared:1 - ext4 /dev/sda1 rw\n23 22 0:5 / /proc rw - proc proc rw\n"
        f"24 22 0:9 / {tmp_path}/proc rw - overlay overlay rw\n"
    )
    monkeypatch.setattr(maintenance_facts, "ROOT", tmp_path)
    monkeypatch.setattr(commands, "run", lambda *_given: commands.Outcome(None, failure=commands.NOT_INSTALLED))
    return tmp_path


def test_a_node_that_wants_nothing(root: Path, run_module: RunModule) -> None:
    found = run_module(maintenance_facts)
    assert (found["reboot_reasons"], found["driver"], found["certificates"], found["models"]) == ([], False, [], 0)
    assert len(found["disks"]) == 1 and str(root) in found["disks"][0]


def test_a_reboot_that_is_due(root: Path, run_module: RunModule) -> None:
    (root / "run").mkdir()
    (root / "run/reboot-required").touch()
    (root / "run/reboot-required.pkgs").write_text("libc6\ndbus\n")
    assert run_module(maintenance_facts)["reboot_reasons"] == ["libc6, dbus"]


def test_a_driver_that_dkms_builds(root: Path, run_module: RunModule, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "nvidia/580.105.08, 6.1.0-50-amd64, x86_64: installed\n"
    monkeypatch.setattr(commands, "run", lambda *_given: commands.Outcome(0, said))
    assert run_module(maintenance_facts)["driver"] is True


def test_a_certificate_that_is_not_there(root: Path, run_module: RunModule) -> None:
    (found,) = run_module(maintenance_facts, certificates=["/nowhere/tls.pem"])["certificates"]
    assert found["status"] == "fail" and found["words"].startswith("is not there")


def test_a_model_that_is_damaged(root: Path, run_module: RunModule, write_model: Callable[..., Path]) -> None:
    from ansible_collections.baremetal.inference.plugins.module_utils.store.hashes import HashCache, build
    from ansible_collections.baremetal.inference.plugins.module_utils.store.store import Store

    source = write_model(root / "source")
    manifest, _problems = build(source, "m", HashCache())
    assert manifest
    store = Store(root / "store", HashCache())
    plan = store.plan("m", manifest)
    store.publish(plan, source)
    given = {"store": str(root / "store"), "cache": str(root / "state/manifests.json")}
    assert run_module(maintenance_facts, **given)["damaged"] == []
    assert run_module(maintenance_facts, **given)["models"] == 1
    shard = plan.path / "model-00001-of-00002.safetensors"
    shard.chmod(0o644)
    shard.write_bytes(b"x")
    (damage, *_more) = run_module(maintenance_facts, **given)["damaged"]
    assert damage.startswith(f"m/{manifest.revision}: ") and shard.name in damage
    (plan.path / "manifest.json").write_text(json.dumps({"schema": 1}))
    assert "manifest.json" in run_module(maintenance_facts, **given)["damaged"][0]
