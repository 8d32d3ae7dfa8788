# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemctl's output, and the words to systemd."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import systemd


def test_parse_show_keeps_the_order_and_equal_signs() -> None:
    text = "ActiveState=active\nStatusText=a=b\n\nActiveState=inactive\nStatusText=\n"
    assert systemd.parse_show(text) == [
        {"ActiveState": "active", "StatusText": "a=b"},
        {"ActiveState": "inactive", "StatusText": ""},
    ]


def test_systemctls_own_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "systemctl"
    fake.write_text("#!/bin/sh\necho 'Unit vllm@x.service not found.' >&2\nexit 5\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(systemd.SystemdError, match=r"^systemctl start x: Unit vllm@x\.service not found\.$"):
        systemd.systemctl("start", "x")
    fake.unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(systemd.SystemdError, match="No such file"):
        systemd.systemctl("start", "x")


def test_notify(short_tmp: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(short_tmp / "notify"))
        notifier = systemd.Notifier({"NOTIFY_SOCKET": str(short_tmp / "notify")})
        notifier.send(READY=1, STATUS="two\nlines")
        assert receiver.recv(100) == b"READY=1\nSTATUS=two lines"
    # systemd is away, or was never there.
    notifier.send(READY=1)
    systemd.Notifier({}).send(READY=1)


def test_notify_in_the_abstract_namespace() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind("")
        address = receiver.getsockname()
        systemd.Notifier({"NOTIFY_SOCKET": "@" + address[1:].decode()}).send(READY=1)
        assert receiver.recv(100) == b"READY=1"
