# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue of the flags that a version of the engine knows. Private to the collection."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from . import versions

SWITCH, INTEGER, NUMBER, SIZE, OBJECT, JSON, TEXT, TEXT_OR_JSON, ANY = (
    *("switch", "integer", "number", "size", "object", "json", "text", "text-or-json", "any"),
)
"""What a flag takes: nothing at all; an integer; a number; an integer that may end in k, M and the like; a JSON object;
any JSON; any text; a text that may be a JSON object. ANY is a flag that the catalogue does not know."""

ONE, LIST, REPEATED, MAYBE = "one", "list", "repeated", "maybe"
"""How many values a flag takes: one; one or more behind it; one, and the flag once for each; one or none."""

_VERSION = re.compile(r"^v?(\d+(?:\.\d+)+)(.*)$")


@dataclass(frozen=True)
class Flag:
    """One flag, by the name without its dashes."""

    name: str
    type: str = ANY
    takes: str = ONE
    negatable: bool = False
    """There is a ``--no-`` form."""
    aliases: tuple[str, ...] = ()
    """Other names, without dashes."""
    inverse: tuple[str, ...] = ()
    """Names that turn it off beside the ``--no-`` form: in some versions ``--disable-x`` for ``--enable-x``."""
    choices: tuple[Any, ...] = ()
    """All values that are allowed; empty where the parser does not limit them."""
    folded: bool = False
    """The engine makes capitals small and dashes underscores before it compares with the choices."""
    suggested: tuple[str, ...] = ()
    """Values that the engine names where plugins can add others."""
    words: tuple[str, ...] = ()
    """Words that are allowed in place of a number."""
    optional: bool = False
    """An empty text and the word None mean that there is no value."""
    deprecated: Mapping[str, str] | None = None
    """What is known of its end: `removed`, the version without it, and `use`, what replaces it."""


@dataclass(frozen=True)
class Catalogue:
    """The flags to check by. `exact` says that they are those of the version that was asked for."""

    version: str
    flags: Mapping[str, Flag]
    wanted: str = ""
    """The version that was asked for; empty where it is not known."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """The name of each flag by its other names."""
    inverse: Mapping[str, str] = field(default_factory=dict)
    """The name of each flag by the names that turn it off."""

    @property
    def exact(self) -> bool:
        """Whether what this catalogue does not know is a mistake for sure: only a known other version may know more."""
        return not self.wanted or _release(self.wanted) == (_numbers(self.version), "")

    @property
    def guess(self) -> str:
        """What to add to a refusal where the version is a guess; else empty."""
        if self.wanted:
            return ""
        return f" (the image's version is not known, {self.version} is assumed: set engine_version if it is another)"

    @property
    def note(self) -> str:
        """What the plan says where the flags are those of another version; else empty."""
        if self.exact:
            return ""
        return (
            f"there is no catalogue of the flags of vLLM {self.wanted}: the registry was checked by that of "
            f"{self.version}, and what it does not know is not refused"
        )

    def flag(self, name: str) -> Flag:
        """The flag of that name; one that takes anything where the catalogue has none."""
        return self.flags.get(name) or Flag(name)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _release(version: str) -> tuple[tuple[int, ...], str]:
    """The numbers of a version, and what makes it another one: rc1, .dev5. Empty where it has no numbers.

    What follows a plus sign names a build of the same version (PEP 440, local version identifiers).
    """
    found = _VERSION.match(version.partition("+")[0])
    return (_numbers(found[1]), found[2]) if found else ((), version)


def _flag(name: str, facts: Mapping[str, Any]) -> Flag:
    frozen: dict[str, Any] = {key: tuple(fact) if isinstance(fact, list) else fact for key, fact in facts.items()}
    return Flag(name, **frozen)


def _catalogue(version: str, facts: versions.Flags, wanted: str) -> Catalogue:
    flags = {name: _flag(name, known) for name, known in facts.items()}
    aliases = {alias: flag.name for flag in flags.values() for alias in flag.aliases}
    inverse = {name: flag.name for flag in flags.values() for name in flag.inverse}
    inverse |= {f"no-{flag.name}": flag.name for flag in flags.values() if flag.negatable}
    return Catalogue(version, flags, wanted, aliases, inverse)


def choose(version: str = "") -> Catalogue:
    """The catalogue for a version of the engine, such as 0.32.0 or v0.32.0+cpu; the newest where it is not known.

    For a version without one: the newest that is not newer, else the oldest.
    """
    known = versions.known()
    numbers, _rest = _release(version)
    older = [one for one in known if not numbers or _numbers(one) <= numbers]
    chosen = older[-1] if older else next(iter(known))
    return _catalogue(chosen, known[chosen], version)
