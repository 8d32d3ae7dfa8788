# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of Prometheus and Alertmanager, checked. They are the role's variables. Private to the collection."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import urlsplit

from ..core.addresses import in_url
from ..core.problems import Problem, is_integer
from ..core.secrets import placeholders

PREFIX = "monitoring_"
"""The prefix of the role's variables, which the settings do not have."""

WHERE = "role monitoring"

USER = re.compile(r"[A-Za-z0-9._@-]{1,64}")
"""The names that users may have. Basic auth ends a name at a colon. In quotes of YAML, these names need no escape."""

INTERNAL_USER = "inference-internal"
"""The user by which Prometheus and Alertmanager reach each other. The host makes its password."""

PASSWORD_BYTES = (8, 72)
"""bcrypt ignores what comes after 72 bytes. Source: crypt(5), section bcrypt."""

RULE_FILE = re.compile(r"[A-Za-z0-9._-]+\.ya?ml")


@dataclass(frozen=True)
class Settings:
    """The role's variables of the same names."""

    bind_address: str
    port: int
    alertmanager_port: int
    users: Mapping[str, str]
    anonymous: bool
    tls_certificate: str
    tls_key: str
    external_url: str
    alertmanager_external_url: str
    retention_days: int
    retention_gib: int
    scrape_seconds: int
    memory_max: str
    external_labels: Mapping[str, str]
    remote_write: tuple[Mapping[str, Any], ...]
    scrape_configs: tuple[Mapping[str, Any], ...]
    extra_rules: Mapping[str, str]
    receivers: tuple[Mapping[str, Any], ...]
    routes: tuple[Mapping[str, Any], ...]
    alertmanager_global: Mapping[str, Any]
    group_wait_seconds: int
    group_interval_seconds: int
    repeat_hours: int
    heartbeat_url: str
    heartbeat_minutes: int

    @property
    def asked_at(self) -> str:
        """The address at which the host itself reaches both services."""
        if self.bind_address in ("0.0.0.0", "::"):
            return "127.0.0.1"
        return in_url(self.bind_address)

    @property
    def tls(self) -> bool:
        return bool(self.tls_certificate)


NUMBERS: Mapping[str, tuple[int, int]] = {
    "port": (1, 65535),
    "alertmanager_port": (1, 65535),
    "retention_days": (1, 3650),
    "retention_gib": (1, 10**6),
    "scrape_seconds": (1, 60),
    "group_wait_seconds": (0, 3600),
    "group_interval_seconds": (1, 86400),
    "repeat_hours": (1, 24 * 30),
    "heartbeat_minutes": (1, 24 * 60),
}
"""The least and the greatest value of each number. Rates use at least two minutes, which must contain two samples."""

MEMORY = re.compile(r"infinity|[0-9]+(\.[0-9]+)?[KMGT%]?")
"""Source: systemd.resource-control(5), MemoryMax. systemd ignores a value that it does not understand."""

URLS = ("external_url", "alertmanager_external_url")
ABSOLUTE = ("tls_certificate", "tls_key")
NAMED: Mapping[str, str] = {"receivers": "name", "scrape_configs": "job_name", "remote_write": "url"}
"""Lists of objects in Prometheus' form, and the key that each object must have."""


SECRETS = ("users", "receivers", "alertmanager_global", "remote_write", "scrape_configs", "heartbeat_url")
"""Variables that hold passwords, or addresses that only the site may know."""


def read_settings(raw: Mapping[str, Any]) -> tuple[Settings, list[Problem]]:
    """The settings, and every mistake in them. Settings with mistakes must not be used."""
    problems: list[Problem] = []

    def refuse(name: str, message: str, value: object = None) -> None:
        problems.append(Problem(WHERE, message, PREFIX + name, value))

    for name, (least, most) in NUMBERS.items():
        if not is_integer(raw[name]) or not least <= raw[name] <= most:
            refuse(name, f"must be a whole number from {least} to {most}", raw[name])
    if not MEMORY.fullmatch(str(raw["memory_max"])):
        refuse("memory_max", "must be a size in systemd's form: 8G, 512M, 25%, or infinity", raw["memory_max"])
    if raw["port"] == raw["alertmanager_port"]:
        refuse("alertmanager_port", "is also monitoring_port: choose another port", raw["port"])
    for name in URLS:
        if raw[name] and not _is_url(str(raw[name])):
            refuse(name, "must be a URL that begins with http:// or https://, and have a host", raw[name])
    if raw["heartbeat_url"] and not _is_url(str(raw["heartbeat_url"])):
        # The message leaves the address out: with it, anybody could send the heartbeat of a monitoring that is down.
        refuse("heartbeat_url", "must be a URL that begins with http:// or https://, and have a host")
    for name in ABSOLUTE:
        if raw[name] and not str(raw[name]).startswith("/"):
            refuse(name, "must be an absolute path on the monitoring host", raw[name])
    if bool(raw["tls_certificate"]) != bool(raw["tls_key"]):
        refuse("tls_key", "goes with monitoring_tls_certificate: set both or none")
    for name, key in NAMED.items():
        for item in raw[name]:
            if not isinstance(item, Mapping) or not item.get(key):
                # The message leaves the item out, since it may hold a password.
                refuse(name, f"must be a list of objects with {key}, in the form of Prometheus' documentation")
    for name, text in raw["extra_rules"].items():
        if not RULE_FILE.fullmatch(str(name)):
            refuse("extra_rules", "must have names of files that end in .yml", name)
        if not isinstance(text, str):
            refuse("extra_rules", f"must have the text of each file: write {name}: |, and indent the rules below", name)
        elif not _is_utf8(text):
            refuse("extra_rules", "must have texts in UTF-8: convert the file from which you read the text", name)
    _check_access(raw, refuse)
    problems += [
        Problem(WHERE, message, place) for name in SECRETS for place, message in placeholders(PREFIX + name, raw[name])
    ]
    known = {field.name: raw[field.name] for field in fields(Settings)}
    known.update({name: tuple(raw[name]) for name in ("remote_write", "scrape_configs", "receivers", "routes")})
    known["users"] = {str(name): str(password) for name, password in raw["users"].items()}
    return Settings(**known), problems


def _is_utf8(text: str) -> bool:
    """Whether a text can be written as UTF-8. Ansible's lookups keep other bytes of a file as surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_url(text: str) -> bool:
    """Whether a text is a URL of HTTP with a host."""
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


def _check_access(raw: Mapping[str, Any], refuse: Any) -> None:
    """Refuse access for everybody, unless the operator allows it: clients can read everything and silence alerts."""
    try:
        loopback = ipaddress.ip_address(raw["bind_address"]).is_loopback
    except ValueError:
        message = "must be an address of the monitoring host, 0.0.0.0, or :: for both families"
        refuse("bind_address", message, raw["bind_address"])
        # No second message about this address.
        loopback = True
    if not loopback and not raw["users"] and not raw["anonymous"]:
        refuse(
            "users",
            f"is empty, and monitoring_bind_address is {raw['bind_address']}: declare users with their passwords, or"
            " listen on 127.0.0.1. If everybody who reaches the ports may use them, set monitoring_anonymous to true",
        )
    least, most = PASSWORD_BYTES
    for name, password in raw["users"].items():
        if not USER.fullmatch(str(name)) or name == INTERNAL_USER:
            refuse("users", f"must have names of letters, digits and . _ @ -, and not {INTERNAL_USER}", name)
        if not isinstance(password, str) or not least <= len(password.encode()) <= most:
            # The message leaves the password out.
            refuse("users", f"the password of {name} must be a text of {least} to {most} bytes: check the vault")
