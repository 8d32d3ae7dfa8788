# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which entries of the model registry the instances need, and how many files the filters of every task import."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from ansible_collections.baremetal.inference.plugins.module_utils.engine.served import served_models

MODELS: dict[str, Any] = {
    "tiny-a": {"model": "/models/tiny-a"},
    "short": {"base": "tiny-a", "max-model-len": 128},
    "shorter": {"base": "short", "max-model-len": 64},
    "lost": {"base": "nowhere"},
    "round": {"base": "about"},
    "about": {"base": "round"},
}
FEW = 9
"""Files of the collection that a worker process may compile for the filters of every task: inventory, served models,
variants, needed entries, drafts, adapters, problems, defaults and addresses."""


def instance(**changes: Any) -> dict[str, Any]:
    return {"name": "main", "model": "tiny-a", "port": 5005, **changes}


def test_a_variant_needs_the_weights_of_its_base() -> None:
    """The store keeps weights once, for all variants. An instance with a mistake needs none."""
    instances = [instance(model=name) for name in ("shorter", "tiny-a", "lost", "round", "gone", ["odd"])]
    assert served_models(MODELS, instances) == {"tiny-a": MODELS["tiny-a"]}
    assert served_models(MODELS, [instance(model="round")]) == {}


def test_a_draft_is_needed_as_well() -> None:
    draft = {"speculative-config": {"model": "small", "num_speculative_tokens": 2}}
    models = {
        "large": {"model": "/srv/large", **draft},
        "short": {"base": "large"},
        "small": {"base": "tiny"},
        "tiny": {"model": "/srv/tiny"},
        "other": {"model": "/srv/other", "speculative-config": {"model": "gone"}},
    }
    assert set(served_models(models, [instance(model="short")])) == {"large", "tiny"}
    assert set(served_models(models, [instance(model="other")])) == {"other"}


def test_adapters_of_a_served_model_are_needed_and_get_their_source_as_model() -> None:
    legal = {"base": "tiny-a", "adapter": "org/legal", "revision": "0" * 40}
    models = {**MODELS, "legal": legal, "other": {"base": "gone", "adapter": "/srv/other"}}
    found = served_models(models, [instance()])
    assert found == {"tiny-a": MODELS["tiny-a"], "legal": {**legal, "model": "org/legal"}}
    # The instances of a variant do not serve the adapters of its base.
    assert set(served_models(models, [instance(model="short")])) == {"tiny-a"}


def test_filters_of_every_task_import_few_files() -> None:
    """A worker process is forked for each task and node; the worker compiles all imports of its filters again."""
    package = "ansible_collections.baremetal.inference.plugins"
    script = f"""
import sys
from {package}.filter import addresses, defaults, instances, updates
mine = instances.FilterModule().filters() | updates.FilterModule().filters()
listed = [{{"name": "main", "model": "a"}}]
mine["present_instances"](listed), mine["want_gpus"](listed), mine["served_models"]({{}}, listed)
mine["with_models"](listed, {{}}), mine["set_models"]({{}})
defaults.site_default("common_user"), addresses.host_addresses(["a"], {{"a": {{"ansible_host": "192.0.2.1"}}}})
files = [module.__file__ for name, module in sys.modules.items() if name.startswith("{package}.module_utils.")]
print(*sorted(name for name in files if name and not name.endswith("__init__.py")))
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert len(ran.stdout.split()) <= FEW, ran.stdout
