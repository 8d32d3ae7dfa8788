# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module node_facts: what each subset returns, and that a subset that is left out is not read."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import commands
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.maintenance import facts
from ansible_collections.baremetal.inference.plugins.module_utils.node import in_use, left, overview
from ansible_collections.baremetal.inference.plugins.module_utils.node.calls import node_facts
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor import check
from ansible_collections.baremetal.inference.plugins.module_utils.store.describe import build
from ansible_collections.baremetal.inference.plugins.module_utils.store.hashes import HashCache
from ansible_collections.baremetal.inference.plugins.module_utils.store.store import Store

Call = Callable[..., dict[str, Any]]

STATUS = {
    "time",
    "system",
    "instances",
    "gpus",
    "doctor",
    "lock",
    "updated",
    "backup",
    "errors",
    "schema",
    "rails_waiting",
}
MAINTENANCE = {"reboot_reasons", "driver", "rails_due", "disks", "certificates", "damaged", "models"}
DOCTOR = {"verdict", "checks", "problems"}
LEFT = {"left", "gateway", "monitoring", "logs"}
IN_USE = {"in_use"}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A node with one disk. A reboot is due."""
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text(
        f"22 1 8:1 / {tmp_path} rw shared:1 - ext4 /dev/sda1 rw\n23 22 0:5 / /proc rw - proc proc rw\n"
        f"24 22 0:9 / {tmp_path}/proc rw - overlay overlay rw\n"
    )
    (tmp_path / "run").mkdir()
    (tmp_path / "run/reboot-required").write_text("")
    monkeypatch.setattr(node_facts, "Paths", lambda: Paths(tmp_path))
    monkeypatch.setattr(commands, "run", lambda *_given: commands.Outcome(None, failure=commands.NOT_INSTALLED))
    return tmp_path


@pytest.fixture
def gather(root: Path, run_module: Call) -> Call:
    """Calls the module with one subset."""

    def run(subset: str, **arguments: Any) -> dict[str, Any]:
        return run_module(node_facts, gather_subset=[subset], **arguments)

    return run


def refuse(what: str, *_given: Any, **_more: Any) -> Any:
    raise AssertionError(f"{what} was read")


@pytest.mark.parametrize(
    ("subset", "expected"),
    [
        ("status", STATUS),
        ("maintenance", MAINTENANCE),
        ("doctor", DOCTOR),
        ("left", LEFT),
        ("in_use", IN_USE),
        ("min", set()),
    ],
)
def test_a_subset_that_is_left_out_is_not_read(
    gather: Call, monkeypatch: pytest.MonkeyPatch, subset: str, expected: set[str]
) -> None:
    monkeypatch.setattr(check, "run", lambda _checks, _host: [])
    if subset != "status":
        monkeypatch.setattr(overview, "gather", partial(refuse, "status"))
    if subset != "maintenance":
        monkeypatch.setattr(facts, "reboot_reasons", partial(refuse, "maintenance"))
    monkeypatch.setattr(left, "gather", (lambda: dict.fromkeys(LEFT)) if subset == "left" else partial(refuse, "left"))
    if subset != "in_use":
        monkeypatch.setattr(in_use, "gather", partial(refuse, "what is in use"))
    if subset not in ("doctor", "status"):
        monkeypatch.setattr(check, "run", partial(refuse, "the doctor"))
    assert set(gather(subset)) - {"changed", "invocation"} == expected


def test_all_subsets_are_the_default(root: Path, run_module: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "run", lambda _checks, _host: [])
    monkeypatch.setattr(left, "gather", lambda: dict.fromkeys(LEFT))
    assert set(run_module(node_facts)) - {"changed", "invocation"} == STATUS | MAINTENANCE | DOCTOR | LEFT | IN_USE


def test_the_module_fails_if_the_verdict_is_at_least_as_bad_as_the_option_fail_on(gather: Call) -> None:
    result = gather("doctor", checks=["system-reboot", "gpu-count"], fail_on="fail")
    assert result["verdict"] == "warn" and len(result["problems"]) == 1
    assert result["problems"][0].startswith("warn: system-reboot: ")
    failed = gather("doctor", checks=["system-reboot"], fail_on="warn")
    assert failed["failed"] is True and failed["verdict"] == "warn"
    assert failed["msg"].startswith("The node has warnings: warn: system-reboot: ")
    assert "gpu-xids" in gather("doctor", checks=["gpu-xid"])["msg"]


def test_damaged_settings_of_the_doctor_are_named(gather: Call, root: Path) -> None:
    Paths(root).doctor_settings.parent.mkdir(parents=True)
    Paths(root).doctor_settings.write_text("{")
    result = gather("doctor")
    assert result["failed"] is True and "doctor.json" in result["msg"]


def test_the_subset_status_has_errors_in_place_of_facts_that_cannot_be_read(gather: Call) -> None:
    result = gather("status")
    assert result["system"] is None and "debian_version" in result["errors"]["system"]
    assert result["rails_waiting"] == []
    assert result["instances"] == [] and result["lock"] is None and result["backup"] is None
    assert result["changed"] is False and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", result["time"])


def test_the_subset_maintenance_has_reboot_disks_certificates_and_damaged_models(
    gather: Call, root: Path, write_model: Callable[..., Path]
) -> None:
    result = gather("maintenance", certificates=["/nowhere/tls.pem"])
    assert result["reboot_reasons"] != [] and result["driver"] is False and result["models"] == 0
    assert result["rails_due"] == []
    assert len(result["disks"]) == 1 and str(root) in result["disks"][0]
    (certificate,) = result["certificates"]
    assert certificate["status"] == "fail" and certificate["words"].startswith("does not exist: ")

    source = write_model(root / "source")
    manifest, _problems = build(source, "m", HashCache())
    assert manifest
    plan = Store(root / "store", HashCache()).plan("m", manifest)
    Store(root / "store", HashCache()).publish(plan, source)
    given = {"store": str(root / "store"), "store_cache": str(root / "state/manifests.json")}
    assert gather("maintenance", check=True, **given)["models"] == 1
    assert not (root / "state").exists(), "check mode writes no checksums"
    assert gather("maintenance", **given)["damaged"] == [] and (root / "state/manifests.json").exists()
    (plan.path / "config.json").chmod(0o644)
    (plan.path / "config.json").write_text("{}")
    assert f"m/{manifest.revision}" in gather("maintenance", **given)["damaged"][0]
