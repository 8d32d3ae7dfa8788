# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""`inferctl probe`, and the probes and drains in `inferctl status`: text, JSON, exit codes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.drains import format_time
from ansible_collections.baremetal.inference.plugins.module_utils.node.cli import health

from ...http_engine import Engine
from .conftest import Run, RunJson


def test_the_command_probe_exits_with_0_for_healthy_engines(run: Run, run_json: RunJson) -> None:
    code, document = run_json("probe")
    assert code == 0
    main, side = document["instances"]
    assert set(main) == {"instance", "verdict", "since", "latency_ms", "detail"}
    assert (main["instance"], main["verdict"], side["verdict"]) == ("main", "healthy", "healthy")
    code, output, _errors = run("probe", "main")
    assert code == 0 and output.startswith("main: healthy: answered a completion (")


def test_the_command_probe_goes_on_until_a_hang_is_certain(run: Run, engines: dict[str, Engine]) -> None:
    engines["main"].delay = 60
    code, output, _errors = run("probe", "main", "--timeout", "0.5")
    assert code == 1
    assert output.startswith("main: hung: no token within 0.5 s, 2 times in a row")


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        (["healthy"], 0),
        (["busy", "healthy"], 0),
        (["starting", "healthy"], 3),
        (["unknown", "starting"], 4),
        (["hung", "unknown", "starting"], 1),
        (["stopped"], 1),
        (["dead"], 1),
        (["wrong"], 1),
        ([], 0),
    ],
)
def test_the_exit_code_of_probe_follows_from_all_verdicts(verdicts: list[str], code: int) -> None:
    assert health._code(set(verdicts)) == code


def test_the_time_since_comes_from_the_record_of_the_agent_while_the_verdict_is_the_same(
    paths: Paths, run_json: RunJson
) -> None:
    now = datetime.now(UTC)
    state = {
        "schema": 1,
        "instance": "main",
        "verdict": "healthy",
        "since": "2026-01-01T00:00:00Z",
        "checked": format_time(now),
        "latency_ms": 5,
        "detail": "",
        "invocation": "first",
    }
    files.write_json(paths.probe("main"), state)
    assert run_json("probe", "main")[1]["instances"][0]["since"] == "2026-01-01T00:00:00Z"
    files.write_json(paths.probe("main"), {**state, "verdict": "hung"})
    assert run_json("probe", "main")[1]["instances"][0]["since"] >= format_time(now)
    # The command does not write the agent's record.
    assert files.read_json(paths.probe("main"))["verdict"] == "hung"


@pytest.mark.parametrize("timeout", ["0", "-1", "nan", "inf", "soon"])
def test_an_impossible_timeout_is_wrong_usage(run: Run, timeout: str) -> None:
    with pytest.raises(SystemExit) as error:
        run("probe", "main", f"--timeout={timeout}")
    assert error.value.code == 2


@pytest.mark.parametrize("port", ["0", "-1", "70000", "http"])
def test_an_impossible_port_of_the_agent_is_wrong_usage(run: Run, port: str) -> None:
    with pytest.raises(SystemExit) as error:
        run("agent", f"--port={port}")
    assert error.value.code == 2


def test_the_command_status_shows_drain_and_verdict(run: Run, run_json: RunJson, paths: Paths) -> None:
    now = datetime.now(UTC)
    state = {
        "schema": 1,
        "instance": "main",
        "verdict": "hung",
        "since": format_time(now),
        "checked": format_time(now),
        "latency_ms": None,
        "detail": "no token",
        "invocation": "first",
    }
    files.write_json(paths.probe("main"), state)
    run("drain", "main", "--reason", "new disk")
    code, document = run_json("status")
    main, side = document["instances"]
    assert (code, document["healthy"]) == (1, False)
    assert main["probe"] == {
        "verdict": "hung",
        "since": state["since"],
        "checked": state["checked"],
        "latency_ms": None,
        "detail": "no token",
        "stale": False,
    }
    assert main["drain"]["reason"] == "new disk"
    assert (side["probe"], side["drain"]) == (None, None)
    output = run("status")[1]
    assert "hung, drained" in output.splitlines()[1]
    assert f"main: hung since {state['since']}: no token" in output
    assert "main: drained by alice@node1 until undrained: new disk (inferctl undrain main)" in output

    old = format_time(now - timedelta(minutes=5))
    files.write_json(paths.probe("main"), {**state, "checked": old})
    code, output, _errors = run("status")
    assert code == 0, "a verdict that is minutes old does not count"
    assert f"main: was last probed at {old}: systemctl status inference-agent" in output
