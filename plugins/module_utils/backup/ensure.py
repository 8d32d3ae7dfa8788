# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks for a repository, and makes one where there is none. Private to the collection."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from ..core import files
from . import repository, restic, state
from .places import Places


def ensure(params: dict[str, Any], places: Places, *, check: bool) -> tuple[str, str, bool]:
    """Make the repository of these module options if there is none; a repository that is there is never made again.

    Returns its state (`ready`, in check mode also `absent`, and `unknown` where restic is not installed), its id, and
    whether it was made or would be. Raises ResticError, ValueError, OSError.
    """
    with tempfile.TemporaryDirectory(prefix="backup-") as name:
        target = restic.Restic(_access(params, Path(name)))
        try:
            return "ready", target.identity(), False
        except restic.ResticError as error:
            if error.kind == restic.NOT_THERE and check:
                return "unknown", "", False
            if error.kind != restic.ABSENT:
                raise
            _refuse_lost(params["repository"], places, error)
        return ("absent", "", True) if check else ("ready", target.create(), True)


def _access(params: dict[str, Any], directory: Path) -> restic.Access:
    """The repository, with secrets in files of a private directory."""
    password, key, known = directory / "password", directory / "key", directory / "known_hosts"
    files.write(password, params["password"] + "\n", 0o600)
    if params["sftp_key"]:
        files.write(key, params["sftp_key"].rstrip("\n") + "\n", 0o600)
    if params["known_hosts"]:
        files.write(known, "".join(f"{line}\n" for line in params["known_hosts"]), 0o600)
    return restic.Access(
        address=params["repository"],
        password_file=str(password),
        environment={str(name): str(value) for name, value in params["environment"].items()},
        key=str(key) if params["sftp_key"] else "",
        known_hosts=str(known) if params["known_hosts"] else "",
        ca_file=params["ca_file"],
    )


def _refuse_lost(address: str, places: Places, error: restic.ResticError) -> None:
    """Raise ResticError where the repository must have been there, or its directory is not mounted."""
    known = state.read(places)
    if known["repository"] == repository.mask(address) and "succeeded" in known["jobs"].get("backup", {}):
        raise restic.ResticError(
            restic.ABSENT,
            f"{error}. This node has made backups in it: it is gone, or not mounted. To begin anew nonetheless,"
            f" remove {places.state}",
        ) from error
    above = Path(address).parent
    if address.startswith("/") and not above.is_dir():
        raise restic.ResticError(restic.ABSENT, f"{error}, and {above} is no directory: is it mounted?") from error
