# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one instance sets for its container alone, in addition to the settings of all engines.

Private to the collection. Pure.

Secret variables of an instance are no part of the instances that modules get: the filter instance_secrets takes them
out, and an option that no log shows brings them to the node.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..core.problems import Problem
from ..core.secrets import SECRET_LENGTH, is_placeholder
from . import environment
from .instance import Instance
from .inventory import SECRETS
from .release import Settings
from .settings import BY_DIGEST, VARIABLE, size_mistake, ulimit_mistakes

KEYS = frozenset({"image", "environment", SECRETS, "shm_size", "memory", "ulimits", "user"})

_DIGEST = "REPOSITORY@sha256: and 64 hexadecimal digits, which `docker buildx imagetools inspect IMAGE:TAG` shows"

_USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}|\d{1,9}(?::\d{1,9})?")

_SECRET_NAME = re.compile(
    r"(?:^|_)(?:TOKEN|PASSWORD|PASSWD|PASSPHRASE|SECRET|CREDENTIALS?|(?:API|ACCESS|PRIVATE|SECRET)_?KEY)$",
    re.IGNORECASE,
)
_SECRET_VALUE = re.compile(
    r"\b(?:hf_|sk-|ghp_|github_pat_|glpat-|xox[bp]-|AKIA)[A-Za-z0-9_-]{16,}|-----BEGIN |://[^/\s:@]+:[^/\s@]+@"
)
"""Forms of tokens, keys, and addresses with a password."""


def check(where: str, raw: Mapping[str, Any]) -> list[Problem]:
    """All mistakes in the own settings of a declared instance. No message has the value of a variable."""
    found: list[Problem] = []

    def refuse(key: str, message: str, value: object = None) -> None:
        found.append(Problem(where, message, key, value))

    image, user = raw.get("image"), raw.get("user")
    if image is not None and not (isinstance(image, str) and BY_DIGEST.fullmatch(image)):
        refuse("image", f"must name the image by digest: {_DIGEST}", image)
    if user is not None and not _USER.fullmatch(str(user)):
        refuse("user", "must be the name of a user of the node, UID, or UID:GID (in quotes)", user)
    for key in ("shm_size", "memory"):
        if raw.get(key) is not None and (mistake := size_mistake(raw[key])):
            refuse(key, mistake, raw[key])
    ulimits = raw.get("ulimits")
    if ulimits is not None and not isinstance(ulimits, Mapping):
        refuse("ulimits", "must be a dictionary of limits by name", ulimits)
    else:
        for mistake in ulimit_mistakes(ulimits or {}):
            refuse("ulimits", mistake)
    if SECRETS in raw:
        refuse(SECRETS, "must not reach the role with the instances, which logs show: set it in vllm_instance_secrets")
    return found + _check_environment(where, raw.get("environment"))


def _check_environment(where: str, variables: Any) -> list[Problem]:
    if variables is None:
        return []
    if not isinstance(variables, Mapping):
        return [Problem(where, "must be a dictionary of variables by name", "environment")]
    found = []
    for name, value in variables.items():
        key = f"environment: {name}"
        if not VARIABLE.fullmatch(str(name)):
            found.append(Problem(where, "is no name of an environment variable", key))
        elif str(name) in environment.ours():
            found.append(Problem(where, environment.refusal(str(name)), key))
        elif isinstance(value, (Mapping, list)) or value is None or _lines(value):
            found.append(Problem(where, "must have a value of one line: a text, a number, or true or false", key))
        elif looks_secret(str(name), value):
            message = f"looks like a secret, and every log shows environment: move it to {SECRETS}, from a vault"
            found.append(Problem(where, message, key))
    return found


def check_secrets(secrets: Mapping[str, Any], names: frozenset[str]) -> list[Problem]:
    """All mistakes in the secret variables of instances. `names` are the declared instances. No message has a value."""
    found = []
    for instance, variables in secrets.items():
        where = f"{SECRETS} of instance {instance}"
        if instance not in names:
            found.append(Problem(where, f"belongs to no instance: {', '.join(sorted(names)) or 'none is declared'}"))
        elif not isinstance(variables, Mapping):
            found.append(Problem(where, "must be a dictionary of variables by name"))
        else:
            found += [Problem(where, mistake, str(name)) for name, mistake in _secret_mistakes(variables)]
    return found


def _secret_mistakes(variables: Mapping[Any, Any]) -> list[tuple[Any, str]]:
    found = []
    for name, value in variables.items():
        if not VARIABLE.fullmatch(str(name)):
            found.append((name, "is no name of an environment variable"))
        elif str(name) in environment.ours():
            found.append((name, environment.refusal(str(name))))
        elif isinstance(value, (Mapping, list)) or value is None or _lines(value):
            found.append((name, "must have a value of one line"))
        elif is_placeholder(value):
            found.append((name, "is a placeholder: set the secret itself in the vault"))
        elif len(str(value)) < SECRET_LENGTH:
            why = "logs mask a secret wherever it occurs, with fewer characters also numbers and plain words"
            found.append((name, f"must have {SECRET_LENGTH} characters or more: {why}"))
    return found


def looks_secret(name: str, value: object) -> bool:
    """Whether a variable looks like a secret, by its name or by the form of its value. Such a variable is refused.

    So a short text, a number, and a name that ends with KEY alone are no secrets here. core/problems.names_secret only
    hides values from messages, and counts more names.
    """
    text = str(value)
    named = _SECRET_NAME.search(name) and len(text) >= SECRET_LENGTH and not text.isdigit()
    return bool(named or _SECRET_VALUE.search(text))


def _lines(value: object) -> bool:
    return any(character in str(value) for character in "\n\r\0")


def read(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The own settings of a declared instance without mistakes, as fields of Instance."""
    return {
        **{key: str(raw[key]) for key in ("image", "shm_size", "memory", "user") if raw.get(key) is not None},
        **{key: _texts(raw[key]) for key in ("environment", "ulimits") if raw.get(key)},
    }


def _texts(values: Mapping[Any, Any]) -> dict[str, str]:
    return {str(key): _text(value) for key, value in values.items()}


def _text(value: Any) -> str:
    # Programs read 1 as true. The text of Python's True, which YAML's true becomes, would surprise them.
    return str(int(value)) if isinstance(value, bool) else str(value)


def to_dict(instance: Instance) -> dict[str, Any]:
    """The settings that an instance has of its own, without secrets, in the form of the inventory."""
    values: dict[str, Any] = {key: getattr(instance, key) for key in sorted(KEYS - {SECRETS})}
    return {key: dict(value) if isinstance(value, Mapping) else value for key, value in values.items() if value}


def of(instance: Instance, settings: Settings, secrets: Mapping[str, Any], ids: tuple[int, int] | None) -> Settings:
    """The settings of an instance's container, from those of all engines. `ids` are those of the instance's own user,
    and `secrets` its own secret variables."""
    uid, gid = ids or (settings.uid, settings.gid)
    return replace(
        settings,
        uid=uid,
        gid=gid,
        shm_size=instance.shm_size or settings.shm_size,
        memory=instance.memory or settings.memory,
        ulimits={**settings.ulimits, **instance.ulimits},
        environment={**settings.environment, **instance.environment, **_texts(secrets)},
    )
