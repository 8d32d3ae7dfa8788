# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The implementation of the module model_clean."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...core import files as node_files
from ...core.call import Call
from ...core.paths import Paths
from ...core.problems import InputError
from ...core.sizes import GIB, human
from ...debian.block_devices import read_mounts
from ...engine.declared import Declared
from ...engine.state import history
from ...store import clean, references, stored
from ...store.clean import Cleaning, Item
from ...store.fast_copy import FastStore
from ...store.hashes import HashCache
from ...store.references import Revision


def of_registries(store: Path, *registries: Any) -> dict[Revision, str]:
    """The revisions to which entries of the registries lead, if the store has them."""
    found: dict[Revision, str] = {}
    for models in registries:
        for name, entry in Declared.read(models).entries.items():
            place = stored.find(store, entry)
            if place.revision:
                found[(place.path.parent.name, place.path.name)] = f"the model registry's entry {name}"
    return found


def described(items: Sequence[Item]) -> list[dict[str, Any]]:
    """Items in the form of the return value."""
    return [{"path": str(item.path), "gib": round(item.bytes / GIB, 3), "why": item.why} for item in items]


def run(module: Call) -> None:
    """Answer a call."""
    values, paths = module.params, Paths()
    store = Path(values["store"])
    fast = FastStore(Path(values["fast_path"]), store, HashCache()) if values["fast_path"] else None
    cleaning = Cleaning(store, fast)
    try:
        clean.check(store.resolve(), values["keep"], read_mounts(paths.root / "proc"))
        text = references.containers(module.run_command, module.get_bin_path("docker"))
        registry = node_files.read_json(paths.registry, missing={})
        if not isinstance(registry, dict) or not isinstance(registry.get("models", {}), dict):
            raise ValueError(f"{paths.registry} is damaged: baremetal.inference.site writes it anew")
        needed = of_registries(store, registry.get("models", {}), values["models"])
        superseded = history.superseded(paths, values["keep_releases"])
        needed |= references.of_node(paths, text, superseded=superseded)
        cleaning.plan(values["keep"], needed, text)
        if not module.check_mode:
            cleaning.apply()
    except (InputError, ValueError, OSError) as error:
        module.fail_json(msg=f"The store {store} cannot be cleaned: {error}")
    freed = cleaning.freed
    total = sum(item.bytes for item in freed)
    lines = [f"{item.path}: {human(item.bytes)}, {item.why}" for item in freed]
    summary = f"{human(total)} {'would be ' if module.check_mode else ''}freed" if freed else "nothing to clean up"
    module.exit_json(
        changed=bool(freed),
        freed_gib=round(total / GIB, 3),
        freed=described(freed),
        kept=described(cleaning.kept),
        lines=[*lines, summary],
        diff={"before": "".join(f"{item.path}\n" for item in freed), "after": ""},
    )
