# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node needs for a swap without a controller: its name, gateways, golden prompts and terms. Private to the
collection.

The module node_agent writes the file. Each process of a swap reads the file when the process starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core import files
from ..core.paths import Paths
from ..core.records import known
from .swap_terms import Terms

SCHEMA = 1

MODE = 0o600
"""For root alone: golden prompts may be confidential."""


@dataclass(frozen=True)
class Gateway:
    """A gateway that sends requests to this node, and the address where it reports its servers."""

    name: str
    """The gateway's name in the inventory."""
    address: str
    port: int


@dataclass(frozen=True)
class SwapSettings:
    """The file's content."""

    node: str
    """The node's name in the inventory: the name of its servers at the gateways."""
    gateways: tuple[Gateway, ...] = ()
    golden: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Golden prompts by the model's name in the model registry."""
    terms: Terms = field(default_factory=Terms)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> SwapSettings:
        """Raises AttributeError, KeyError, OverflowError, TypeError, ValueError."""
        return cls(
            node=str(value["node"]),
            gateways=tuple(
                Gateway(str(each["name"]), str(each["address"]), int(each["port"])) for each in value["gateways"]
            ),
            golden={str(model): list(prompts) for model, prompts in value.get("golden", {}).items()},
            terms=Terms.from_dict(value.get("terms", {})),
        )


UNKNOWN = SwapSettings("")
"""Settings without gateways, and without the node's name at gateways."""


class NoSettings(Exception):
    """The node has no settings for swaps; the message says which playbook writes them."""


def read(paths: Paths) -> SwapSettings:
    """Raises NoSettings."""
    try:
        value = files.read_json(paths.swap_settings)
        if isinstance(value, dict) and value.get("schema") == SCHEMA:
            return SwapSettings.from_dict(value)
        problem = "is not there" if value is None else f"is of another schema than {SCHEMA}"
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        problem = f"is damaged ({error!r})"
    raise NoSettings(
        f"{paths.swap_settings} {problem}: run baremetal.inference.site, which records the gateways on the node"
    )


def text(value: Mapping[str, Any]) -> str:
    """The file's text for the option `swap` of the module node_agent. Raises ValueError."""
    try:
        wanted = SwapSettings.from_dict(value)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ValueError(f"swap cannot be understood: {error!r}") from error
    return files.to_json(
        {
            "schema": SCHEMA,
            "node": wanted.node,
            "gateways": [known(Gateway, vars(each)) for each in wanted.gateways],
            "golden": wanted.golden,
            "terms": wanted.terms.to_dict(),
        }
    )
