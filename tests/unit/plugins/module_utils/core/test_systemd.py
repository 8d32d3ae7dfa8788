# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls of systemctl, and notifications to systemd."""

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


def test_an_error_has_systemctls_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "systemctl"
    fake.write_text("#!/bin/sh\necho 'Unit vllm@x.service not found.' >&2\nexit 5\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(systemd.SystemdError, match=r"^systemctl start x: Unit vllm@x\.service not found\.$"):
        systemd.systemctl("start", "x")
    fake.write_text("#!/bin/sh\nkill -TERM $$\n")
    with pytest.raises(systemd.Terminated, match=r"^systemctl start x: exit code -15$"):
        systemd.systemctl("start", "x")
    fake.unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(systemd.SystemdError, match="No such file"):
        systemd.systemctl("start", "x")


class Manager:
    """A systemd with units in these states. A stopped unit is inactive."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **states: str) -> None:
        self.states = {f"{name}.service": state for name, state in states.items()}
        self.calls: list[str] = []
        self.stale: set[str] = set()
        """Units whose files differ from what systemd has read."""
        monkeypatch.setattr(systemd, "systemctl", self.systemctl)

    def systemctl(self, *words: str) -> str:
        if words[0] == "show":
            names = words[words.index("--") + 1 :]
            return "\n\n".join(
                f"ActiveState={self.states.get(name, 'inactive')}\n"
                f"NeedDaemonReload={'yes' if name in self.stale else 'no'}"
                for name in names
            )
        self.calls.append(" ".join(words))
        if words[0] == "stop":
            self.states[words[1]] = "inactive"
        return ""


@pytest.mark.parametrize(
    ("state", "installed", "calls"),
    [
        ("active", True, ["stop a.service", "disable a.service"]),
        ("failed", False, ["reset-failed a.service"]),
        ("activating", False, ["stop a.service"]),
        ("inactive", False, []),
    ],
)
def test_a_unit_is_stopped_and_disabled_as_its_state_needs(
    monkeypatch: pytest.MonkeyPatch, state: str, installed: bool, calls: list[str]
) -> None:
    manager = Manager(monkeypatch, a=state)
    assert systemd.active_state("a.service") == state
    systemd.stop_and_disable("a.service", installed=installed)
    assert manager.calls == calls


def test_units_are_removed_with_their_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    manager = Manager(monkeypatch, a="active", stray="active", c="inactive")
    units = [tmp_path / name for name in ("a.service", "b@.service", "gone.service")]
    for path in units[:2]:
        path.write_text("x")
    names = ["a.service", "stray.service", "c.service"]
    expected = (units[:2], ["a.service", "stray.service"])
    assert systemd.remove_units(units, names, check=True) == expected
    assert manager.calls == [] and units[0].exists()
    assert systemd.remove_units(units, names, check=False) == expected
    assert list(tmp_path.iterdir()) == []
    assert manager.calls == ["stop a.service", "disable a.service", "stop stray.service", "daemon-reload"]
    assert systemd.remove_units(units, names, check=False) == ([], [])
    assert manager.calls[4:] == [], "no unit was left"
    # As after a removal that was cut off before the daemon-reload.
    manager.stale = {"c.service"}
    assert systemd.remove_units(units, names, check=True) == ([], []) and manager.calls[4:] == []
    assert systemd.remove_units(units, names, check=False) == ([], []) and manager.calls[4:] == ["daemon-reload"]


def test_a_notification_has_one_line_per_value(short_tmp: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(short_tmp / "notify"))
        notifier = systemd.Notifier({"NOTIFY_SOCKET": str(short_tmp / "notify")})
        notifier.send(READY=1, STATUS="two\nlines")
        assert receiver.recv(100) == b"READY=1\nSTATUS=two lines"
    # Without systemd, a notification is no error.
    notifier.send(READY=1)
    systemd.Notifier({}).send(READY=1)


def test_a_notification_reaches_a_socket_in_the_abstract_namespace() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind("")
        address = receiver.getsockname()
        systemd.Notifier({"NOTIFY_SOCKET": "@" + address[1:].decode()}).send(READY=1)
        assert receiver.recv(100) == b"READY=1"
