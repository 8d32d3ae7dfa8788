# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""`inferctl status`, `wait-ready` and `gpu-settings`: exit codes and errors."""

from __future__ import annotations

import os
import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import gangs
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.drains import format_time
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.gangs import GangState
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu_settings.apply import Result
from ansible_collections.baremetal.inference.plugins.module_utils.node.cli import inferctl

from ..test_prober import Unit
from .conftest import Run, RunJson


@pytest.fixture(autouse=True)
def serving(unit: Unit) -> None:
    unit.properties |= {"StatusText": "serving tiny-a", "NRestarts": "2", "InvocationID": "abc"}


def test_the_exit_code_of_status_is_0_only_if_all_serve(run: Run, run_json: RunJson, unit: Unit) -> None:
    assert run("status")[0] == 0
    assert run_json("status", "side")[1]["instances"][0]["serving"] is True
    unit.properties.update(ActiveState="failed", SubState="failed", Result="exit-code")
    assert run("status")[0] == 1
    assert run_json("status")[0] == 1


@pytest.mark.parametrize("command", ["status", "probe", "releases", "recover"])
def test_a_node_without_instances_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert inferctl.main([command], Paths(tmp_path)) == 0
    assert capsys.readouterr().out.startswith("no instance on this node")


def test_the_command_wait_ready_exits_with_0_for_ready_and_3_for_loading(
    run: Run, run_json: RunJson, unit: Unit
) -> None:
    code, document = run_json("wait-ready", "main")
    assert code == 0
    assert document["instances"][0]["state"] == "ready"
    unit.properties.update(ActiveState="activating", SubState="start", NRestarts="0")
    assert run("wait-ready", "main", "--timeout", "0")[:2] == (3, "main: loading: serving tiny-a\n")


REFUSED = GangState("main", 1, 0, gangs.REFUSED, "", "n2 has the gang digest ab, and n1 has cd: has no release")


@pytest.mark.parametrize(
    ("refused", "started", "boot", "change", "code"),
    [
        # The limit is 210 s: 120 s for the leader's drain, 30 s for the end of its engine, and 60 s of slack.
        (300, 310, 310, {}, 1),
        (200, 310, 310, {}, 3),
        # An earlier supervisor wrote the record.
        (300, 290, 290, {}, 3),
        # The clock was corrected by minutes after the start.
        (300, 310, 15, {}, 3),
        (300, 310, 310, {"state": gangs.MISSING}, 3),
        (300, 310, 310, {"state": gangs.WAITING}, 3),
        (300, 310, 310, {"since": "yesterday"}, 3),
    ],
)
def test_a_follower_has_failed_if_its_leader_refuses_it_for_longer_than_a_drain(
    run: Run,
    paths: Paths,
    unit: Unit,
    refused: int,
    started: int,
    boot: int,
    change: dict[str, str],
    code: int,
) -> None:
    now = datetime.now(UTC)
    since = format_time(now - timedelta(seconds=refused))
    files.write_json(paths.gang("main"), {**REFUSED.to_json(), "since": since, **change})
    unit.properties.update(
        ActiveState="activating",
        SubState="start",
        NRestarts="0",
        ExecMainStartTimestamp=f"@{int(now.timestamp()) - started}",
        ExecMainStartTimestampMonotonic=str(int((time.monotonic() - boot) * 1e6)),
    )
    found, out, _errors = run("wait-ready", "main", "--timeout", "0")
    assert found == code
    said = re.match(r"main: failed: its leader has refused it for 30\d s: n2 has the gang digest", out)
    assert bool(said) == (code == 1)
    unit.properties["SubState"] = "start-pre"
    assert run("wait-ready", "main", "--timeout", "0")[0] == 3


def test_the_command_wait_ready_prints_the_last_log_lines(
    run: Run, unit: Unit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = tmp_path / "bin/journalctl"
    journal.parent.mkdir()
    journal.write_text("""#!/bin/sh\necho '{"MESSAGE": "RuntimeError: out of memory"}'\n""")
    journal.chmod(0o755)
    monkeypatch.setenv("PATH", f"{journal.parent}:{os.environ['PATH']}")
    unit.properties.update(ActiveState="failed", SubState="failed", Result="exit-code")
    code, out, _errors = run("wait-ready", "main")
    assert code == 1
    assert out == "main: failed: systemd gave up: exit-code\n  RuntimeError: out of memory\n"


def test_an_unknown_instance_is_wrong_usage(run: Run) -> None:
    code, _out, errors = run("status", "mian")
    assert code == 2
    assert errors == "inferctl: no instance 'mian' on this node: did you mean 'main'? known: main, side\n"


def test_a_gpu_that_refuses_a_setting_is_a_failure(
    run: Run, run_json: RunJson, monkeypatch: pytest.MonkeyPatch
) -> None:
    change: Any = "GPU 0: 300 W"
    result = Result(changes=[change])
    monkeypatch.setattr(inferctl.boot, "apply", lambda _paths: result)
    assert run("gpu-settings") == (0, "GPU 0: 300 W\n", "")
    result.failures.append("GPU 1: its power limit stays")
    assert run("gpu-settings") == (1, "GPU 0: 300 W\n", "inferctl: GPU 1: its power limit stays\n")
    result.changes.clear()
    code, document = run_json("gpu-settings")
    assert (code, document["failures"]) == (1, ["GPU 1: its power limit stays"])


def test_root_is_needed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert inferctl.main(["status"]) == 2
    assert "sudo inferctl status" in capsys.readouterr().err
