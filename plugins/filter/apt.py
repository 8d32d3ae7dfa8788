# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters for APT's files on a machine that cannot run modules yet, and for the keys of repositories.

Each function imports what it needs itself, because Ansible's worker processes may load every file of filters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError


def apt_files(
    sources: Iterable[Mapping[str, Any]],
    etc: str,
    http_proxy: str = "",
    https_proxy: str = "",
    no_proxy: Iterable[str] = (),
    ca: str = "",
) -> list[dict[str, str]]:
    """The files with sources, proxies and certificate authorities. Raises AnsibleFilterError."""
    from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
    from ansible_collections.baremetal.inference.plugins.module_utils.debian.apt_sources import (
        CODENAME,
        Transport,
        declared_files,
        read_sources,
    )

    transport = Transport(http_proxy, https_proxy, tuple(no_proxy), ca.strip())
    problems = transport.problems()
    try:
        declared = read_sources(sources)
    except InputError as error:
        declared, problems = [], [*error.problems, *problems]
    if problems:
        raise AnsibleFilterError("The package sources: " + "\n".join(map(str, problems)))
    files = declared_files(declared, transport, etc, CODENAME)
    return [{"path": f"{etc}/{path}", "text": file.text, "mode": f"{file.mode:04o}"} for path, file in files.items()]


def key_refusal(data: str, fingerprints: Iterable[str]) -> str:
    """Why a key, in base64, is refused; empty if it is accepted. Without `fingerprints`, every key is accepted."""
    import base64

    from ansible_collections.baremetal.inference.plugins.module_utils.debian import openpgp

    return openpgp.refusal(base64.b64decode(data), fingerprints)


class FilterModule:
    """The filters of this file, in the form that Ansible needs."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"apt_files": apt_files, "key_refusal": key_refusal}
