# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The implementation of the module model."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from ...core.call import Call
from ...core.paths import Paths
from ...core.problems import InputError
from ...core.sizes import GIB
from ...store.describe import build_manifests
from ...store.hashes import HashCache, hash_cache
from ...store.publish import Publisher, Rules
from ...store.remove import Removal
from ...store.sources.hub import Hub
from ...store.sources.source import (
    CONTROLLER,
    NODE,
    load_sources,
)
from ...store.space import same_file_system
from ...store.store import Store


def hashes(module: Call) -> AbstractContextManager[HashCache]:
    """The checksums that the file in the option `cache` keeps."""
    path = module.params["cache"]
    return hash_cache(Path(path) if path else None, read_only=module.check_mode)


def describe(module: Call) -> None:
    """Answer for the state `described`."""
    values = module.params
    sources, problems = load_sources(values["models"])
    wanted = {name: source for name, source in sources.items() if source.origin == values["origin"]}
    try:
        with hashes(module) as cache:
            manifests, found = build_manifests(wanted, values["models"], cache, values["verify"])
    except OSError as error:
        module.fail_json(
            msg=f"The cache {values['cache']} cannot be used: {error}. Set another path, or correct its owner."
        )
    # An entry without a usable source belongs to no machine. Only the call for the node reports the entry.
    problems = [*problems, *found] if values["origin"] == NODE else found
    module.exit_json(
        changed=False,
        manifests={name: manifest.to_dict() for name, manifest in manifests.items()},
        problems=[str(problem) for problem in problems],
        rsync=module.get_bin_path("rsync") or "",
    )


def publish(module: Call) -> None:
    """Answer for the states `planned` and `present`."""
    values, root = module.params, Path(module.params["store"])
    publishes = values["state"] == "present"
    others = sum(float(gib) for path, gib in values["other_space"].items() if same_file_system(root, Path(path)))
    try:
        with hashes(module) as cache:
            publisher = Publisher(
                Store(root, cache, values["verify"]),
                values["models"],
                values["manifests"],
                Hub(values["hub_endpoint"], values["hub_token"]),
                Rules(needs_manifests=publishes, needs_fetched=publishes and not module.check_mode),
            )
            plans, problems = publisher.plan(round((values["reserve_gib"] + others) * GIB))
            coming = [plan for plan in plans if not plan.published]
            transfers = [publisher.transfer(plan) for plan in coming]
            if publishes and problems:
                raise InputError(problems)
            if publishes and not module.check_mode:
                publisher.publish(coming)
    except InputError as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg=f"The store {root}: {error}")
    for plan in coming if publishes else []:
        for damage in plan.damage:
            module.warn(f"{damage}; the whole revision is replaced by an intact one")
    places = publisher.places(plans)
    module.exit_json(
        changed=publishes and bool(coming),
        places=places,
        coming={item["name"]: places[item["name"]]["revision"] for item in [*transfers, *publisher.fetches]},
        transfers=transfers,
        fetches=publisher.fetches,
        remotes=publisher.remotes,
        copies=[item for item in transfers if item["origin"] == CONTROLLER and item["files"]],
        problems=[str(problem) for problem in problems],
        rsync=module.get_bin_path("rsync") or "",
        diff={"before": "", "after": "".join(f"{plan.path}\n" for plan in coming)},
    )


def remove(module: Call) -> None:
    """Answer for the state `absent`."""
    values, store = module.params, Path(module.params["store"])
    removal = Removal(store, Path(values["fast_path"]) if values["fast_path"] else None, Paths())
    names = None if values["everything"] else values["names"]
    try:
        removal.plan(names, values["leaving"], module.run_command, module.get_bin_path("docker"))
        if not module.check_mode:
            removal.apply(everything=values["everything"])
    except (InputError, ValueError, OSError) as error:
        module.fail_json(msg=f"Models of the store {store} cannot be removed: {error}")
    freed = removal.cleaning.freed
    module.exit_json(
        changed=bool(freed),
        freed_gib=round(sum(item.bytes for item in freed) / GIB, 3),
        removed=[str(item.path) for item in freed],
        kept=[f"{item.path}: {item.why}" for item in removal.cleaning.kept],
        diff={"before": "".join(f"{item.path}\n" for item in freed), "after": ""},
    )


STATES = {"described": describe, "planned": publish, "present": publish, "absent": remove}


def run(module: Call) -> None:
    """Answer a call."""
    STATES[module.params["state"]](module)
