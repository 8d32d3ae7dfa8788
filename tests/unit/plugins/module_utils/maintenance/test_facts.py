# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node's maintenance reports."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import commands, files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings.desired import Desired, Rail
from ansible_collections.baremetal.inference.plugins.module_utils.maintenance import facts
from ansible_collections.baremetal.inference.plugins.module_utils.store.describe import build
from ansible_collections.baremetal.inference.plugins.module_utils.store.hashes import HashCache
from ansible_collections.baremetal.inference.plugins.module_utils.store.store import Store
from ansible_collections.baremetal.inference.tests.unit.plugins.module_utils.hardware.rdma_settings.host import Host

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def no_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node without any program."""
    monkeypatch.setattr(commands, "run", lambda *_given: commands.Outcome(None, failure=commands.NOT_INSTALLED))


def test_a_bare_node_has_nothing_to_report(tmp_path: Path) -> None:
    assert facts.reboot_reasons(tmp_path) == []
    assert facts.has_driver() is False
    assert facts.certificates([], NOW, 30, 7) == []


def test_each_permanent_file_system_counts_once(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "again").mkdir()
    (tmp_path / "proc/self/mountinfo").write_text(
        f"21 1 8:1 / {tmp_path}/again rw shared:1 - ext4 /dev/sda1 rw\n"
        f"22 1 8:1 / {tmp_path} rw shared:1 - ext4 /dev/sda1 rw\n23 22 0:5 / /proc rw - proc proc rw\n"
        f"24 22 0:9 / {tmp_path}/proc rw - overlay overlay rw\n"
    )
    assert [usage.path for usage in facts.usages(tmp_path)] == [str(tmp_path)]


def test_a_mount_with_a_stale_file_handle_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    lost = tmp_path / "models"
    (tmp_path / "proc/self/mountinfo").write_text(
        f"21 1 8:1 / {tmp_path} rw shared:1 - ext4 /dev/sda1 rw\n22 21 0:50 / {lost} rw - nfs4 server:/models rw\n"
    )
    stat = Path.stat

    def stale(path: Path, **options: Any) -> os.stat_result:
        if path == lost:
            raise OSError(errno.ESTALE, "Stale file handle")
        return stat(path, **options)

    monkeypatch.setattr(Path, "stat", stale)
    assert [usage.path for usage in facts.usages(tmp_path)] == [str(tmp_path)]


def test_a_due_reboot_has_its_packages_as_reason(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/reboot-required").touch()
    (tmp_path / "run/reboot-required.pkgs").write_text("libc6\ndbus\n")
    assert facts.reboot_reasons(tmp_path) == ["libc6, dbus"]


def test_rails_that_wait_for_a_drain_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = Paths(tmp_path)
    assert facts.rails(paths) == []
    host = Host(tmp_path)
    monkeypatch.setattr(commands, "run", lambda command, _seconds: host.run(command))
    # Relaxed ordering differs as well, but needs no drain.
    rail = Rail("0000:20:00.0/1", "ethernet", mtu=9000, relaxed_ordering=True, max_read_request=4096)
    files.write_json(paths.rdma_settings, Desired([rail]).as_dict())
    assert facts.rails(paths) == ["rail 0 (rocep0s0/1): mtu: 1500 -> 9000"] and host.mtu("ens0") == 1500
    paths.rdma_settings.write_text("{")
    assert facts.rails(paths) == []


def test_a_driver_that_dkms_builds_counts_as_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "nvidia/580.105.08, 6.1.0-50-amd64, x86_64: installed\n"
    monkeypatch.setattr(commands, "run", lambda *_given: commands.Outcome(0, said))
    assert facts.has_driver() is True


def test_a_missing_certificate_is_a_failure() -> None:
    (found,) = facts.certificates(["/nowhere/tls.pem"], NOW, 30, 7)
    assert found["status"] == "fail" and found["words"].startswith("does not exist: ")


def test_the_exit_status_and_output_of_openssl_decide_the_status_of_a_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tls.pem"
    path.write_text("x")
    said = "notAfter=Dec  1 12:00:00 2026 GMT\n"
    for code, status, days in ((0, "warn", 10), (1, "fail", None)):
        monkeypatch.setattr(commands, "run", lambda *_given, code=code: commands.Outcome(code, said))
        (found,) = facts.certificates([str(path)], NOW, 30, 7)
        assert (found["status"], found["days"]) == (status, days)


def test_a_damaged_model_is_reported(tmp_path: Path, write_model: Callable[..., Path]) -> None:
    source = write_model(tmp_path / "source")
    manifest, _problems = build(source, "m", HashCache())
    assert manifest
    store, cache = tmp_path / "store", tmp_path / "state/manifests.json"
    plan = Store(store, HashCache()).plan("m", manifest)
    Store(store, HashCache()).publish(plan, source)

    def damaged(read_only: bool = False) -> tuple[int, list[str]]:
        return facts.damaged(store, cache, verify=False, read_only=read_only)

    assert damaged(read_only=True) == (1, []) and not cache.exists()
    assert damaged() == (1, []) and cache.exists()
    aside = plan.path.with_name(f"{manifest.revision}.broken-1700000000")
    aside.mkdir()
    (aside / "manifest.json").write_text("{}")
    assert damaged() == (1, [])
    shard = plan.path / "model-00001-of-00002.safetensors"
    shard.chmod(0o644)
    shard.write_bytes(b"x")
    (damage, *_more) = damaged()[1]
    assert damage.startswith(f"m/{manifest.revision}: ") and shard.name in damage
    (plan.path / "manifest.json").write_text(json.dumps({"schema": 1}))
    assert "manifest.json" in damaged()[1][0]
