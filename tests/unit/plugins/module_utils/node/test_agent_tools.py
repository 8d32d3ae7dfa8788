# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent's small tools: its writer, its journal, its metrics."""

from __future__ import annotations

import re
import socket
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.journal import WARNING, Journal
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe.health import VERDICTS
from ansible_collections.baremetal.inference.plugins.module_utils.node.textfile import (
    InstanceMetrics,
    LockMetrics,
    render,
)
from ansible_collections.baremetal.inference.plugins.module_utils.node.writer import Writer


def test_the_newest_text_wins_where_the_disk_is_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[tuple[str, str | None]] = []
    hangs, hung = threading.Event(), threading.Event()

    def write(path: Path, text: str | None) -> bool:
        hung.set()
        hangs.wait(10)
        written.append((path.name, text))
        return True

    monkeypatch.setattr(files, "write", write)
    writer = Writer(pytest.fail)
    writer.put(tmp_path / "a", "1")
    assert hung.wait(10)
    for text in ("2", "3"):
        writer.put(tmp_path / "a", text)
    writer.put(tmp_path / "b", None)
    assert not writer.flush(0.05)
    hangs.set()
    assert writer.flush(10)
    assert written == [("a", "1"), ("a", "3"), ("b", None)]


def test_what_cannot_be_written_is_said_once(tmp_path: Path) -> None:
    said: list[str] = []
    writer = Writer(said.append)
    (tmp_path / "file").write_text("")
    below = tmp_path / "file/below"
    for text in ("1", "2"):
        writer.put(below, text)
        assert writer.flush(10)
    assert len(said) == 1 and said[0].startswith(f"{below} cannot be written: ")
    (tmp_path / "file").unlink()
    writer.put(below, "3")
    assert writer.flush(10) and below.read_text() == "3"


def test_an_entry_of_the_journal(short_tmp: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(short_tmp / "socket"))
        Journal(short_tmp / "socket").say("main:\nhung", WARNING, instance="main", verdict="hung", latency_ms=None)
        assert receiver.recv(1000).decode().splitlines() == [
            "MESSAGE=main: hung",
            "PRIORITY=4",
            "SYSLOG_IDENTIFIER=inferctl",
            "INFERENCE_INSTANCE=main",
            "INFERENCE_VERDICT=hung",
        ]


def test_without_a_journal_it_is_printed(short_tmp: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Journal(short_tmp / "socket").say("main: hung")
    assert capsys.readouterr().err == "main: hung\n"


def test_metrics() -> None:
    one = InstanceMetrics("main", "hung", False, True, since=1777636800.0, checked=1777636810.5, latency=0.012)
    lines = render([one, InstanceMetrics("side", "unknown", True, False)], 1777636820.7).splitlines()
    samples = [line for line in lines if not line.startswith("#")]
    assert samples[0] == "inference_agent_timestamp_seconds 1777636821"
    for sample in (
        'inference_probe_verdict{name="main",verdict="hung"} 1',
        'inference_probe_stale{name="side"} 1',
        'inference_probe_since_timestamp_seconds{name="main"} 1777636800',
        'inference_probe_timestamp_seconds{name="main"} 1777636810.500',
        'inference_probe_latency_seconds{name="main"} 0.012',
        'inference_drained{name="main"} 1',
        'inference_drained{name="side"} 0',
        "inference_lock_held 0",
        "inference_lock_stale 0",
    ):
        assert sample in samples
    assert not [sample for sample in samples if sample.startswith('inference_probe_latency_seconds{name="side"')]
    # One family of samples after the other, each with its type: node_exporter refuses anything else.
    families = [re.match(r"\w+", sample)[0] for sample in samples]  # type: ignore[index]
    assert list(dict.fromkeys(families)) == [line.split()[2] for line in lines if line.startswith("# TYPE")]


def test_metrics_of_the_lock() -> None:
    """Held or stale is one series each, whoever has it: a node that reboots is judged by the last that was seen."""
    text = render([], 0, LockMetrics("maintenance.yml"))
    assert "inference_lock_held 1\n" in text and "inference_lock_stale 0\n" in text
    assert 'inference_lock_info{playbook="maintenance.yml"} 1\n' in text
    text = render([], 0, LockMetrics("maintenance.yml", stale=True))
    assert "inference_lock_held 0\n" in text and "inference_lock_stale 1\n" in text


@given(st.text())
def test_any_name_is_one_label(name: str) -> None:
    text = render([InstanceMetrics(name, "healthy", False, False)], 0)
    (line,) = [line for line in text.split("\n") if line.endswith('verdict="healthy"} 1')]
    found = re.fullmatch(r'inference_probe_verdict\{name="((?:[^"\\\n]|\\.)*)",verdict="healthy"\} 1', line)
    assert found is not None
    unescaped = re.sub(r"\\(.)", lambda match: {"n": "\n"}.get(match[1], match[1]), found[1])
    assert unescaped == name
    assert text.count("inference_probe_verdict{") == len(VERDICTS)
