# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What waits on a node for an update, a removal or other nodes, in words for the operator. Private to the collection;
pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...engine.gang.site import gangs_of


def lines(
    stage: Mapping[str, Any],
    host: str,
    instances: Sequence[Any] = (),
    playing: Sequence[str] = (),
    *,
    updates: bool = False,
) -> list[str]:
    """The texts about a result of engine_release on a host: what waits, is pinned or is left over.

    `instances` are those of the host, `playing` the hosts of the run. `updates`: whether the run is an update, which
    plans its swaps next.
    """
    advice = "" if updates else " Nothing was restarted. Run baremetal.inference.update_model to swap to it."
    gangs = {raw.get("name"): raw["nodes"] for raw in gangs_of(instances)}
    found: list[str] = []
    for release in stage["releases"]:
        nodes = gangs.get(release["name"], ())
        away = [node for node in nodes if node not in playing]
        if away and release["state"] != "active":
            # The role waits for the engine until vllm_start_timeout. This text tells the operator why before that.
            found.append(
                f"{release['name']} on {host} starts only with all its nodes, and this run leaves out"
                f" {', '.join(away)}. If vllm@{release['name']} does not run there, the engine waits: run"
                f" baremetal.inference.site -l {','.join(nodes)}"
            )
        if release["pending"]:
            found += [f"{release['name']} on {host} serves {_pending(release)}{advice}", *release["differences"]]
        if release["pin"]:
            found.append(f"{release['name']} on {host} stays with {release['pin']}")
    if stage["orphans"]:
        found.append(
            f"{host} still has {', '.join(stage['orphans'])}, which the inventory does not declare. Nothing was"
            " removed. To remove: baremetal.inference.decommission -e orphans=true."
        )
    if stage["bridges"]:
        found.append(
            f"{host} still has {', '.join(stage['bridges'])}, which served for an instance during an update that did"
            " not end. baremetal.inference.update_model removes the bridge of an instance that the inventory declares."
            f" For any other instance, declare it again, or run: ansible {host} -b -m"
            " baremetal.inference.engine_service -a 'names=INSTANCE_bridge state=absent'"
        )
    return found


def _pending(release: Mapping[str, Any]) -> str:
    """The release that serves, and the pending release."""
    if release["staged"]:
        return f"release {release['active']}; release {release['wanted']} is staged and pending."
    return (
        f"release {release['active']}. This is check mode: a real run would stage release {release['wanted']}, which"
        " then is pending."
    )
