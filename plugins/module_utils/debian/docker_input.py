# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks the input of the role docker, and finds all mistakes at once. Private to the collection."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .docker_engine import DOCKER

VERSION = re.compile(r"(([0-9]+:)?[0-9]+[.][A-Za-z0-9.+~*-]*)?")
"""A version with wildcards, but with a complete major number; empty for the tested version."""

TOOLKIT_VERSION = re.compile(r"([0-9]+)[.]([0-9]+)[.]([0-9]+)(-[A-Za-z0-9.+~]+)?")

KEY = "BEGIN PGP"


def problems(engine: Mapping[str, Any]) -> list[str]:
    """Problems with the option `engine` of the module docker_daemon."""
    return [*_version_problems(engine), *_toolkit_problems(engine), *_key_problems(engine)]


def path_problems(data_root: str, client_config: str) -> list[str]:
    """Problems with the paths; `data_root` may be empty."""
    wrong = [path for path in (data_root or "/x", client_config) if not re.match(r"/[^/]", path)]
    if not wrong:
        return []
    return [
        f'docker_data_root is "{data_root}" and docker_client_config is "{client_config}": both must be absolute '
        "paths. An empty docker_data_root keeps the present directory"
    ]


def _version_problems(engine: Mapping[str, Any]) -> list[str]:
    found = []
    if engine["source"] == DOCKER and not engine["version"]:
        found.append(
            'docker_version is empty, but docker_source "docker" needs a version: the newest one in Docker\'s '
            "repository would change between runs. Set a version that `apt-cache madison docker-ce` lists; * is a "
            'wildcard, for example "27.5.1*"'
        )
    if not VERSION.fullmatch(engine["version"]):
        found.append(
            f'docker_version is "{engine["version"]}": it must be a Debian version with * as a wildcard, for example '
            '"20.10.24*". The number before the first dot must be complete'
        )
    return found


def _toolkit_problems(engine: Mapping[str, Any]) -> list[str]:
    if engine["nvidia"] == "never":
        return []
    found, least, excluded = engine["toolkit_version"], engine["toolkit_minimum"], engine["toolkit_excluded"]
    match = TOOLKIT_VERSION.fullmatch(found)
    if match and found.partition("-")[0] != excluded and _numbers(found) >= _numbers(least):
        return []
    return [
        f'docker_nvidia_toolkit_version is "{found}": must be a complete version such as "1.20.0", {least} or later, '
        f"but not {excluded}. Older versions do not keep the CDI specification of the GPUs up to date, and the service "
        f"of {excluded} cannot start before Docker"
    ]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.partition("-")[0].split(".")))


def _key_problems(engine: Mapping[str, Any]) -> list[str]:
    key = engine["repository_key"]
    if engine["source"] != DOCKER or re.match(r"https?://", key) or KEY in key:
        return []
    return [
        f'docker_repository_key is "{key}", which is not a file on the controller. Set it to an absolute path on the '
        "controller, an http(s) address, or the key's ASCII armoured text"
    ]
