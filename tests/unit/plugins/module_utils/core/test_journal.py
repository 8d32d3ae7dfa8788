# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Entries of the journal, and the output on a machine without a journal."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.journal import WARNING, Journal


def test_an_entry_has_its_message_and_fields(short_tmp: Path) -> None:
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


def test_without_a_journal_the_message_is_printed(short_tmp: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Journal(short_tmp / "socket").say("main: hung")
    assert capsys.readouterr().err == "main: hung\n"
