# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Creates a backup repository if there is none. Private to the collection."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from ..core import files
from . import repository, restic, state
from .places import Places


def ensure(params: dict[str, Any], places: Places, *, check: bool) -> tuple[str, str, bool]:
    """Create the repository that the module options name. An existing repository is never replaced.

    Returns three values: the state, the repository's id, and whether the repository was (in check mode: would be)
    created. The state is `ready`. In check mode, it can also be `absent`, or `unknown` if restic is not installed.
    Raises ResticError, ValueError, OSError.
    """
    with tempfile.TemporaryDirectory(prefix="backup-") as name:
        target = restic.Restic(access(params, Path(name)))
        try:
            return "ready", target.identity(), False
        except restic.ResticError as error:
            if error.kind == restic.NOT_THERE and check:
                return "unknown", "", False
            if error.kind != restic.ABSENT:
                raise
            _refuse_lost(params["repository"], places, error)
        return ("absent", "", True) if check else ("ready", target.create(), True)


def access(params: dict[str, Any], directory: Path | None = None) -> restic.Access:
    """The access that the module options name. The secrets are written to files in `directory`, which is private.

    Without a directory, no file is written, and only the address and the credentials of the server are known.
    """
    environment = {str(name): str(value) for name, value in params["environment"].items()}
    if directory is None:
        return restic.Access(params["repository"], "", environment, ca_file=params["ca_file"])
    password, key, known = directory / "password", directory / "key", directory / "known_hosts"
    files.write(password, params["password"] + "\n", 0o600)
    if params["sftp_key"]:
        files.write(key, params["sftp_key"].rstrip("\n") + "\n", 0o600)
    if params["known_hosts"]:
        files.write(known, "".join(f"{line}\n" for line in params["known_hosts"]), 0o600)
    return restic.Access(
        address=params["repository"],
        password_file=str(password),
        environment=environment,
        key=str(key) if params["sftp_key"] else "",
        known_hosts=str(known) if params["known_hosts"] else "",
        ca_file=params["ca_file"],
    )


def _refuse_lost(address: str, places: Places, error: restic.ResticError) -> None:
    """Raise ResticError if the node has already made backups in this repository, or its parent directory is missing."""
    known = state.read(places)
    if known["repository"] == repository.mask(address) and "succeeded" in known["jobs"].get("backup", {}):
        raise restic.ResticError(
            restic.ABSENT,
            f"{error}. This node has made backups there, so the repository was removed or is not mounted. Mount it."
            f" To create a new repository instead, remove {places.state}",
        ) from error
    above = Path(address).parent
    if address.startswith("/") and not above.is_dir():
        raise restic.ResticError(
            restic.ABSENT, f"{error}, and {above} is not a directory. Mount it, or create it"
        ) from error
