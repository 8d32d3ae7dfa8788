# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Docker's settings for image registries: certificate authorities and logins. Private to the collection."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .service_files import ServiceError

AUTHORITIES = Path("/etc/docker/certs.d")
"""The Docker daemon reads this directory at every pull, so a change needs no reload."""

REGISTRY = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?")
"""HOST or HOST:PORT. The first character keeps the name from leading out of AUTHORITIES."""

PEM = "BEGIN CERTIFICATE"


def authority(registry: str) -> Path:
    """The path of the certificate of an image registry's authority."""
    return AUTHORITIES / registry / "ca.crt"


def authority_problems(declared: Iterable[Mapping[str, Any]]) -> list[str]:
    """Problems with the declared authorities: a text for each wrong entry."""
    return [
        f"docker_registry_cas: {one['registry']} must be HOST or HOST:PORT without a scheme. Its `ca` must be a "
        f'certificate in PEM, or the absolute path of one on the controller, found "{one["ca"]}". An entry with '
        "state: absent needs no `ca`"
        for one in declared
        if not (REGISTRY.fullmatch(one["registry"]) and (one["state"] == "absent" or PEM in one["ca"]))
    ]


def login_problems(logins: Mapping[str, str]) -> list[str]:
    """Problems with the declared logins. The texts do not contain secrets."""
    incomplete = sorted(registry for registry, login in logins.items() if not login)
    if not incomplete:
        return []
    return [
        f"docker_registry_credentials: {', '.join(incomplete)} must have a username and a password. Add them, or set "
        "`state: absent` to remove a login"
    ]


def client_config(old: str | None, where: str, logins: Mapping[str, str], gone: Iterable[str]) -> str | None:
    """Add logins to the text of a client's configuration, and remove the logins of the image registries in `gone`.

    If nothing changes, the text stays the same. `logins` has the value that `docker login` writes, by image registry.
    Raises ServiceError, whose message contains no part of the file.
    """
    try:
        config = json.loads(old) if old is not None else {}
    except ValueError:
        config = None
    if not isinstance(config, dict) or not isinstance(config.get("auths", {}), dict):
        raise ServiceError(
            f"docker_client_config {where} cannot be used: the file is not JSON with an object of logins "
            f'("auths"). Repair the file (python3 -m json.tool {where} finds the fault), or move the file away, which '
            "removes all other logins. Nothing was changed."
        )
    auths = config.get("auths", {})
    wanted = {**auths, **{registry: {"auth": login} for registry, login in logins.items()}}
    for registry in gone:
        wanted.pop(registry, None)
    if wanted == auths:
        return old
    return json.dumps({**config, "auths": wanted}, indent=4, sort_keys=True) + "\n"
