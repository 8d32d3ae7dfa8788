# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The environment of an engine, and its secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import adapters, environment
from ansible_collections.baremetal.inference.plugins.module_utils.engine.adapters.contract import Rank


def test_the_environment_of_the_installed_release_is_read(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    assert environment.read(paths, "main") == {}
    files.write(paths.env("main"), "A=1\n\nB=x=y\nno value\n")
    assert environment.read(paths, "main") == {"A": "1", "B": "x=y"}


def test_secrets_of_an_installed_release_are_masked(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    files.write(paths.env("main"), "HOME=/mnt/cache\nVLLM_API_KEY=short\nMY_PAT=long-secret=1\nLIMIT=1234567890\n")
    values = environment.secrets(environment.read(paths, "main"))
    text = "/mnt/cache short long-secret=1 1234567890 Authorization: Bearer abc hf_abcdefghijklmnopqrstuvwx"
    assert environment.mask(text, values) == "/mnt/cache *** *** 1234567890 Authorization: Bearer *** ***"


def test_api_keys_and_long_unknown_values_count_as_secrets() -> None:
    known = {"HOME": "/mnt/nvme/cache", "USER": "inference", "VLLM_CACHE_ROOT": "/mnt/nvme/cache"}
    variables = {**known, "VLLM_API_KEY": "short", "TOKEN": "long-enough", "N": "12345678", "MODE": "fast"}
    assert environment.secrets(variables) == ["short", "long-enough"]


def test_of_the_variables_of_an_executor_only_the_secret_is_masked() -> None:
    rank = Rank(0, 2, "10.0.0.1", "10.0.0.1", 29510, executor="ray", secret="s3cret-value", directory="/run/inference")
    variables = adapters.get().gangs.executors["ray"].environment(rank)
    assert environment.secrets(variables) == ["s3cret-value"]


def test_the_keys_that_an_engine_accepts_are_read() -> None:
    assert environment.keys({}) == environment.keys({"VLLM_API_KEY": ""}) == []
    assert environment.keys({"VLLM_API_KEY": "new"}) == ["new"]
    both = {"VLLM_API_KEY": "new", environment.ENGINE_CONFIG: '{"api-key": ["new", "old"]}'}
    assert environment.keys(both) == ["new", "old"]
    assert environment.secrets(both)[:2] == ["new", "old"]
    assert environment.keys({**both, environment.ENGINE_CONFIG: "{"}) == ["new"]
    assert environment.mark("new") != environment.mark("old") and len(environment.mark("new")) == 8


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("key-of-today and key-of-today-2", "*** and ***"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
        ("vllm serve --api-key abc --port 1", "vllm serve --api-key *** --port 1"),
        ("{'api_key': ['abc']}", "{'api_key': ['***']}"),
        ("token hf_abcdefghijklmnopqrst", "token ***"),
        ("nothing of that kind", "nothing of that kind"),
    ],
)
def test_secrets_are_masked(text: str, shown: str) -> None:
    assert environment.mask(text, ["key-of-today", "", "key-of-today-2"]) == shown
