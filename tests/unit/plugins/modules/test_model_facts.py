# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the module model_facts."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import ModelFacts, gather
from ansible_collections.baremetal.inference.plugins.modules import model_facts

from ..fake_hub import COMMIT, FakeHub
from ..module_utils.models.test_adapter_facts import write as write_adapter

Run = Callable[..., dict[str, Any]]


@pytest.fixture
def run(run_module: Any) -> Any:
    return partial(run_module, model_facts)


def test_complete_and_missing_models_are_reported(run: Any, tmp_path: Path, write_model: Callable[..., Path]) -> None:
    whole = write_model(tmp_path / "whole")
    result = run(directories={"whole": str(whole), "gone": str(tmp_path / "gone")}, check=True)
    found = result["ansible_facts"]["model_facts"]
    assert not result["changed"]
    assert found["whole"]["problems"] == []
    assert found["whole"]["weights"]["bytes"] == 8000
    assert found["whole"]["architectures"] == ["LlamaForCausalLM"]
    assert found["gone"]["problems"] == [{"file": "", "message": "is missing, or is not a directory"}]
    assert set(found["gone"]) == set(found["whole"])


def test_a_directory_that_is_no_path_is_refused(run: Any) -> None:
    assert run(directories={"a": ["/x"], "b": "/y"})["msg"] == "directories: must be paths: a: ['/x']"


def keys(value: Any, documented: dict[str, Any]) -> None:
    """A fact has exactly the keys that are documented."""
    assert set(value) == set(documented)
    for key, entry in documented.items():
        inner = entry.get("contains")
        if inner and value[key] is not None:
            for item in value[key] if isinstance(value[key], list) else [value[key]]:
                keys(item, inner)


def test_every_fact_is_documented(model: Callable[..., ModelFacts], tmp_path: Path) -> None:
    returned = yaml.safe_load(model_facts.RETURN)["ansible_facts"]["contains"]["model_facts"]["contains"]
    for name in ("deepseek-v3", "llama-3.1-70b", "gpt-oss-20b"):
        keys(model(name).to_dict(), returned)


# --- models that no node has yet


@pytest.fixture
def remote(tmp_path: Path, hub: FakeHub, run_module: Run) -> Run:
    def call(models: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        given = {
            "models": models or {"tiny": {"model": "acme/tiny", "revision": COMMIT}},
            "hub_endpoint": hub.url,
            "cache": str(tmp_path / "plans"),
            **more,
        }
        return run_module(model_facts, **given)

    return call


def of_files(root: Path) -> dict[str, Any]:
    return {**json.loads(json.dumps(gather(root).to_dict())), "path": None}


@pytest.mark.parametrize("ranges", [True, False])
def test_the_facts_are_those_of_the_files(remote: Run, hub: FakeHub, ranges: bool) -> None:
    """Some servers ignore ranges, and send whole files."""
    hub.ranges = ranges
    result = remote()
    assert (result["unknown"], result["changed"]) == ({}, False)
    assert {**result["facts"]["tiny"], "path": None} == of_files(hub.root)
    assert result["facts"]["tiny"]["weights"]["bytes"] == 8000


def test_only_the_hub_gets_the_token(remote: Run, hub: FakeHub) -> None:
    hub.token = "hf_secret-5c1d"
    refused = remote()
    assert "refuses the request (401) without a token" in refused["unknown"]["tiny"]
    assert refused["facts"] == {}
    result = remote(hub_token=hub.token)
    assert "tiny" in result["facts"]
    assert {who for path, who in hub.requests if path.startswith("/cdn/")} == {""}
    assert hub.token not in json.dumps(result)


def test_a_model_of_the_network_without_facts_is_unknown_with_the_reason(remote: Run, hub: FakeHub) -> None:
    archive = {"model": f"{hub.url}/m.tar", "checksum": f"sha256:{'0' * 64}"}
    gone = {"model": "acme/other", "revision": COMMIT}
    result = remote({"archive": archive, "gone": gone, "here": {"model": "/srv/m"}, "wrong": {"model": "?"}})
    assert result["facts"] == {}
    assert set(result["unknown"]) == {"archive", "gone"}
    assert "before it is fetched" in result["unknown"]["archive"]
    assert result["problems"][0].startswith("models.archive: cannot check that the model fits before it is fetched")
    assert "model_store_allow_unplanned: true" in result["problems"][0]
    assert "no such model or revision (404)" in result["unknown"]["gone"]
    unreachable = remote({"tiny": {"model": "acme/tiny", "revision": COMMIT}}, hub_endpoint="http://127.0.0.1:9")
    assert "127.0.0.1:9 does not answer as expected" in unreachable["unknown"]["tiny"]


def test_a_model_on_the_controller_is_read_from_its_directory(remote: Run, hub: FakeHub) -> None:
    result = remote({"near": {"model": f"controller:{hub.root}"}})
    assert {**result["facts"]["near"], "path": None} == of_files(hub.root)


def test_facts_of_directories_and_of_models_come_together(remote: Run, hub: FakeHub) -> None:
    result = remote(directories={"here": str(hub.root)})
    assert result["facts"]["tiny"]["weights"] == result["ansible_facts"]["model_facts"]["here"]["weights"]


def test_directories_or_models_are_required(run: Any) -> None:
    assert "one of the following is required: directories, models" in run()["msg"]
    assert "missing parameter(s) required by 'models': cache" in run(models={})["msg"]


def test_the_facts_of_an_adapter_have_its_rank_and_its_base(run: Any, tmp_path: Path) -> None:
    source = f"controller:{write_adapter(tmp_path / 'legal')}"
    models = {"legal": {"base": "large", "adapter": source, "model": source}}
    found = run(models=models, cache=str(tmp_path / "cache"))["facts"]["legal"]
    assert (found["rank"], found["base"], found["problems"]) == (16, "org/base", [])
