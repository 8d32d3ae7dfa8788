#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: backup_repository
short_description: See that a repository of backups is there, and make it where it is not
version_added: 0.1.0
description:
  - Asks restic whether there is a repository, and whether the password opens it. One that is there is never made again.
  - Where there is none, it is made; unless this node has made backups in it before. Then it is gone, or not mounted.
  - Secrets reach restic by files of mode 0600 and by its environment, never by a command line.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  repository:
    description:
      - A directory on the node, or C(sftp:), C(s3:) or C(rest:) as restic writes them.
    type: str
    required: true
  password:
    description: What the repository is encrypted with.
    type: str
    required: true
extends_documentation_fragment:
  - baremetal.inference.repository
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - Where restic is not installed yet, RV(state) is V(unknown).
  diff_mode:
    support: none
"""

EXAMPLES = r"""
- name: See that the repository is there
  baremetal.inference.backup_repository:
    repository: sftp:backup@backup.example.com:/srv/fleet
    password: "{{ vault_backup_password }}"
    known_hosts: ["backup.example.com ssh-ed25519 AAAA..."]
"""

RETURN = r"""
state:
  description: V(ready), V(absent) where it would be made in check mode, or V(unknown).
  returned: success
  type: str
id:
  description: The repository's id; empty unless it is V(ready).
  returned: success
  type: str
"""

import tempfile
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.backup import repository, restic, state
from ansible_collections.baremetal.inference.plugins.module_utils.backup.places import Places
from ansible_collections.baremetal.inference.plugins.module_utils.backup.settings import ACCESS
from ansible_collections.baremetal.inference.plugins.module_utils.core import files

ARGUMENTS = {
    "repository": {"type": "str", "required": True},
    "password": {"type": "str", "required": True, "no_log": True},
    **ACCESS,
}


def access(params: dict[str, Any], directory: Path) -> restic.Access:
    """The repository with secrets that lie in a private directory for as long as this takes."""
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


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    params = module.params
    try:
        repository.parse(params["repository"])
        with tempfile.TemporaryDirectory(prefix="backup-") as name:
            result = ensure(restic.Restic(access(params, Path(name))), params["repository"], module.check_mode)
    except (restic.ResticError, ValueError, OSError) as error:
        module.fail_json(msg=f"{error}. Nothing was changed.")
    module.exit_json(**result)


def ensure(target: restic.Restic, address: str, check: bool) -> dict[str, Any]:
    """See that there is a repository. Raises ResticError, ValueError, OSError."""
    try:
        return {"changed": False, "state": "ready", "id": target.identity()}
    except restic.ResticError as error:
        if error.kind == restic.NOT_THERE and check:
            return {"changed": False, "state": "unknown", "id": ""}
        if error.kind != restic.ABSENT:
            raise
        known = state.read(Places())
        if known["repository"] == repository.mask(address) and "succeeded" in known["jobs"].get("backup", {}):
            raise restic.ResticError(
                restic.ABSENT,
                f"{error}. This node has made backups in it: it is gone, or not mounted. To begin anew nonetheless,"
                f" remove {Places().state}",
            ) from error
        above = Path(address).parent
        if address.startswith("/") and not above.is_dir():
            raise restic.ResticError(restic.ABSENT, f"{error}, and {above} is no directory: is it mounted?") from error
    if check:
        return {"changed": True, "state": "absent", "id": ""}
    return {"changed": True, "state": "ready", "id": target.create()}


if __name__ == "__main__":
    main()
