# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the results of the tasks that looked at a machine, or why there are none. Private to the collection. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .machine import SSH_PORT

MODULES: Mapping[str, tuple[str, str]] = {
    "host": ("host_facts", "system"),
    "gpu": ("gpu_facts", "ansible_facts"),
    "rdma": ("rdma_facts", "ansible_facts"),
}
"""By the key of its result: a module that looked at a machine, and a key that a good result of this module has."""

MOST = 300
"""The most characters of a message that are shown."""

ANSIBLE = re.compile(r"^(?:Task failed: )?(?:Failed to connect to the host via ssh: )?(?:ssh: )?")
"""What Ansible puts before the reason."""

PORT = re.compile(r"[0-9]{1,5}")
LAST_PORT = 65535

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
"""Control characters, and further characters that end a line of YAML."""
TEMPLATE = re.compile(r"\{(?=[{%#])")
"""The beginning of a template of Jinja."""


def harmless(value: Any) -> Any:
    """A result without Ansible's own types, templates and control characters.

    The inventory gets texts of the machines, and Ansible evaluates templates of an inventory on the controller.
    """
    if isinstance(value, Mapping):
        return {str(harmless(str(key))): harmless(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [harmless(item) for item in value]
    return TEMPLATE.sub("{ ", CONTROL.sub(" ", str(value))) if isinstance(value, str) else value


def login(result: Mapping[str, Any]) -> dict[str, str]:
    """What the first command on a machine printed: uid, login and python."""
    return dict(re.findall(r"\b(uid|login|python)=(\S*)", str(result.get("stdout") or "")))


def _port(results: Mapping[str, Any]) -> int | None:
    """The port of SSH; None if the inventory has a value that is no port."""
    text = str(results.get("port") or SSH_PORT)
    return int(text) if PORT.fullmatch(text) and 0 < int(text) <= LAST_PORT else None


def error(results: Mapping[str, Any]) -> str:
    """Why nothing is known about a machine; empty if all modules have answered."""
    if _port(results) is None:
        return f"ansible_port is {results['port']!r}: set a whole number from 1 to 65535"
    result = results.get("login") or {}
    message = ANSIBLE.sub("", " ".join(str(result.get("msg") or "").split()))[:MOST]
    if result.get("unreachable"):
        return f"cannot be reached: {message}"
    values = login(result)
    if "uid" not in values:
        words = message or " ".join(str(result.get("stderr") or result.get("stdout") or "").split())[:MOST]
        return (
            f"the login gets no root: {words or 'no answer'}. Allow sudo without a password, or add --ask-become-pass, "
            "or log in as root: -u root"
        )
    if values["uid"] != "0":
        return f"the login has the uid {values['uid']}, and not root's"
    if not values.get("python"):
        return "has no Python: apt-get install python3"
    for key, (module, expected) in MODULES.items():
        answer = results.get(key) or {}
        if expected not in answer:
            words = " ".join(str(answer.get("msg") or "no answer").split())[:MOST]
            return f"the module {module} failed: {words}"
    return ""


def read(results: Mapping[str, Any]) -> dict[str, Any]:
    """The results in the form of machine.read: address, port, login, error, host, gpu and rdma."""
    return {
        "address": str(results.get("address") or ""),
        "port": _port(results) or SSH_PORT,
        "login": login(results.get("login") or {}).get("login", ""),
        "error": error(results),
        "host": results.get("host") or {},
        "gpu": (results.get("gpu") or {}).get("ansible_facts") or {},
        "rdma": (results.get("rdma") or {}).get("ansible_facts") or {},
    }
