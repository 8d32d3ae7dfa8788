# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The implementation of the module engine_outage."""

from __future__ import annotations

from typing import Any

from ...core import systemd
from ...core.call import Call
from ...core.paths import Paths
from ...engine import swap_settings
from ...engine.state import releases
from ..swap import proof
from ..swap.node import Node
from ..swap.outage import Outage, Refused
from ..swap.traffic import Traffic


def change(paths: Paths, given: dict[str, Any], *, check: bool) -> dict[str, Any]:
    """Begin or end an outage.

    Raises Refused, Unfit, NoSettings, ReleaseError, SystemdError, OSError, ValueError.
    """
    if not given["names"]:
        return {"changed": False, "reached": True, "words": [], "msg": ""}
    settings = swap_settings.read(paths)
    traffic = Traffic(paths, settings.gateways)
    said: list[str] = []
    nodes = [Node(paths, name, settings, traffic, said.append) for name in given["names"]]
    outage = Outage(nodes, given["owner"])
    if given["state"] == "begun":
        changed = outage.begin(given["reason"], given["last"], check=check)
        words = [] if check else outage.requests(given["seconds"], given["last"])
    else:
        changed = outage.end(check=check)
        words = [] if check else outage.share(given["seconds"])
    return {"changed": changed, "reached": not words, "words": words, "msg": "; ".join(words)}


def run(module: Call) -> None:
    """Answer a call."""
    try:
        result = change(Paths(), module.params, check=module.check_mode)
    except (
        Refused,
        proof.Unfit,
        swap_settings.NoSettings,
        releases.ReleaseError,
        systemd.SystemdError,
        OSError,
        ValueError,
    ) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)
