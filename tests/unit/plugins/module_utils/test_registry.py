# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The registry's and the instances' rules, each mistake with what the operator gets to read."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.problems import InputError
from ansible_collections.baremetal.inference.plugins.module_utils.registry import (
    check_models,
    engine_flags,
    load_instances,
    present_instances,
    served_models,
)

MODELS: dict[str, Any] = {
    "tiny-a": {"model": "/models/tiny-a", "dtype": "float32"},
    "big": {"model": "/models/big", "tensor-parallel-size": 4, "pipeline-parallel-size": 2},
    "wide": {"model": "/models/wide", "data-parallel-size": "2"},
}


def instance(**changes: Any) -> dict[str, Any]:
    return {"name": "main", "model": "tiny-a", "port": 5005, **changes}


def messages(instances: list[Any], models: dict[str, Any] | None = None) -> str:
    with pytest.raises(InputError) as caught:
        load_instances(instances, models or MODELS)
    return str(caught.value)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"dtype": "bfloat16", "model": "m", "description": "d"}, ["--dtype", "bfloat16"]),
        ({"enforce-eager": True}, ["--enforce-eager"]),
        ({"enable-prefix-caching": False}, ["--no-enable-prefix-caching"]),
        (
            {"max-model-len": 512, "gpu-memory-utilization": 0.85},
            ["--gpu-memory-utilization", "0.85", "--max-model-len", "512"],
        ),
        ({"hf-overrides": {"b": 1, "a": "é"}}, ["--hf-overrides", '{"a":"é","b":1}']),
        ({"lora-modules": ["a=/x", "b=/y"]}, ["--lora-modules", "a=/x", "b=/y"]),
    ],
)
def test_flags(entry: dict[str, Any], expected: list[str]) -> None:
    assert engine_flags(entry) == expected


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({}, "models.x: model: is required"),
        ("text", "models.x: must be a dictionary"),
        ({"model": "m", "max_model_len": 5}, "write 'max-model-len'"),
        ({"model": "m", "--dtype": "half"}, "write 'dtype'"),
        ({"model": "m", "port": 1}, "use the instance's port instead"),
        ({"model": "m", "hf-token": "k"}, "use HF_TOKEN in vllm_secret_environment instead"),
        ({"model": "m", "api_key": "k"}, "use vllm_api_key instead"),
        ({"model": "m", "dtype": None}, "has no value"),
        ({"model": "m", "lora-modules": []}, "is an empty list"),
        ({"model": "m", "system-prompt": "p"}, "not supported by this version"),
        ({"model": "m", "revision": 7}, "must be a text"),
    ],
)
def test_entry_mistakes(entry: Any, text: str) -> None:
    assert text in "\n".join(str(problem) for problem in check_models({"x": entry}))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"model": "tiny-aa"}, "did you mean 'tiny-a'? known: big, tiny-a, wide"),
        ({"name": "Main"}, "lower-case letters"),
        ({"name": "a" * 41}, "1 to 40"),
        ({"name": "../x"}, "lower-case letters"),
        ({"port": "5005"}, "from 1024 to 65535"),
        ({"port": 80}, "from 1024 to 65535"),
        ({"port": True}, "from 1024 to 65535"),
        ({"accelerator": "amd"}, "one of nvidia, cpu"),
        ({"state": "gone"}, "one of present, absent"),
        ({"gpus": "0"}, "a count, or a list"),
        ({"gpus": -1}, "a count, or a list"),
        ({"modle": "x"}, "did you mean 'model'?"),
        ({"name": "big"}, "the name of another model"),
        ({"port": 9100}, "belongs to node_exporter"),
        ({"model": "big", "gpus": 4}, "needs 8"),
        ({"model": "big", "gpus": [0]}, "needs 8"),
        ({"gpus": 0}, "needs 1"),
    ],
)
def test_instance_mistakes(changes: dict[str, Any], text: str) -> None:
    assert text in messages([instance(**changes)])


def test_every_mistake_is_reported_at_once() -> None:
    text = messages([instance(model="nope", port=1), instance(name="main")], {**MODELS, "bad": {}})
    for part in ("models.bad", "'nope'", "from 1024", "is used twice"):
        assert part in text


def test_a_name_and_a_port_are_used_once() -> None:
    text = messages([instance(), instance(name="other"), instance(port=5006)])
    assert "instances[1] (other): port: 5005: is used twice: instances[0] (main)" in text
    assert "instances[2] (main): name: 'main': is used twice: instances[0] (main)" in text


def test_gpus_are_assigned() -> None:
    loaded = load_instances(
        [
            instance(name="a", gpus=["0", 2]),
            instance(name="b", port=5006, gpus=2),
            instance(name="c", port=5007, model="big"),
            instance(name="d", port=5008, accelerator="cpu"),
            instance(name="e", port=5009, state="absent", model="gone"),
            instance(name="f", port=5010, model="wide"),
        ],
        MODELS,
    )
    assert [item.gpus for item in loaded] == [
        ("0", "2"),
        ("1", "3"),
        tuple(str(index) for index in range(4, 12)),
        (),
        (),
        ("12", "13"),
    ]


def test_a_gpu_serves_one_instance() -> None:
    text = messages([instance(name="a", gpus=[0, 1]), instance(name="b", port=5006, gpus=[1])])
    assert "gpus: '1': is given to a already" in text


def test_what_is_absent_needs_no_model() -> None:
    instances = [instance(), instance(name="old", model="big", state="absent"), "a mistake"]
    assert present_instances(instances) == [instances[0], "a mistake"]
    assert served_models(MODELS, instances) == {"tiny-a": MODELS["tiny-a"]}
