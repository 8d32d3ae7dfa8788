# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""`inferctl probe`, `drain`, `undrain`, `drains`, and what `status` shows of both: text, JSON, exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, journal, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import liveness
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import drains, releases
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.drains import format_time
from ansible_collections.baremetal.inference.plugins.module_utils.node.cli import health, inferctl

from ...conftest import stage
from ...http_engine import Engine
from ..test_prober import Unit

Run = Callable[..., tuple[int, str, str]]
RunJson = Callable[..., tuple[int, Any]]


@pytest.fixture
def engines() -> Iterator[dict[str, Engine]]:
    engines = {name: Engine(name) for name in ("main", "side")}
    yield engines
    for engine in engines.values():
        engine.close()


@pytest.fixture
def unit() -> Unit:
    unit = Unit()
    unit.properties |= {"ActiveEnterTimestamp": "@1767225600", "InactiveExitTimestamp": "@1767225000"}
    return unit


@pytest.fixture
def paths(tmp_path: Path, engines: dict[str, Engine], unit: Unit, monkeypatch: pytest.MonkeyPatch) -> Paths:
    paths = Paths(tmp_path)
    for name, engine in engines.items():
        stage(paths, name, engine.port)
        files.write_json(paths.instance(name), {"schema": 1, "release": 1})
        releases.activate(paths, name, 1)
        releases.commit(paths, name, 1)
    monkeypatch.setattr(systemd, "show", lambda names, properties: {name: dict(unit.properties) for name in names})
    monkeypatch.setattr(liveness, "SCRAPE_AFTER", 0.05)
    monkeypatch.setattr(liveness, "SCRAPE_LIMIT", 1.0)
    # Not the journal of the machine that runs the tests.
    monkeypatch.setattr(journal, "SOCKET", tmp_path / "journal")
    monkeypatch.setenv("SUDO_USER", "alice")
    monkeypatch.setattr("socket.gethostname", lambda: "node1")
    return paths


@pytest.fixture
def run(paths: Paths, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> tuple[int, str, str]:
        code = inferctl.main(list(arguments), paths)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def run_json(run: Run) -> RunJson:
    def call(*arguments: str) -> tuple[int, Any]:
        code, output, _errors = run(*arguments, "--json")
        document = json.loads(output)
        assert document["schema"] == 1
        return code, document

    return call


def test_probe_of_healthy_engines(run: Run, run_json: RunJson) -> None:
    code, document = run_json("probe")
    assert code == 0
    main, side = document["instances"]
    assert set(main) == {"instance", "verdict", "since", "latency_ms", "detail"}
    assert (main["instance"], main["verdict"], side["verdict"]) == ("main", "healthy", "healthy")
    code, output, _errors = run("probe", "main")
    assert code == 0 and output.startswith("main: healthy: answered a completion (")


def test_probe_goes_on_until_a_hang_is_certain(run: Run, engines: dict[str, Engine]) -> None:
    engines["main"].delay = 60
    code, output, _errors = run("probe", "main", "--timeout", "0.5")
    assert code == 1
    assert output.startswith("main: hung: no token within 0.5 s, 2 times in a row")


@pytest.mark.parametrize(
    ("others", "code"),
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
def test_exit_codes(others: list[str], code: int) -> None:
    assert health._code(set(others)) == code


def test_since_is_what_the_agent_remembers(paths: Paths, run_json: RunJson) -> None:
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
    # Nothing is written: that is the agent's.
    assert files.read_json(paths.probe("main"))["verdict"] == "hung"


@pytest.mark.parametrize("timeout", ["0", "-1", "nan", "inf", "soon"])
def test_a_timeout_that_is_none(run: Run, timeout: str) -> None:
    with pytest.raises(SystemExit) as error:
        run("probe", "main", f"--timeout={timeout}")
    assert error.value.code == 2


def test_drain_and_undrain(run_json: RunJson, paths: Paths) -> None:
    began = datetime.now(UTC)
    code, document = run_json("drain", "main", "--reason", "new  disk", "--for", "30m")
    assert (code, document["changed"]) == (0, True)
    (item,) = document["instances"]
    assert (item["instance"], item["changed"]) == ("main", True)
    drain = item["drain"]
    assert (drain["owner"], drain["reason"]) == ("alice@node1", "new disk")
    seconds = (drains.parse_time(drain["until"]) - began).total_seconds()
    assert 1798 <= seconds <= 1810

    again = ["drain", "main", "--reason", "new disk", "--until", drain["until"]]
    assert run_json(*again)[1]["changed"] is False
    assert run_json("drains")[1]["drains"] == [{"instance": "main", **drain}]

    assert run_json("undrain", "main", "--owner", "update")[1]["instances"][0]["drain"] == drain
    assert run_json("undrain", "main", "side")[1] == {
        "schema": 1,
        "changed": True,
        "instances": [
            {"instance": "main", "changed": True, "drain": None},
            {"instance": "side", "changed": False, "drain": None},
        ],
    }
    assert run_json("undrain", "main")[1]["changed"] is False
    assert not paths.drain("main").exists()


def test_what_people_read(run: Run) -> None:
    assert run("drains")[1] == "nothing is drained\n"
    code, output, errors = run("drain", "main", "--reason", "new disk")
    assert (code, output) == (0, "main: drained by alice@node1 until undrained: new disk\n")
    assert errors == output, "the journal, for want of one"
    assert run("drain", "main", "--reason", "new disk")[1:] == (output.replace("\n", " (unchanged)\n"), "")
    assert run("drains")[1] == output
    assert run("undrain", "main")[1] == "main: not drained\n"
    assert run("undrain", "main")[1:] == ("main: not drained (unchanged)\n", "")


def test_somebody_elses_intent(run: Run) -> None:
    run("drain", "main", "--reason", "new disk", "--owner", "bob")
    code, _output, errors = run("drain", "side", "main", "--reason", "update")
    assert code == 1
    assert "main is already drained by bob until undrained: new disk. Nothing was changed" in errors
    assert run("drains")[1].count("\n") == 1
    assert run("drain", "main", "--reason", "update", "--force")[0] == 0
    assert "alice@node1" in run("drains")[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["mian", "--reason", "x"], "did you mean 'main'? known: main, side"),
        (["main", "--reason", " "], "--reason is empty"),
        (["main", "--reason", "x", "--for", "30"], "--for: '30' is no duration"),
        (["main", "--reason", "x", "--for", "9999999d"], "--for: "),
        (["main", "--reason", "x", "--until", "2027-01-01T00:00:00"], "has no time zone"),
        (["main", "--reason", "x", "--until", "2020-01-01T00:00:00Z"], "is past: it is "),
    ],
)
def test_wrong_usage(run: Run, paths: Paths, arguments: list[str], words: str) -> None:
    code, _output, errors = run("drain", *arguments)
    assert code == 2
    assert words in errors
    assert drains.names(paths) == []


def test_undrain_of_what_has_left_the_node(run: Run, paths: Paths) -> None:
    files.write_json(paths.drain("gone"), {"schema": 1})
    assert run("undrain", "gone")[0] == 0
    assert run("undrain", "gone")[0] == 2
    assert drains.names(paths) == []


def test_status_shows_drain_and_verdict(run: Run, run_json: RunJson, paths: Paths) -> None:
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
    assert code == 0, "what nobody has looked at for minutes condemns nobody"
    assert f"main: was last probed at {old}: systemctl status inference-agent" in output
