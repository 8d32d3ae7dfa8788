# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue of the flags of an engine's version. Private to the collection."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from . import versions

SWITCH, INTEGER, NUMBER, SIZE, OBJECT, JSON, TEXT, TEXT_OR_JSON, ANY = (
    *("switch", "integer", "number", "size", "object", "json", "text", "text-or-json", "any"),
)
"""Types of a flag's value: none; an integer; a number; an integer that may end in k, M and so on; a JSON object; any
JSON; any text; a text that may be a JSON object. ANY is for a flag that is not in the catalogue."""

ONE, LIST, REPEATED, MAYBE = "one", "list", "repeated", "maybe"
"""How many values a flag takes: one; one or more after the flag; one, with the flag repeated for each; one or none."""

_VERSION = re.compile(r"^v?(\d+(?:\.\d+)+)(.*)$")


@dataclass(frozen=True)
class Flag:
    """One flag, by the name without leading dashes."""

    name: str
    type: str = ANY
    takes: str = ONE
    negatable: bool = False
    """Whether the flag has a ``--no-`` form."""
    aliases: tuple[str, ...] = ()
    """Other names, without leading dashes."""
    inverse: tuple[str, ...] = ()
    """Further names that turn the flag off: in some versions ``--disable-x`` for ``--enable-x``."""
    choices: tuple[Any, ...] = ()
    """All allowed values; empty if the parser allows any value."""
    folded: bool = False
    """Whether the engine ignores case, and reads dashes as underscores, when it compares with the choices."""
    suggested: tuple[str, ...] = ()
    """The engine's own values, if plugins can add further values."""
    words: tuple[str, ...] = ()
    """Words that are allowed instead of a number."""
    optional: bool = False
    """Whether an empty text and the word None mean no value."""
    deprecated: Mapping[str, str] | None = None
    """For a deprecated flag: `removed`, the first version without it, and `use`, its replacement."""


@dataclass(frozen=True)
class Catalogue:
    """The flags of a version of the engine."""

    version: str
    flags: Mapping[str, Flag]
    wanted: str = ""
    """The requested version; empty if unknown."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Other names of flags: from the other name to the flag's name."""
    inverse: Mapping[str, str] = field(default_factory=dict)
    """Names that turn flags off: from this name to the flag's name."""

    @property
    def exact(self) -> bool:
        """Whether flags outside of this catalogue are refused: it is the requested version's own, or the version is
        unknown."""
        return not self.wanted or _release(self.wanted) == (_numbers(self.version), "")

    @property
    def guess(self) -> str:
        """An addition to a refusal if the version is a guess; else empty."""
        if self.wanted:
            return ""
        return (
            f" (the version of the image is unknown, and {self.version} is assumed: set engine_version for another one)"
        )

    @property
    def note(self) -> str:
        """A note of the plan if the catalogue is for another version; else empty."""
        if self.exact:
            return ""
        return (
            f"there is no catalogue of the flags of vLLM {self.wanted}: the model registry was checked with the "
            f"catalogue of {self.version}, and unknown flags are not refused"
        )

    def flag(self, name: str) -> Flag:
        """The flag of this name. If the catalogue lacks it, a flag that accepts any value."""
        return self.flags.get(name) or Flag(name)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _release(version: str) -> tuple[tuple[int, ...], str]:
    """The numbers of a version, and its suffix such as rc1 or .dev5. No numbers if it has none.

    The part after a plus sign is left out: it names a build of the same version (PEP 440, local version identifiers).
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


@cache
def choose(version: str = "") -> Catalogue:
    """The catalogue for a version of the engine, such as 0.32.0 or v0.32.0+cpu; the newest if the version is unknown.

    For a version without a catalogue: the newest catalogue that is not newer, else the oldest. The cache saves the
    milliseconds that hundreds of flags take.
    """
    known = versions.known()
    numbers, _rest = _release(version)
    # 0.33 has the flags of 0.33.0.
    newest = (*numbers, 0, 0)
    older = [one for one in known if not numbers or _numbers(one) <= newest]
    chosen = older[-1] if older else next(iter(known))
    return _catalogue(chosen, known[chosen], version)
