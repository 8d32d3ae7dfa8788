# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which engines a gateway has, and which of them it sends requests to. Private to the collection."""

from __future__ import annotations

from ..engine.inventory import next_name
from .names import SET
from .stat import BACKEND, rows


def has_server(stat: str, host: str, name: str) -> bool:
    """Whether the answer to `show stat` has a server that is an instance: in its own set, or borrowed by another."""
    return any(
        (row["pxname"] == SET + name and row["svname"] == host) or row["svname"] == f"{name}.{host}"
        for row in rows(stat)
    )


def up_hosts(stat: str, name: str) -> list[str]:
    """The hosts of a replica set that this gateway sends requests to.

    A host has a second server where the next release of its engine is reached elsewhere.
    """
    ours = [row for row in rows(stat) if row["pxname"] == SET + name and row["svname"] != BACKEND]
    up = (row["svname"] for row in ours if row["status"].startswith("UP"))
    return sorted({server.removeprefix(f"{next_name(name)}.") for server in up})
