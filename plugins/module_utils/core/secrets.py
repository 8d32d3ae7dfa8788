# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds weak secrets: placeholders, short secrets, and one secret for two purposes. Private to the collection. Pure. No
message shows a value."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

SECRET_LENGTH = 8
"""Characters. Ansible and this collection mask a secret wherever the secret occurs. A shorter secret would also mask
numbers and plain words."""

OWN = ("vllm_api_key", "vllm_accepted_keys", "gang_key", "gateway_keys", "backup_password", "monitoring_users")
"""Variables with secrets that the site makes itself. Each must be long enough, and have one purpose."""

OTHERS = (
    *("vllm_secret_environment", "model_store_hub_token", "docker_registry_credentials", "nvidia_driver_mok_password"),
    *("backup_environment", "backup_prune_environment", "backup_sftp_key", "recovery_webhook", "monitoring_receivers"),
    *("monitoring_heartbeat_url", "monitoring_alertmanager_global", "monitoring_remote_write"),
    "monitoring_scrape_configs",
)
"""Other variables with secrets. Their length is not checked."""

PURPOSES: Mapping[str, str] = {"vllm_accepted_keys": "vllm_api_key"}
"""Variables that may repeat the secrets of another variable, and that variable."""

ADVICE = "set a secret of your own in the vault (`openssl rand -hex 32` makes one)"

OTHERS_ADVICE = "set the value that the other service gave you, in the vault"

SITE_ADVICE: Mapping[str, str] = {
    "backup_sftp_key": "set the private key that the backup server knows, in the vault",
    "nvidia_driver_mok_password": "set a password of your own, of letters and digits, in the vault",
}
"""The advice for variables of OTHERS whose secret does not come from another service."""

_PLACEHOLDER = re.compile(
    r"(?i:(?<![a-z])change[-_]?(?:me|this|it)(?![a-z]))|^(?i:change (?:me|this|it)\b)|^CHANGE|^<[^<>]*>$"
)
"""A placeholder, also as a part of a value such as an address. `change it` inside of a sentence is none."""


def is_placeholder(value: object) -> bool:
    """Whether a value is a text that the operator had to replace, such as change-me."""
    return bool(_PLACEHOLDER.search(str(value)))


def placeholders(name: str, value: Any) -> list[tuple[str, str]]:
    """The placeholders in a variable: the place of each, such as monitoring_users.operator, and a message."""
    return [(place, _placeholder(name)) for place, text, _digest in _values(name, value) if is_placeholder(text)]


def _placeholder(name: str) -> str:
    return f"is a placeholder: {ADVICE if name in OWN else SITE_ADVICE.get(name, OTHERS_ADVICE)}"


def weak(variables: Mapping[str, Any]) -> list[str]:
    """A line for each weak secret in the site's variables. An unset or empty variable is not a secret."""
    found = []
    seen: dict[str, tuple[str, str]] = {}
    for name in (*OWN, *OTHERS):
        for place, value, digest in _values(name, variables.get(name)):
            purpose = PURPOSES.get(name, name)
            if is_placeholder(value):
                found.append(f"{place}: {_placeholder(name)}")
            elif name in OWN and not digest and len(value) < SECRET_LENGTH:
                state = f"has fewer than {SECRET_LENGTH} characters" if value.strip() else "is empty"
                found.append(f"{place}: {state}: {ADVICE}")
            elif name in OWN:
                other, known = seen.setdefault(digest or _sha256(value), (place, purpose))
                # One secret for two purposes, two clients or two users.
                if other != place and (known != purpose or name not in ("vllm_api_key", *PURPOSES)):
                    found.append(f"{place}: is the same secret as {other}: give each its own")
    return found


def _sha256(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()


def _values(place: str, value: Any) -> Iterator[tuple[str, str, str]]:
    """The texts in a variable, each with its place, and with its SHA-256 if the inventory has only this."""
    if isinstance(value, Mapping):
        if place.startswith("gateway_keys["):
            place = f"{place} ({value.get('name')})"
            if value.get("sha256") is not None:
                yield place, "", str(value["sha256"])
            if value.get("key") is not None:
                yield place, str(value["key"]), ""
            return
        for key in value:
            yield from _values(f"{place}.{key}", value[key])
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            yield from _values(f"{place}[{number}]", item)
    elif isinstance(value, str) and (value or "." in place or "[" in place):
        yield place, value, ""
