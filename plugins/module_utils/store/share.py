# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts and stops the server from which other nodes fetch revisions of the store. Private to the collection."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..core import files as node_files
from ..core import node_library
from ..core.addresses import in_url
from ..core.paths import Paths
from ..models.manifest import MANIFEST, Manifest
from . import share_server
from .store import make_directory

UNIT = "inference-share.service"
"""A transient unit in /run: nothing of it remains after its end or a reboot."""

PYTHON = "/usr/bin/python3"

Run = Callable[[list[str]], tuple[int, str, str]]
"""Runs a command: exit code, output, errors."""

SANDBOX = (
    "DynamicUser=yes",
    "ProtectSystem=strict",
    "ProtectHome=yes",
    "PrivateDevices=yes",
    "NoNewPrivileges=yes",
    "CapabilityBoundingSet=",
    "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX",
    "RestrictNamespaces=yes",
    "SystemCallFilter=@system-service",
    "MemoryMax=512M",
    # Engines on the node have precedence.
    "CPUWeight=20",
    "IOWeight=20",
)


class ShareError(Exception):
    """A node cannot share its models, or cannot stop sharing them; the message says why."""


@dataclass(frozen=True)
class Share:
    """The server's address, and the token that other nodes must send."""

    url: str
    token: str
    manifests: Mapping[str, Manifest]
    """By the model's name."""


class Sharing:
    """The server of a node. A node has at most one server."""

    def __init__(self, run: Run, paths: Paths) -> None:
        self._run = run
        self._directory = paths.share
        self._given = paths.share / "given.json"

    def start(self, store: Path, models: Mapping[str, str], address: str, port: int, seconds: int) -> Share:
        """Start the server for these revisions, by the model's name. The server ends by itself after `seconds`.

        Raises ShareError and OSError.
        """
        self.stop()
        if not address:
            raise ShareError(
                "other nodes cannot fetch models from this node, because its address is not known: set"
                " inference_address, or model_store_peer_address in your own playbook"
            )
        manifests = {name: _manifest(store / name / revision) for name, revision in models.items()}
        token = secrets.token_urlsafe(32)
        files = {
            f"/{name}/{models[name]}/{relative}": str(store / name / models[name] / relative)
            for name, manifest in manifests.items()
            for relative in manifest.files
        }
        library, command = self._directory / "share", self._directory / "serve"
        plan = node_library.plan(share_server.__name__, library, command)
        # Readable by all users with every umask, because the server runs as an unprivileged user.
        for path in plan.wanted:
            make_directory(path.parent)
        plan.apply()
        # The server sees only the shared revisions of the store.
        shown = [store / name / revision for name, revision in models.items()]
        view = [f"TemporaryFileSystem={store}:ro", *(f"BindReadOnlyPaths={path}" for path in shown)]
        properties = [
            *("Type=notify", f"RuntimeMaxSec={seconds}", f"StandardInput=file:{self._given}"),
            *(*SANDBOX, *view),
        ]
        given = {"address": address, "port": port, "token": token, "files": files}
        try:
            node_files.write(self._given, node_files.to_json(given), 0o600)
            code, _output, _errors = self._run(
                [
                    *("systemd-run", "--quiet", "--collect", f"--unit={UNIT}"),
                    "--description=Share models of the store with other nodes while a playbook runs",
                    *(f"--property={each}" for each in properties),
                    *(PYTHON, "-I", str(command)),
                ]
            )
        finally:
            # The server has the file open. No other process needs the file.
            self._given.unlink(missing_ok=True)
        if code:
            raise ShareError(
                f"the server for other nodes does not start at {address}, port {port}: {self._last_words()}; correct"
                " inference_address or model_store_peer_port"
            )
        return Share(f"http://{in_url(address)}:{port}", token, manifests)

    def runs(self) -> bool:
        """Whether the server runs. Changes nothing."""
        code, _output, _errors = self._run(["systemctl", "is-active", "--quiet", UNIT])
        return code == 0

    def stop(self) -> bool:
        """Stop the server, and remove its files. Returns whether the server ran. Raises ShareError."""
        ran = self.runs()
        code, _output, errors = self._run(["systemctl", "stop", "--quiet", UNIT])
        # systemctl also fails for a unit that does not exist, such as after the end of the server.
        if code and self.runs():
            raise ShareError(
                f"the server for other nodes does not stop: {errors.strip() or f'exit code {code}'}; see systemctl"
                f" status {UNIT}"
            )
        shutil.rmtree(self._directory, ignore_errors=True)
        return ran

    def _last_words(self) -> str:
        _code, output, _errors = self._run(["journalctl", "--quiet", f"--unit={UNIT}", "--lines=10", "--output=cat"])
        errors = [line for line in output.splitlines() if "Error" in line]
        return errors[-1] if errors else f"see journalctl --unit={UNIT}"


def _manifest(revision: Path) -> Manifest:
    try:
        return Manifest.from_dict(node_files.read_json(revision / MANIFEST))
    except ValueError as error:
        message = f"{revision} cannot be shared: its manifest {error}; run the playbook again, which repairs the store"
        raise ShareError(message) from None
