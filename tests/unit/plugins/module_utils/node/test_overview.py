# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The summary of a node."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.backup import state
from ansible_collections.baremetal.inference.plugins.module_utils.backup.places import Places
from ansible_collections.baremetal.inference.plugins.module_utils.backup.settings import Settings
from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.fleet import screen
from ansible_collections.baremetal.inference.plugins.module_utils.fleet.report import read
from ansible_collections.baremetal.inference.plugins.module_utils.node import overview
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor.host import Host

from .conftest import GPU_DATA, plug

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def missing(command: Sequence[str], _timeout: float) -> Outcome:
    return Outcome(None, failure="not_installed", message=f"{command[0]} is not installed")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_the_screen_shows_the_summary_of_a_node_with_a_damaged_lock(tmp_path: Path) -> None:
    write(tmp_path / "etc/debian_version", "12.9\n")
    write(tmp_path / "run/reboot-required", "")
    write(
        tmp_path / "etc/inference/doctor.json",
        json.dumps({"schema": 1, "off": ["driver", "gpu", "rdma", "system", "docker", "engine"]}),
    )
    job = {"succeeded": 1777600000.0, "ok": False, "error": "no route"}
    state = {"schema": 1, "repository": "", "jobs": {"backup": job}}
    write(tmp_path / "var/lib/inference-backup/state.json", json.dumps(state))
    write(tmp_path / "var/lib/inference/lock", "{")
    summary = overview.gather(Host(Paths(tmp_path), missing), NOW)
    assert summary["system"]["reboot_required"] is True and summary["doctor"] == {"verdict": "ok", "problems": []}
    assert summary["backup"] == {
        "since": None,
        "interval": None,
        "succeeded": "2026-05-01T01:46:40Z",
        "ok": False,
        "error": "no route",
    }
    assert summary["gpus"]["present"] == 0 and summary["gpus"]["error"] == "" and summary["lock"] is None
    assert list(summary["errors"]) == ["lock"]
    text = "\n".join(screen.render(read({"gpu1": json.loads(json.dumps(summary))}, NOW)))
    assert "gpu1: a reboot is due" in text and "gpu1: lock is unknown: " in text and "10h, failed" in text


def test_power_and_memory_are_unknown_if_the_gpus_do_not_answer(tmp_path: Path) -> None:
    for address in ("0000:1b:00.0", "0000:9d:00.0"):
        plug(tmp_path, address)

    def summary(report: str) -> dict[str, Any]:
        def run(command: Sequence[str], timeout: float) -> Outcome:
            return Outcome(0, report) if tuple(command) == ("nvidia-smi", "-q", "-x") else missing(command, timeout)

        gpus: dict[str, Any] = overview.gather(Host(Paths(tmp_path), run), NOW)["gpus"]
        return {key: gpus[key] for key in ("present", "reported", "power_w", "memory_used_mib", "memory_total_mib")}

    unknown = {"power_w": None, "memory_used_mib": None, "memory_total_mib": None}
    assert summary("") == {"present": 2, "reported": 0, **unknown}
    known = summary((GPU_DATA / "report-580.xml").read_text())
    assert known["reported"] == 2 and min(known.values()) > 0


def test_instances_whose_names_cannot_be_read_are_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_paths: Paths) -> list[str]:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(overview.releases, "names", broken)
    found = overview.gather(Host(Paths(tmp_path), missing), NOW)
    assert found["instances"] is None and "Input/output error" in found["errors"]["instances"]


def test_the_result_of_the_first_backup_is_unknown_until_its_end(tmp_path: Path) -> None:
    places = Places(tmp_path)
    settings = Settings("/srv/x", "n1", ("/etc/x",), intervals={"backup": 604800, "prune": 86400})

    def summary() -> dict[str, Any] | None:
        backup: dict[str, Any] | None = overview.gather(Host(Paths(tmp_path), missing), NOW)["backup"]
        return backup

    assert summary() is None
    write(places.settings, json.dumps(settings.to_json()))
    state.set_up(places, settings, 1777600000.0)
    waits = {"since": "2026-05-01T01:46:40Z", "interval": 604800, "succeeded": None, "ok": None, "error": ""}
    assert summary() == waits
    state.begin(places, settings, "backup", 1777600100.0)
    assert summary() == waits
    state.end(places, settings, "backup", 1777600200.0)
    assert summary() == {**waits, "succeeded": "2026-05-01T01:50:00Z", "ok": True}
