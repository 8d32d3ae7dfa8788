# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of Prometheus and Alertmanager, which are the role's variables, checked. Private to the collection."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import urlsplit

from ..core.addresses import in_url
from ..core.problems import Problem

PREFIX = "monitoring_"
"""The settings are the role's variables without this."""

WHERE = "role monitoring"

USER = re.compile(r"[A-Za-z0-9._@-]{1,64}")
"""What basic auth takes, for which a colon ends the name, and what needs no quotes in a file."""

INTERNAL_USER = "inference-internal"
"""The user by which Prometheus and Alertmanager ask each other; its password is made on the machine."""

PASSWORD_BYTES = (8, 72)
"""bcrypt reads no more than 72. Source: crypt(5), section bcrypt."""

RULE_FILE = re.compile(r"[A-Za-z0-9._-]+\.ya?ml")


@dataclass(frozen=True)
class Settings:
    """The role's variables of these names."""

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
        """Where the machine itself reaches both."""
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
"""The least and the most of each number. Rates are over two minutes at least, which two samples must fall into."""

MEMORY = re.compile(r"infinity|[0-9]+(\.[0-9]+)?[KMGT%]?")
"""Source: systemd.resource-control(5), MemoryMax. Of what it does not understand, systemd makes no limit."""

URLS = ("external_url", "alertmanager_external_url")
ABSOLUTE = ("tls_certificate", "tls_key")
NAMED: Mapping[str, str] = {"receivers": "name", "scrape_configs": "job_name", "remote_write": "url"}
"""Lists of objects as Prometheus has them, and what each of them must have."""


def read_settings(raw: Mapping[str, Any]) -> tuple[Settings, list[Problem]]:
    """The settings, and every mistake in them; with mistakes, the settings are not to be used."""
    problems: list[Problem] = []

    def refuse(name: str, message: str, value: object = None) -> None:
        problems.append(Problem(WHERE, message, PREFIX + name, value))

    for name, (least, most) in NUMBERS.items():
        if isinstance(raw[name], bool) or not isinstance(raw[name], int) or not least <= raw[name] <= most:
            refuse(name, f"must be a whole number from {least} to {most}", raw[name])
    if not MEMORY.fullmatch(str(raw["memory_max"])):
        refuse("memory_max", "must be a size as systemd has it: 8G, 512M, 25%, or infinity", raw["memory_max"])
    if raw["port"] == raw["alertmanager_port"]:
        refuse("alertmanager_port", "is the port of Prometheus, too: take another one", raw["port"])
    for name in URLS:
        if raw[name] and urlsplit(str(raw[name])).scheme not in ("http", "https"):
            refuse(name, "must begin with http:// or https://", raw[name])
    if raw["heartbeat_url"] and urlsplit(str(raw["heartbeat_url"])).scheme not in ("http", "https"):
        # Not the address itself: who knows it can keep a dead monitoring quiet.
        refuse("heartbeat_url", "must begin with http:// or https://")
    for name in ABSOLUTE:
        if raw[name] and not str(raw[name]).startswith("/"):
            refuse(name, "must be an absolute path on the monitoring host", raw[name])
    if bool(raw["tls_certificate"]) != bool(raw["tls_key"]):
        refuse("tls_key", "goes with monitoring_tls_certificate: set both or none")
    for name, key in NAMED.items():
        for item in raw[name]:
            if not isinstance(item, Mapping) or not item.get(key):
                # Not the item itself: it may hold a password.
                refuse(name, f"each must be an object with {key}, as Prometheus documents it")
    for name in raw["extra_rules"]:
        if not RULE_FILE.fullmatch(str(name)):
            refuse("extra_rules", "must have names of files that end in .yml", name)
    _check_access(raw, refuse)
    known = {field.name: raw[field.name] for field in fields(Settings)}
    known.update({name: tuple(raw[name]) for name in ("remote_write", "scrape_configs", "receivers", "routes")})
    known["users"] = {str(name): str(password) for name, password in raw["users"].items()}
    return Settings(**known), problems


def _check_access(raw: Mapping[str, Any], refuse: Any) -> None:
    """Who gets in: a client that reaches these ports reads everything, and can silence every alert."""
    try:
        loopback = ipaddress.ip_address(raw["bind_address"]).is_loopback
    except ValueError:
        message = "must be an address of the monitoring host, 0.0.0.0, or :: for both families"
        refuse("bind_address", message, raw["bind_address"])
        return
    if not loopback and not raw["users"] and not raw["anonymous"]:
        refuse(
            "users",
            f"is empty, and monitoring_bind_address is {raw['bind_address']}: declare users with their passwords,"
            " listen on 127.0.0.1, or set monitoring_anonymous to true where everybody who reaches it may",
        )
    least, most = PASSWORD_BYTES
    for name, password in raw["users"].items():
        if not USER.fullmatch(str(name)) or name == INTERNAL_USER:
            refuse("users", f"must have names of letters, digits and . _ @ -, and not {INTERNAL_USER}", name)
        if not isinstance(password, str) or not least <= len(password.encode()) <= most:
            # Never the password itself.
            refuse("users", f"the password of {name} must be a text of {least} to {most} bytes: check the vault")
