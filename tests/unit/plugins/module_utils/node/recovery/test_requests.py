# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent's requests for recovery, and the recoveries that the dispatch starts."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery import (
    requests,
)
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.settings import Settings


def test_the_agent_requests_recovery_at_intervals_and_only_with_the_role(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks = requests.Requests(paths)
    asks.ask("main")
    assert not paths.recovery_requests.exists()
    files.write_json(paths.recovery_settings, Settings().to_json())
    asks.ask("main")
    asked = paths.recovery_requests / "main"
    asked.unlink()
    asks.ask("main")
    assert not asked.exists()
    asks.forget("main")
    asks.ask("main")
    (paths.recovery_requests / "gone").write_text("")
    started = []
    monkeypatch.setattr(systemd, "systemctl", lambda *arguments: started.append(arguments))
    assert requests.dispatch(paths) == ["main"]
    assert started == [("start", "--no-block", "inference-recovery@main.service")]
    assert list(paths.recovery_requests.iterdir()) == []


def test_an_agent_that_cannot_write_a_request_raises_nothing(paths: Paths) -> None:
    files.write_json(paths.recovery_settings, Settings().to_json())
    paths.recovery_requests.parent.mkdir(parents=True, exist_ok=True)
    paths.recovery_requests.write_text("")
    requests.Requests(paths).ask("main")
    assert paths.recovery_requests.is_file()


def test_an_agent_that_cannot_read_the_settings_raises_nothing(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception would end the probes of this instance."""

    def broken(_path: Path) -> bool:
        raise OSError(errno.EIO, "Input/output error")

    files.write_json(paths.recovery_settings, Settings().to_json())
    asker = requests.Requests(paths)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "exists", broken)
        asker.ask("main")
    asker.ask("main")
    assert (paths.recovery_requests / "main").exists()
