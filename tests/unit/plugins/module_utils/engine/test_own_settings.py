# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The own settings of an instance: reading, checks that show no secret, and precedence over those of all engines."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine import own_settings
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.own_settings import (
    check,
    check_secrets,
    looks_secret,
    of,
    read,
)
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Settings

IMAGE = "registry.example.com/vllm@sha256:" + "a" * 64
GOOD: dict[str, Any] = {
    "image": IMAGE,
    "environment": {"OMP_NUM_THREADS": 4, "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_USE_DEEP_GEMM": False},
    "shm_size": "32g",
    "memory": "200g",
    "ulimits": {"nofile": 1024},
    "user": "1001:1001",
}


def said(raw: dict[str, Any]) -> str:
    return "\n".join(map(str, check("instances[0] (main)", raw)))


def test_right_settings_have_no_mistake() -> None:
    assert said({}) == "" and said(GOOD) == ""
    assert said({"user": "embedder", "memory": "0"}) == ""
    # The name says token, and the value is no secret.
    assert said({"environment": {"TOKENIZERS_PARALLELISM": "false", "RATE_TOKEN": "5"}}) == ""


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"image": "vllm/vllm-openai:v0.33.0"}, "must name the image by digest"),
        ({"image": 5}, "must name the image by digest"),
        ({"user": "Root User"}, "must be the name of a user of the node"),
        ({"shm_size": "big"}, "shm_size: 'big': must be a size as Docker writes it"),
        ({"memory": "8 GB"}, "memory: '8 GB': must be a size"),
        ({"ulimits": {"nofiles": 1}}, "did you mean 'nofile'?"),
        ({"ulimits": 5}, "must be a dictionary of limits"),
        ({"environment": ["A=b"]}, "must be a dictionary of variables"),
        ({"environment": {"A B": "c"}}, "is no name of an environment variable"),
        ({"environment": {"A": [1]}}, "must have a value of one line"),
        ({"environment": {"A": "b\nc"}}, "must have a value of one line"),
        ({"environment": {"VLLM_DP_SIZE": 2}}, "VLLM_DP_SIZE: would make the engine wait for ranks"),
        (
            {"environment": {"HF_HUB_OFFLINE": "0"}},
            "HF_HUB_OFFLINE: is set by the role: engines are offline",
        ),
        ({"environment": {"HOME": "/x"}}, "compile cache"),
        ({"environment": {"CUDA_VISIBLE_DEVICES": "0"}}, "use gpus of the instance"),
        ({"environment": {"VLLM_API_KEY": "x"}}, "use vllm_api_key"),
        ({"environment": {"VLLM_CACHE_ROOT": "/x"}}, "vllm_cache_path"),
        ({"environment": {"INFERENCE_ENGINE_CONFIG": "{}"}}, "use vllm_api_key and vllm_accepted_keys"),
        ({"secret_environment": {"A": "s3cret-value"}}, "set it in vllm_instance_secrets"),
    ],
)
def test_each_mistake_of_own_settings_is_named(raw: dict[str, Any], words: str) -> None:
    assert words in said(raw)
    assert "s3cret" not in said(raw)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HF_TOKEN", "s3cret-value"),
        ("DB_PASSWORD", "s3cret-value"),
        ("AWS_SECRET_ACCESS_KEY", "s3cret-value"),
        ("OPENAI_API_KEY", "s3cret-value"),
        ("WORD", "hf_0123456789abcdefs3cret"),
        ("HTTPS_PROXY", "http://user:s3cret@proxy:3128"),
    ],
)
def test_a_secret_in_environment_is_refused_and_not_shown(name: str, value: str) -> None:
    assert "looks like a secret" in said({"environment": {name: value}})
    assert "s3cret" not in said({"environment": {name: value}})


@pytest.mark.parametrize(
    ("name", "value"),
    [("HTTPS_PROXY", "http://proxy:3128"), ("API_KEY_FILE", "/etc/key-of-me"), ("MAX_TOKEN", "123456789")],
)
def test_a_value_that_is_no_secret_passes(name: str, value: str) -> None:
    assert not looks_secret(name, value)


def test_all_mistakes_are_reported_at_once() -> None:
    raw = {"image": "x", "memory": "y", "environment": {"HOME": "/", "HF_TOKEN": "s3cret-value"}}
    assert len(check("main", raw)) == 4


def test_secrets_belong_to_an_instance() -> None:
    names = frozenset({"main"})
    assert check_secrets({"main": {"HF_TOKEN": "s3cret-value"}}, names) == []
    wrong = {"mian": {"A": "s3cret-value"}, "main": {"A B": "s3cret-value", "HOME": "s3cret-value", "C": "short"}}
    found = "\n".join(map(str, check_secrets(wrong, names)))
    for words in (
        "instance mian: belongs to no instance: main",
        "A B: is no name",
        "HOME: is set by",
        "C: must have 8",
    ):
        assert words in found
    assert "s3cret" not in found and "short" not in found
    assert "must be a dictionary" in str(check_secrets({"main": "s3cret-value"}, names)[0])
    assert "one line" in str(check_secrets({"main": {"A": "s3cret\nvalue"}}, names)[0])


def test_own_settings_win_over_those_of_all_engines() -> None:
    instance = Instance("main", "m", 5005, **read(GOOD))
    assert instance.environment["VLLM_USE_DEEP_GEMM"] == "0" and instance.ulimits == {"nofile": "1024"}
    shared = Settings(uid=1, gid=1, environment={"A": "1", "OMP_NUM_THREADS": "1"}, ulimits={"memlock": "-1"})
    own = of(instance, shared, {"HF_TOKEN": "s3cret-value"}, (7, 8))
    assert (own.uid, own.gid, own.shm_size, own.memory) == (7, 8, "32g", "200g")
    assert own.ulimits == {"memlock": "-1", "nofile": "1024"}
    assert own.environment["OMP_NUM_THREADS"] == "4" and own.environment["A"] == "1"
    assert own.environment["HF_TOKEN"] == "s3cret-value"
    plain = of(Instance("main", "m", 5005), shared, {}, None)
    assert plain == shared


def test_the_desired_state_has_own_settings_and_no_secret() -> None:
    instance = Instance("main", "m", 5005, **read(GOOD))
    assert own_settings.to_dict(instance).keys() == GOOD.keys()
    assert own_settings.to_dict(Instance("main", "m", 5005)) == {}
