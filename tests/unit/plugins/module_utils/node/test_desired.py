# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The desired state of a node: its registry, its instances, and the engines that follow from both."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.gang.members import Gang, Member
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import releases
from ansible_collections.baremetal.inference.plugins.module_utils.node.desired import Desired, Model

from .conftest import install

MODELS = {
    "llama": {"model": "org/llama", "revision": "v1", "max-model-len": 8192, "description": "General chat"},
    "short": {"base": "llama", "max-model-len": 1024},
    "bot": {"base": "llama", "system-prompt": "Be kind."},
    "phi": {"model": "org/phi", "revision": "v2"},
}

STORED = "models/llama/ab12cd34ef56"

CACHE = {"VLLM_CPU_KVCACHE_SPACE": "4"}


def declare(paths: Paths, name: str, model: str, number: int) -> None:
    files.write_json(paths.instance(name), {"schema": 1, "model": model, "release": number})


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    """A node whose instance main serves `short`, a variant of llama, on the CPU."""
    monkeypatch.setattr(systemd, "active_state", lambda _unit: "active")
    paths = Paths(tmp_path)
    environment = {"VLLM_CPU_KVCACHE_SPACE": "4"}
    number = install(paths, model="short", directory=STORED, revision="ab12cd34ef56", environment=environment)
    declare(paths, "main", "short", number)
    (tmp_path / STORED / "config.json").write_text("{}")
    files.write_json(paths.registry, {"schema": 1, "engine": {"version": "0.32.0"}, "models": MODELS})
    return paths


def test_an_empty_node_has_no_instances_and_no_models(tmp_path: Path) -> None:
    desired = Desired(Paths(tmp_path))
    assert (desired.names, desired.models(), desired.instances) == ([], [], {})


@pytest.mark.parametrize("state", [[], {"models": []}])
def test_a_damaged_model_registry_is_named(paths: Paths, state: Any) -> None:
    files.write_json(paths.registry, state)
    with pytest.raises(ValueError, match=r"registry\.json is damaged"):
        Desired(paths)


def test_a_member_of_a_gang_is_planned_with_its_rank_and_the_number_of_nodes(paths: Paths) -> None:
    release = releases.load(paths, "main", 1)
    gang = Gang("main", 1, (Member("n1", 0, "10.0.0.1"), Member("n2", 1, "10.0.0.2")), 5110, 29510)
    file = paths.release("main", 1) / releases.RELEASE_FILE
    file.write_text(replace(release, gang=gang).to_json())
    span = Desired(paths).engine("main").span
    assert (span.nodes, span.rank, span.declared) == (2, 1, True)


def test_all_models_and_instances_can_be_planned(paths: Paths) -> None:
    desired = Desired(paths)
    assert desired.names == ["bot", "llama", "main", "phi", "short"]
    assert desired.instances == {"main": 1}


def test_entries_of_the_registry_have_the_weights_that_releases_use(paths: Paths) -> None:
    llama, phi, short = (model for model in Desired(paths).models() if model.name != "bot")
    stored = str(paths.root / STORED)
    # The release of short, a variant of llama, has the weights of llama.
    assert llama == Model("llama", "org/llama", "ab12cd34ef56", None, "General chat", (), stored, True)
    assert phi == Model("phi", "org/phi", "v2", None, "", (), None, None)
    assert (short.base, short.instances, short.path) == ("llama", ("main",), stored)
    (paths.root / STORED / "config.json").unlink()
    assert Desired(paths).models()[1].on_disk is False


@pytest.mark.parametrize("name", ["main", "short"])
def test_an_instance_is_found_by_its_name_and_by_its_model(paths: Paths, name: str) -> None:
    engine = Desired(paths).engine(name)
    release = releases.load(paths, "main", 1)
    assert (engine.instance, engine.model, engine.accelerator) == ("main", "short", "cpu")
    assert engine.argv == ["vllm", *release.engine_argv]
    assert engine.flags == {"max-model-len": 1024}
    assert (engine.path, engine.revision, engine.environment) == (paths.root / STORED, "ab12cd34ef56", CACHE)
    assert engine.change is not None and (engine.change.active, engine.change.desired) == (1, 1)
    assert not engine.problems


def test_an_entry_that_no_instance_serves_has_the_weights_that_its_variant_uses(paths: Paths) -> None:
    engine = Desired(paths).engine("llama")
    stored = str(paths.root / STORED)
    assert engine.argv == ["vllm", "serve", stored, "--served-model-name", "llama", "--max-model-len", "8192"]
    assert (engine.instance, engine.revision, engine.environment) == (None, "ab12cd34ef56", CACHE)
    # A variant with a prompt has its own directory once an instance serves the variant.
    assert Desired(paths).engine("bot").argv[2] == str(paths.root / "models/bot/REVISION")


def test_an_entry_without_weights_on_this_node_is_planned_by_its_source(paths: Paths) -> None:
    engine = Desired(paths).engine("phi")
    assert engine.argv[2] == "org/phi"
    assert (engine.path, engine.revision, engine.accelerator) == (None, "v2", "nvidia")


def test_an_instance_whose_release_is_damaged_has_a_problem(paths: Paths) -> None:
    (paths.release("main", 1) / "release.json").write_text("{")
    engine = Desired(paths).engine("main")
    (problem,) = engine.problems
    assert (engine.model, engine.argv) == ("short", ())
    assert "release.json" in str(problem)


def test_an_instance_whose_model_is_not_in_the_registry_has_a_problem(paths: Paths) -> None:
    files.write_json(paths.registry, {"schema": 1, "models": {}})
    (problem,) = Desired(paths).engine("main").problems
    assert "not in the node's model registry" in str(problem)


def test_an_adapter_has_the_engine_of_its_base(paths: Paths) -> None:
    legal = {"base": "short", "adapter": "org/legal", "description": "For lawyers"}
    # The check of the model registry requires a base with its own model.
    models = {**MODELS, "short": {"model": "org/llama"}, "legal": legal}
    files.write_json(paths.registry, {"schema": 1, "engine": {"version": "0.32.0"}, "models": models})
    directory = paths.root / "models/legal/0123456789ab"
    file = paths.release("main", 1) / releases.RELEASE_FILE
    release = files.read_json(file)
    release |= {"lora": {"legal": str(directory)}, "flags": {"enable-lora": True, "max-loras": 1}}
    files.write_json(file, release)
    desired = Desired(paths)
    (found,) = (model for model in desired.models() if model.name == "legal")
    stored = str(directory)
    assert found == Model("legal", "org/legal", "0123456789ab", "short", "For lawyers", ("main",), stored, False)
    engine = desired.engine("legal")
    assert (engine.instance, engine.model) == ("main", "short")
    assert engine.flags == {"enable-lora": True, "max-loras": 1}
