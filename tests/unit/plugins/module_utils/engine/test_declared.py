# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The model registry and the instances, read once: sound entries and instances, mistakes, and warnings."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
from ansible_collections.baremetal.inference.plugins.module_utils.engine.declared import Declared

MODELS: dict[str, Any] = {
    "tiny": {"model": "/m/tiny", "dtype": "float32"},
    "bot": {"base": "tiny", "system-prompt": "Be kind."},
    "spare": {"model": "/m/spare"},
}
GPUS = [{"index": 0, "uuid": "GPU-0", "reported": True}]
MAIN: dict[str, Any] = {"name": "main", "model": "bot", "port": 5005}


def test_sound_models_and_instances_have_no_problem() -> None:
    gone = {"name": "old", "model": "spare", "port": 5006, "state": "absent"}
    declared = Declared.read(MODELS, [MAIN, gone], "0.32.0", GPUS)
    assert (declared.problems, declared.warnings, declared.catalogue.version) == ((), (), "0.32.0")
    declared.require()
    assert [(instance.name, instance.gpus) for instance in declared.instances] == [("main", ("0",))]
    assert [entry.name for entry in declared.served] == ["bot"] and sorted(declared.entries) == ["bot", "spare", "tiny"]
    assert declared.arguments(declared.entries["bot"]) == ["--dtype", "float32"]
    assert declared.needed == {name: MODELS[name] for name in ("bot", "tiny")}


def test_a_model_registry_without_instances_serves_no_model() -> None:
    declared = Declared.read(MODELS)
    assert (declared.served, declared.instances, declared.problems, declared.needed) == ((), (), (), {})
    assert declared.entries["bot"].store_name == "tiny"


def test_mistakes_are_collected_and_sound_instances_stay() -> None:
    """An entry with a mistake still counts as served: the same run checks the place of its files."""
    models = {**MODELS, "typo": {"model": "/m", "dtypee": "half"}}
    instances = [
        MAIN,
        {"name": "other", "model": "typo", "port": 5006},
        {"name": "far", "model": "none", "port": 80},
    ]
    declared = Declared.read(models, instances, "0.32.0")
    assert [instance.name for instance in declared.instances] == ["main"]
    assert [entry.name for entry in declared.served] == ["bot", "typo"]
    text = "\n".join(map(str, declared.problems))
    assert [words in text for words in ("models.typo: dtypee", "(far): model: 'none'", "(far): port: 80")] == [True] * 3
    with pytest.raises(InputError) as refused:
        declared.require()
    assert str(refused.value) == text


def test_gpus_that_the_node_does_not_have_are_a_problem() -> None:
    declared = Declared.read(
        MODELS, [{**MAIN, "gpus": [7]}], "0.32.0", [{"index": 0, "uuid": "GPU-0", "reported": True}]
    )
    (problem,) = declared.problems
    assert (problem.value, declared.instances) == ("7", ())


def test_a_deprecated_flag_and_a_missing_catalogue_are_warnings() -> None:
    models = {"tiny": {"model": "/m", "disable-cascade-attn": True}}
    (warning,) = Declared.read(models, version="0.32.0").warnings
    assert warning.startswith("models.tiny: disable-cascade-attn: True: is deprecated in vLLM 0.32.0")
    assert "no catalogue of the flags of vLLM 0.32.9" in Declared.read(models, version="0.32.9").warnings[0]


def test_a_draft_is_checked_by_the_flags_of_the_image_that_loads_the_draft() -> None:
    own = "vllm/vllm-openai@sha256:00"
    models = {
        "big": {"model": "/m/big", "speculative-config": {"model": "small", "num_speculative_tokens": 2}},
        "small": {"model": "/m/small", "monokernel": True},
    }
    instances = [{**MAIN, "model": "big", "image": own}]
    known = Declared.read(models, instances, "0.32.0", GPUS, {own: "0.33.0"})
    assert not [one for one in known.problems if "monokernel" in str(one)]
    # monokernel is a flag of 0.33.0.
    unknown = Declared.read(models, instances, "0.32.0", GPUS, {own: "0.32.0"})
    assert [one for one in unknown.problems if "monokernel" in str(one)]


def test_a_model_registry_that_is_no_dictionary_is_a_problem() -> None:
    declared = Declared.read(["tiny"], [MAIN])
    assert declared.entries == {} and declared.needed == {}
    assert str(declared.problems[0]) == "models: must be a dictionary of entries by name, found list"


@pytest.mark.parametrize("prompt", [5, {"a": 1}, ["Be kind."], True])
def test_a_prompt_that_is_no_text_is_a_mistake_of_an_entry_that_is_served(prompt: Any) -> None:
    declared = Declared.read({**MODELS, "bot": {"base": "tiny", "system-prompt": prompt}}, [MAIN])
    assert [str(one).partition(": must")[0] for one in declared.problems] == [f"models.bot: system-prompt: {prompt!r}"]
