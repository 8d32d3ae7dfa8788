# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit that shares models: its token is in no command and stays in no file. Nodes that cannot share are errors."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.models.manifest import Manifest
from ansible_collections.baremetal.inference.plugins.module_utils.store import fetch
from ansible_collections.baremetal.inference.plugins.module_utils.store.share import ShareError, Sharing
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.remote import Remote
from ansible_collections.baremetal.inference.plugins.module_utils.store.store import Store

from .conftest import Nodes

REMOTE = Remote("hub", "acme/tiny", "0123456789" * 4)


class Machine:
    """Records commands, and the input of the server. `code`: exit code of systemd-run; `stop`: of systemctl stop."""

    def __init__(self, code: int = 0, stop: int = 0, *, runs: bool = True) -> None:
        self.codes = {
            ("systemd-run", "--quiet"): code,
            ("systemctl", "stop"): stop,
            ("systemctl", "is-active"): not runs,
        }
        self.calls: list[list[str]] = []
        self.given: dict[str, Any] = {}

    def __call__(self, command: list[str]) -> tuple[int, str, str]:
        self.calls.append(command)
        for word in command:
            if word.startswith("--property=StandardInput=file:"):
                file = Path(word.partition("file:")[2])
                assert stat.S_IMODE(file.stat().st_mode) == 0o600
                self.given = json.loads(file.read_text())
        code = int(self.codes.get((command[0], command[1]), 0))
        return code, "Traceback\nOSError: cannot bind\nexited", "Job failed\n" if code else ""


@pytest.fixture
def shared(store: Store, nodes: Nodes) -> Store:
    fetch.take(store, "m", REMOTE, nodes.start(), 20)
    return store


def test_the_token_is_in_no_command_and_stays_in_no_file(tmp_path: Path, shared: Store, manifest: Manifest) -> None:
    machine, root = Machine(), tmp_path / "root"
    sharing = Sharing(machine, Paths(root))
    share = sharing.start(shared.root, {"m": manifest.revision}, "192.0.2.7", 5003, 600)
    assert (share.url, share.manifests) == ("http://192.0.2.7:5003", {"m": manifest})
    assert len(share.token) >= 32
    (command,) = [call for call in machine.calls if call[0] == "systemd-run"]
    assert not [word for word in command if share.token in word]
    assert "--property=RuntimeMaxSec=600" in command and "--property=DynamicUser=yes" in command
    assert f"--property=BindReadOnlyPaths={shared.root}/m/{manifest.revision}" in command
    assert (machine.given["token"], machine.given["address"]) == (share.token, "192.0.2.7")
    assert set(machine.given["files"]) == {f"/m/{manifest.revision}/{each}" for each in manifest.files}
    assert not [path for path in root.rglob("*") if path.is_file() and share.token.encode() in path.read_bytes()]
    assert sharing.start(shared.root, {"m": manifest.revision}, "192.0.2.7", 5003, 600).token != share.token
    assert sharing.stop()
    assert machine.calls[-1] == ["systemctl", "stop", "--quiet", "inference-share.service"]
    assert not (root / "run/inference-share").exists()


def test_only_the_files_of_the_server_are_installed(tmp_path: Path, shared: Store, manifest: Manifest) -> None:
    """The server needs Debian's Python alone, and no file of Ansible."""
    Sharing(Machine(), Paths(tmp_path)).start(shared.root, {"m": manifest.revision}, "::1", 5003, 600)
    installed = tmp_path / "run/inference-share"
    assert sorted(path.name for path in installed.rglob("*.py")) == [
        "__init__.py",
        "__init__.py",
        "__init__.py",
        "share_server.py",
        "systemd.py",
    ]
    assert "from share.store.share_server import main" in (installed / "serve").read_text()


def test_with_any_umask_the_server_can_read_its_code(tmp_path: Path, shared: Store, manifest: Manifest) -> None:
    before = os.umask(0o077)
    try:
        Sharing(Machine(), Paths(tmp_path)).start(shared.root, {"m": manifest.revision}, "::1", 5003, 600)
    finally:
        os.umask(before)
    installed = tmp_path / "run/inference-share"
    code = [path for path in installed.rglob("*") if "__pycache__" not in path.parts]
    assert {"core", "store", "serve", "systemd.py"} <= {path.name for path in code}
    closed = [path for path in code if stat.S_IMODE(path.stat().st_mode) & 0o444 != 0o444]
    closed += [path for path in (installed, *code) if path.is_dir() and stat.S_IMODE(path.stat().st_mode) != 0o755]
    assert closed == []


def test_a_node_that_cannot_share_is_an_error_with_the_reason(
    tmp_path: Path, shared: Store, manifest: Manifest
) -> None:
    given = (shared.root, {"m": manifest.revision})
    with pytest.raises(ShareError, match="model_store_peer_address"):
        Sharing(Machine(), Paths(tmp_path)).start(*given, "", 5003, 600)
    with pytest.raises(ShareError, match="port 5003: OSError: cannot bind"):
        Sharing(Machine(code=1), Paths(tmp_path)).start(*given, "192.0.2.7", 5003, 600)
    (shared.root / "m" / manifest.revision / "manifest.json").write_text("{}")
    with pytest.raises(ShareError, match="its manifest"):
        Sharing(Machine(), Paths(tmp_path)).start(*given, "192.0.2.7", 5003, 600)


def test_a_server_that_does_not_stop_is_an_error(tmp_path: Path) -> None:
    """Its files stay. If the unit has ended, the failed stop is no error."""
    paths = Paths(tmp_path)
    paths.share.mkdir(parents=True)
    with pytest.raises(ShareError, match=r"does not stop: Job failed; see systemctl status inference-share\.service"):
        Sharing(Machine(stop=1), paths).stop()
    assert paths.share.is_dir()
    assert not Sharing(Machine(stop=5, runs=False), paths).stop()
    assert not paths.share.exists()
