# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module engine_plan plans the sound instances and reports every mistake. With `strict`, it fails with all mistakes
of the input."""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import basic

from ansible_collections.baremetal.inference.plugins.module_utils.core import node_library, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import Problem
from ansible_collections.baremetal.inference.plugins.module_utils.engine import agent_service, plans
from ansible_collections.baremetal.inference.plugins.module_utils.engine.declared import Declared
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance_facts import Endpoint
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import wait
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import history, pins, releases, swaps
from ansible_collections.baremetal.inference.plugins.module_utils.models.adapter_facts import AdapterFacts
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import from_config
from ansible_collections.baremetal.inference.plugins.module_utils.node.calls import (
    engine_plan,
    engine_release,
    node_tool,
)

from ....agent_harness import AgentSystemd

USER = pwd.getpwuid(os.getuid()).pw_name

GPU = {
    "reported": True,
    "product": "L4",
    "compute_capability": "8.9",
    "memory_total_mib": 23034,
}

RunModule = Callable[..., dict[str, Any]]


class Node:
    """A node with two L4 GPUs and a store, and calls of engine_plan and engine_release."""

    def __init__(self, root: Path, run_module: RunModule) -> None:
        self.paths = Paths(root)
        self.store = root / "store"
        self.gpus: list[dict[str, Any]] = [{**GPU, "index": index, "uuid": f"GPU-{index}"} for index in range(2)]
        self.models: dict[str, Any] = {"llama": {"model": "controller:/srv/llama", "max-model-len": 4096}}
        self.instances: list[Any] = [{"name": "main", "model": "llama", "port": 15005}]
        self.environment: dict[str, str] = {}
        self.running: set[str] = set()
        self._run = run_module

    def publish(self, revision: str, config: dict[str, Any], write: Callable[..., None]) -> Path:
        """A model in the store, whose weights are one small tensor."""
        directory = self.store / "llama" / revision
        directory.mkdir(parents=True)
        (directory / "config.json").write_text(json.dumps(config))
        write(directory / "model.safetensors", {"model.layers.0.mlp.up_proj.weight": 1000})
        manifest = {"schema": 1, "revision": revision, "files": {}}
        (directory / "manifest.json").write_text(json.dumps(manifest))
        return directory

    def call(self, module: Any = engine_plan, check: bool = False, **more: Any) -> dict[str, Any]:
        given = {
            "instances": self.instances,
            "models": self.models,
            "image": "registry.example.com/vllm@sha256:00",
            "engine_version": "0.32.0",
            "user": USER,
            "environment": self.environment,
            "secret_environment": {"VLLM_API_KEY": "s3cret-value"},
            "settings": {"store_path": str(self.store), "cache_path": str(self.paths.root / "cache")},
            **more,
        }
        result = self._run(module, check, **given)
        assert "s3cret-value" not in json.dumps(result)
        assert not result.get("failed"), result["msg"]
        return result

    def files(self) -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in self.paths.root.rglob("*") if path.is_file()}


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_module: RunModule) -> Node:
    node = Node(tmp_path, run_module)
    for module in (engine_plan, engine_release):
        monkeypatch.setattr(module, "Paths", lambda: node.paths)
    monkeypatch.setattr(plans.gpu_facts, "gather", lambda *arguments: {"gpus": node.gpus})
    monkeypatch.setattr(systemd, "active_state", lambda unit: "active" if unit in node.running else "inactive")
    monkeypatch.setattr(basic.AnsibleModule, "get_bin_path", lambda module, name: None)
    return node


@pytest.fixture
def config(published: dict[str, Any]) -> dict[str, Any]:
    return dict(published["llama-3-8b"]["config"])


def test_a_missing_model_is_unknown_but_its_flags_are_checked(node: Node) -> None:
    result = node.call()
    assert (result["changed"], result["ok"], result["problems"]) == (False, None, [])
    (plan,) = result["plans"]
    assert (plan["ok"], plan["revision"], plan["gpus"]) == (None, None, ["0"])
    assert plan["unknown"] == ["the model: its files are not on this node yet, and no other facts about it are known"]
    assert plan["argv"][:3] == ["vllm", "serve", f"{node.store}/llama/REVISION"]
    assert plan["change"] == {
        "action": "start",
        "active": None,
        "desired": None,
        "served": False,
        "differences": [],
    }
    assert result["text"].startswith("main: unknown whether it fits")
    node.models["llama"]["tensor-parallel-size"] = "two"
    assert node.call()["ok"] is False


def test_a_missing_model_is_planned_by_the_facts_of_the_controller(
    node: Node, config: dict[str, Any], write_safetensors: Callable[..., None]
) -> None:
    node.models["bot"] = {"base": "llama", "max-model-len": 999999}
    node.instances[0]["model"] = "bot"
    facts = {"llama": json.loads(json.dumps(from_config(config).to_dict()))}
    (plan,) = node.call(facts=facts)["plans"]
    assert plan["estimate"]["weights_gib"] == pytest.approx(14.96, abs=0.01)
    assert "max_model_len" in [problem["check"] for problem in plan["problems"]]
    assert plan["unknown"] == []
    # Files on the node take precedence over the controller's facts.
    node.publish("ab12cd34ef56", config, write_safetensors)
    (plan,) = node.call(facts=facts)["plans"]
    assert plan["estimate"]["weights_gib"] < 1


def test_a_model_in_the_store_is_planned_and_nothing_is_written(
    node: Node, config: dict[str, Any], write_safetensors: Callable[..., None]
) -> None:
    node.publish("ab12cd34ef56", config, write_safetensors)
    before = node.files()
    result = node.call()
    (plan,) = result["plans"]
    assert plan["revision"] == "ab12cd34ef56"
    assert plan["estimate"]["weights_gib"] is not None
    assert plan["estimate"]["budget_gib"] == pytest.approx(0.92 * 23034 / 1024, abs=0.01)
    assert plan["devices"] == [{"name": "L4", "memory_mib": 23034, "compute_capability": "8.9"}]
    assert node.call(check=True) == result
    assert node.files() == before


def test_missing_weights_of_a_source_on_the_node_are_a_problem(
    node: Node, config: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source/config.json").write_text(json.dumps(config))
    node.models["llama"]["model"] = str(tmp_path / "source")
    (plan,) = node.call()["plans"]
    assert plan["revision"] is None
    assert [problem["check"] for problem in plan["problems"]] == ["files"]


def test_the_plan_of_an_instance_has_its_change(
    node: Node, config: dict[str, Any], write_safetensors: Callable[..., None]
) -> None:
    directory = node.publish("ab12cd34ef56", config, write_safetensors)
    places = {"llama": {"path": str(directory), "revision": directory.name}}
    node.call(engine_release, places=places, gpus=node.gpus)
    releases.activate(node.paths, "main", 1)
    assert node.call()["plans"][0]["change"]["action"] == "start"
    node.running.add("vllm@main.service")
    unchanged = {"action": "none", "active": 1, "desired": 1, "served": True, "differences": []}
    assert node.call()["plans"][0]["change"] == {**unchanged, "served": False}
    history.add(node.paths, "main", history.Served(1, "2026-11-21T03:00:00Z"))
    assert node.call()["plans"][0]["change"] == unchanged
    # main keeps its revision, although another revision was fetched for another instance.
    node.publish("ffffffffffff", config, write_safetensors)
    assert node.call()["plans"][0]["change"] == unchanged
    node.models["llama"]["max-model-len"] = 2048
    node.environment["VLLM_LOGGING_LEVEL"] = "DEBUG"
    result = node.call()
    assert result["plans"][0]["change"] == {
        "action": "update",
        "active": 1,
        "desired": None,
        "served": False,
        "differences": ["- --max-model-len 4096", "+ --max-model-len 2048", "environment: VLLM_LOGGING_LEVEL"],
    }
    assert "release 1 runs, a new release is pending" in result["text"]
    # Release 2 is staged, but a rollback has pinned release 1. So release 1 runs, and stays.
    node.call(engine_release, places=places, gpus=node.gpus)
    assert node.call()["plans"][0]["change"]["desired"] == 2
    pins.settle(node.paths, "main", 1, "a rollback", "2026-11-21T03:00:00Z", back=True)
    assert node.call()["plans"][0]["change"] == unchanged
    node.running.clear()
    assert node.call()["plans"][0]["change"] == {**unchanged, "action": "start"}


def test_a_model_that_will_be_fetched_is_not_read_in_the_store(
    node: Node, config: dict[str, Any], write_safetensors: Callable[..., None], tmp_path: Path
) -> None:
    damaged = node.publish("ab12cd34ef56", config, write_safetensors)
    (damaged / "model.safetensors").write_bytes(b"cut")
    assert node.call()["ok"] is False
    # The run will fetch the same revision again, another one, or an unknown one. The damaged files do not count.
    for coming, revision in (("ab12cd34ef56", "ab12cd34ef56"), ("ffffffffffff", "ffffffffffff"), ("REVISION", None)):
        (plan,) = node.call(coming={"llama": coming})["plans"]
        assert (plan["ok"], plan["revision"], plan["argv"][2]) == (None, revision, f"{node.store}/llama/{coming}")
    facts = {"llama": json.loads(json.dumps(from_config(config).to_dict()))}
    (plan,) = node.call(coming={"llama": "ffffffffffff"}, facts=facts)["plans"]
    assert plan["estimate"]["weights_gib"] == pytest.approx(14.96, abs=0.01)
    # A source on the node is read where it is.
    node.models["llama"]["model"] = str(tmp_path / "source")
    (tmp_path / "source").mkdir()
    write_safetensors(tmp_path / "source/model.safetensors", {"model.layers.0.mlp.up_proj.weight": 1000})
    (tmp_path / "source/config.json").write_text(json.dumps(config))
    (plan,) = node.call(coming={"llama": "ffffffffffff"})["plans"]
    assert plan["problems"] == [] and plan["estimate"]["weights_gib"] < 1


def test_a_draft_is_planned_with_its_model(
    node: Node, config: dict[str, Any], write_safetensors: Callable[..., None]
) -> None:
    """The plan uses the files of the draft's own entry, or else the controller's facts."""
    node.models["llama"]["speculative-config"] = {"model": "small", "num_speculative_tokens": 2}
    node.models["small"] = {"model": "controller:/srv/small"}
    short = {**config, "num_hidden_layers": 1}
    facts = {"llama": json.loads(json.dumps(from_config(config).to_dict()))}
    unknown = node.call(facts=facts)["plans"][0]
    assert unknown["ok"] is None and unknown["unknown"][0].startswith("the size of the draft: no file of small")
    facts["small"] = json.loads(json.dumps(from_config({**short, "vocab_size": 99}).to_dict()))
    asked = unknown["argv"][unknown["argv"].index("--speculative-config") + 1]
    assert json.loads(asked)["model"] == f"{node.store}/small/REVISION"
    (problem,) = node.call(facts=facts)["plans"][0]["problems"]
    assert problem["value"] == "small" and "a vocabulary of 99 tokens" in problem["message"]
    # Files on the node take precedence.
    small = node.store / "small/ffffffffffff"
    small.mkdir(parents=True)
    (small / "manifest.json").write_text("{}")
    (small / "config.json").write_text(json.dumps(short))
    write_safetensors(small / "model.safetensors", {"model.layers.0.mlp.up_proj.weight": 1000})
    problems = node.call(facts=facts)["plans"][0]["problems"]
    assert [one["value"] for one in problems] == ["small"] and "manifest.json of this draft" in problems[0]["message"]


def test_the_revision_named_by_the_model_registry_is_planned(
    node: Node, config: dict[str, Any], write_safetensors: Callable[..., None]
) -> None:
    for revision in ("ab12cd34ef56", "ffffffffffff"):
        node.publish(revision, config, write_safetensors)
    node.models["llama"]["revision"] = "ab12cd34ef56"
    assert node.call()["plans"][0]["revision"] == "ab12cd34ef56"
    node.models["llama"]["revision"] = "000000000000"
    (plan,) = node.call()["plans"]
    assert (plan["revision"], plan["ok"]) == ("000000000000", None)


def test_mistakes_of_one_instance_do_not_prevent_the_plans_of_others(node: Node) -> None:
    node.gpus.append({**GPU, "index": 2, "uuid": "GPU-2"})
    node.models["typo"] = {"model": "/srv/typo", "dtypee": "half"}
    node.models["child"] = {"base": "middle"}
    node.models["middle"] = {"base": "typo"}
    node.instances += [
        {"name": "other", "model": "typo", "port": 15006},
        {"name": "third", "model": "child", "port": 15007},
        {"name": "far", "model": "llama", "port": 15008, "gpus": [7]},
    ]
    result = node.call()
    assert [plan["instance"] for plan in result["plans"]] == ["main"]
    assert result["ok"] is False
    keys = [problem["key"] for problem in result["problems"]]
    assert "models.typo: dtypee" in keys
    assert len(keys) == 1
    assert "did you mean 'dtype'" in result["text"]
    node.models["typo"] = {"model": "/srv/typo"}
    result = node.call()
    assert [problem["value"] for problem in result["problems"]] == ["7"]
    assert [plan["instance"] for plan in result["plans"]] == ["main", "other", "third"]


def test_addresses_settings_and_environment_are_checked(node: Node) -> None:
    result = node.call(
        settings={"address": "192.0.2.1", "store_path": "here", "cache_path": "/cache"}, environment={"A B": "1"}
    )
    messages = " ".join(problem["key"] for problem in result["problems"])
    assert [name in messages for name in ("engines: address", "vllm_store_path", "vllm_environment")] == [True] * 3


def test_a_port_in_use_is_a_problem(node: Node) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        node.instances[0]["port"] = server.getsockname()[1]
        (problem,) = node.call()["problems"]
    assert problem["key"] == "instance main: port"
    assert "is taken by" in problem["message"]


def test_an_environment_that_cannot_be_written_prevents_all_plans(node: Node) -> None:
    result = node.call(environment={"A": "1\n2"})
    assert (result["ok"], result["plans"]) == (False, [])
    assert result["text"].startswith("no instance that can be planned")


def test_a_cpu_engine_asks_for_no_gpu(
    node: Node, config: dict[str, Any], write_safetensors: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans.gpu_facts, "gather", lambda *arguments: pytest.fail("nvidia-smi was asked"))
    (node.paths.root / "proc").mkdir()
    (node.paths.root / "proc/meminfo").write_text("MemTotal:       67108864 kB\nMemFree: 1 kB\n")
    node.publish("ab12cd34ef56", config, write_safetensors)
    node.instances[0]["accelerator"] = "cpu"
    node.environment["VLLM_CPU_KVCACHE_SPACE"] = "3"
    (plan,) = node.call()["plans"]
    assert plan["devices"] == [{"name": "CPU", "memory_mib": 65536, "compute_capability": None}]
    assert plan["estimate"]["kv_cache_gib"] == 3.0


def test_orphans_and_deprecated_flags_are_reported(node: Node) -> None:
    node.paths.releases("gone").mkdir(parents=True)
    node.models["llama"]["disable-cascade-attn"] = True
    result = node.call()
    assert result["orphans"] == ["gone"]
    assert "is deprecated in vLLM 0.32.0" in result["warned"][0]
    assert "  orphan    gone is on the node, but not in the inventory" in result["text"]


# --- strict checks


Plan = Callable[..., tuple[dict[str, Any], list[str]]]

DIGEST = f"@sha256:{'0' * 64}"

SETTINGS = {
    "store_path": "/mnt/models",
    "cache_path": "/cache",
    "start_timeout": 1800,
    "drain_timeout": 120,
    "pids_limit": 16384,
    "shm_size": "1g",
}


def lines(refused: dict[str, Any]) -> list[str]:
    """The mistakes that a strict check names."""
    first, *found = str(refused["msg"]).splitlines()
    assert first == "Nothing was changed. To correct:" and len(found) == len(refused["problems"])
    return [line.removeprefix("- ") for line in found]


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_module: Callable[..., dict[str, Any]]) -> Plan:
    """Call the module on a node without Docker; returns its result and its warnings."""
    monkeypatch.setattr(engine_plan, "Paths", lambda: Paths(tmp_path))
    monkeypatch.setattr(engine_plan, "running_instances", lambda paths: {})
    monkeypatch.setattr(basic.AnsibleModule, "get_bin_path", lambda module, name: None)
    warnings: list[str] = []
    monkeypatch.setattr(basic.AnsibleModule, "warn", lambda module, warning: warnings.append(warning))

    def call(models: dict[str, Any], **changes: Any) -> tuple[dict[str, Any], list[str]]:
        given = {
            "instances": [],
            "models": models,
            "image": f"registry.example.com/vllm{DIGEST}",
            "engine_version": "0.32.0",
            "user": USER,
            "strict": True,
            "fit": False,
            "docker_data_root": str(tmp_path),
            "settings": SETTINGS,
            **changes,
        }
        return run_module(engine_plan, **given), warnings

    return call


def test_a_sound_model_registry_has_no_warnings(plan: Plan) -> None:
    result, warnings = plan({"a": {"model": "/m", "dtype": "half"}, "b": {"base": "a"}})
    assert (result["engine_version"], result["catalogue_version"]) == ("0.32.0", "0.32.0")
    assert warnings == []


def test_all_mistakes_are_in_one_refusal(plan: Plan) -> None:
    result, _warnings = plan(
        {"a": {"model": "/m", "dtypee": "half", "port": 1}, "b": {"base": "c"}},
        settings={**SETTINGS, "shm_size": "big"},
    )
    assert len(lines(result)) == 4
    assert result["msg"].startswith("Nothing was changed. To correct:")
    assert "- models.a: dtypee: 'half': is neither" in result["msg"]


def test_a_new_port_address_and_key_are_no_mistake(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        engine_plan, "running_instances", lambda paths: {"main": Endpoint("127.0.0.2", 5006, ("1a2b",))}
    )
    given: dict[str, Any] = {
        "models": {"a": {"model": "/m"}},
        "instances": [{"name": "main", "model": "a", "port": 5005, "accelerator": "cpu"}],
        "secret_environment": {"VLLM_API_KEY": "key-of-today"},
    }
    assert plan(**given)[0]["problems"] == []


def test_an_engine_version_without_a_catalogue_is_a_warning(plan: Plan) -> None:
    result, warnings = plan({"a": {"model": "/m", "quite-new": 1}}, engine_version="0.32.9")
    assert (result["engine_version"], result["catalogue_version"]) == ("0.32.9", "0.32.0")
    assert "no catalogue of the flags of vLLM 0.32.9" in warnings[0]
    neither = "models.a: quite-new: 1: is neither a key of the model registry nor a flag of vLLM 0.32.0"
    assert warnings[1].startswith(neither)


def test_the_version_is_read_from_the_tag(plan: Plan) -> None:
    image = f"registry.example.com/vllm:v0.33.0{DIGEST}"
    result, warnings = plan({"a": {"model": "/m", "monokernel": True}}, image=image, engine_version="")
    assert (result["engine_version"], warnings) == ("0.33.0", [])


def test_a_deprecated_flag_is_a_warning(plan: Plan) -> None:
    _result, warnings = plan({"a": {"model": "/m", "disable-cascade-attn": True}})
    assert warnings == [
        "models.a: disable-cascade-attn: True: is deprecated in vLLM 0.32.0, to be removed in 0.33.0: remove it"
    ]


TINY = {"tiny": {"model": "/models/tiny"}}
INSTANCES = [
    {"name": "a", "model": "tiny", "port": 5005, "gpus": [0]},
    {"name": "b", "model": "tiny", "port": 5006, "gpus": ["GPU-1"]},
    {"name": "c", "model": "tiny", "port": 5007, "accelerator": "cpu"},
]


def gpus(count: int, reported: bool = True) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{"index": None, "pci_bus_id": f"0000:0{number}:00.0"} for number in range(count)]
    for number, gpu in enumerate(found if reported else []):
        gpu.update(index=number, uuid=f"GPU-{number}", reported=True)
    return found


def gpu_problems(given: list[dict[str, Any]] | None) -> tuple[Problem, ...]:
    return Declared.read(TINY, INSTANCES, "0.32.0", given).problems


def test_gpus_of_the_node_are_no_problem() -> None:
    assert gpu_problems(gpus(2)) == ()
    assert gpu_problems(gpus(2, reported=False)) == ()
    assert gpu_problems(None) == ()


def test_missing_gpus_are_a_problem() -> None:
    (problem,) = gpu_problems(gpus(1))
    assert str(problem).startswith("instances[1] (b): gpus: 'GPU-1': is no working GPU of this node: the node has 0")
    (problem,) = gpu_problems(gpus(0))
    assert str(problem) == "instances[0] (a): gpus: '0': is no GPU of this node: the PCI bus has none"


def test_a_cdi_problem_is_reported_in_addition_to_missing_gpus(plan: Plan) -> None:
    result, _warnings = plan(TINY, instances=INSTANCES, gpus=gpus(1), cdi_problem="Docker is too old")
    assert [line.partition(":")[0] for line in lines(result)] == ["instances[1] (b)", "instance a", "instance b"]
    assert "instance a: gpus: ['0']: cannot get its GPUs: Docker is too old" in lines(result)


def test_the_disk_is_checked_if_the_image_size_is_given(plan: Plan, tmp_path: Path) -> None:
    result, _warnings = plan(TINY, image_gib=1)
    assert (result["image_space"], result["plans"], result["text"]) == ({str(tmp_path): 1}, [], "")
    assert plan(TINY)[0]["image_space"] == {}
    (line,) = lines(plan(TINY, image_gib=10**9)[0])
    assert line.startswith("disk: ") and "the image needs 1000000000 GiB" in line


AGENT = {"address": "127.0.0.1", "port": 5005}


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> AgentSystemd:
    fake = AgentSystemd()
    monkeypatch.setattr(systemd, "show", fake.show)
    monkeypatch.setattr(systemd, "systemctl", fake.systemctl)
    return fake


def test_mistakes_of_image_agent_and_prompts_are_in_the_same_refusal(
    plan: Plan, fake: AgentSystemd, tmp_path: Path, write_model: Callable[..., Path]
) -> None:
    models = {
        "tiny": {"model": str(write_model(tmp_path / "tiny")), "dtypee": "half"},
        "bot": {"base": "tiny", "system-prompt": "Be kind."},
    }
    instances = [{"name": "main", "model": "bot", "port": 5005, "accelerator": "cpu"}]
    given = {**AGENT, "address": "node1"}
    found = lines(plan(models, instances=instances, image="vllm:latest", agent=given)[0])
    variables = ("vllm_agent_port", "vllm_agent_address", "vllm_image")
    starts = ["models.tiny: dtypee", *(f"role vllm: {name}" for name in variables)]
    assert len(found) == 5 and all([line for line in found if line.startswith(start)] for start in starts), found
    assert [line for line in found if "has no chat template" in line]


def test_node_tool_and_engines_are_compared_and_nothing_is_changed(
    plan: Plan, fake: AgentSystemd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_service, "problem_with", lambda *where: "")
    # A part of the library: the byte code of all files would take seconds.
    part = {path: text for path, text in node_library.own().items() if path.startswith("core/")}
    monkeypatch.setattr(node_library, "own", lambda: part)
    paths = Paths(tmp_path)
    states = {"a": "ready"}
    instances = [
        {"name": name, "model": "tiny", "port": port, "accelerator": "cpu"}
        for name, port in (("a", 15005), ("c", 15006))
    ]

    def outcomes(_paths: Paths, names: list[str]) -> list[wait.Outcome]:
        return [wait.Outcome(name, states.get(name, "failed")) for name in names]

    monkeypatch.setattr(wait, "outcomes", outcomes)
    found = plan(TINY, instances=instances, agent=AGENT)[0]
    assert (found["tool_due"], found["services_due"], found["starts"]) == (True, True, ["c"])
    assert not paths.command.exists() and not paths.target.exists() and not fake.calls
    # Only the swap starts an instance that the swap has stopped.
    swaps.begin(paths, "c", swaps.Swap(1, 2, "run", "2026-11-21T03:00:00Z"))
    found, warnings = plan(TINY, instances=instances, agent=AGENT)
    assert found["starts"] == [] and "c was left alone: it is in a swap, or its swap was cut off" in str(warnings)
    swaps.end(paths, "c")
    node_tool.install(paths, check=False)
    states["c"] = "ready"
    found = plan(TINY, instances=instances, agent=AGENT)[0]
    assert (found["tool_due"], found["starts"]) == (False, [])
    paths.command.write_text("edited")
    assert plan(TINY, instances=instances, agent=AGENT)[0]["tool_due"] is True
    # Without the option `agent`, the module compares neither node tool nor engines.
    found = plan(TINY, instances=instances)[0]
    assert (found["tool_due"], found["services_due"], found["starts"]) == (False, False, [])


def test_an_agent_that_differs_or_has_failed_is_due(
    plan: Plan, fake: AgentSystemd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_service, "problem_with", lambda *where: "")
    assert plan(TINY, agent=AGENT)[0]["agent_due"] is True
    agent_service.Units(Paths(tmp_path), "127.0.0.1", 5005).install()
    assert plan(TINY, agent=AGENT)[0]["agent_due"] is False
    fake.unit["ActiveState"] = "failed"
    assert plan(TINY, agent=AGENT)[0]["agent_due"] is True
    assert plan(TINY)[0]["agent_due"] is False


def test_adapters_are_planned_and_checked_before_their_files_arrive(node: Node, config: dict[str, Any]) -> None:
    node.models["legal"] = {"base": "llama", "adapter": "controller:/srv/legal"}
    legal = AdapterFacts(rank=40, layers=2)
    facts = {"llama": from_config(config).to_dict(), "legal": legal.to_dict()}
    (plan,) = node.call(facts=facts)["plans"]
    assert plan["problems"] == [] and plan["estimate"]["adapters_gib"] > 0
    words = " ".join(plan["argv"])
    assert f"--lora-modules legal={node.store}/legal/REVISION --max-lora-rank 64" in words

    facts["legal"] = replace(legal, shapes=(("model.layers.self_attn.q_proj", 96, 7),)).to_dict()
    (plan,) = node.call(facts=facts)["plans"]
    (problem,) = plan["problems"]
    assert plan["ok"] is False and problem["key"] == "models.legal"
    assert "has q_proj of 96 x 7, and its base has 4096 x 4096" in problem["message"]


GANG_KEY = "0123456789abcdef"


def gang_node(node: Node, *, here: str = "n1") -> dict[str, Any]:
    """The options of the node `here` in a gang of n1 and n2. Only n1 has an address of this machine."""
    node.instances = [
        {
            "name": "main",
            "model": "llama",
            "port": 15005,
            "nodes": ["n1", "n2"],
            "gang_port": 15110,
            "rendezvous_port": 15510,
        }
    ]
    hosts = {
        name: {"address": address, "variable": "inference_fabric_address", "instances": node.instances}
        for name, address in (("n1", "127.0.0.1"), ("n2", "192.0.2.2"))
    }
    return {"gangs": {"node": here, "group": ["n1", "n2"], "hosts": hosts}, "gang_key": GANG_KEY}


def test_a_gang_is_planned_with_the_rank_and_gpus_of_this_node(node: Node, config: dict[str, Any]) -> None:
    node.models["llama"]["tensor-parallel-size"] = 2
    facts = {"llama": from_config(config).to_dict()}
    result = node.call(facts=facts, **gang_node(node))
    (plan,) = result["plans"]
    assert (plan["nodes"], plan["rank"], plan["gpus"], len(plan["devices"])) == (2, 0, ["0"], 1)
    assert plan["argv"][-8:-2] == ["--nnodes", "2", "--node-rank", "0", "--master-addr", "127.0.0.1"]
    assert any("answers are slow" in note for note in plan["notes"])
    (part,) = result["gangs"]
    # Without a key, guesses of the secret could be compared with its digest.
    secrets = {"main": {"HF_TOKEN": "s3cret-value"}}
    shared = node.call(facts=facts, instance_secrets=secrets, **gang_node(node))["gangs"][0]["shared"]
    assert shared["environment"]["HF_TOKEN"] not in ("", hashlib.sha256(b"s3cret-value").hexdigest())
    assert (part["name"], part["node"], part["rank"], part["devices"]) == ("main", "n1", 0, ["L4"])
    assert "on each of 2 nodes" in result["text"]
    # 127.0.0.1 is an address of this machine, but other nodes cannot reach it.
    assert [problem["key"] for problem in result["problems"]] == ["instance main: inference_fabric_address"]


def test_a_gang_without_a_division_gets_a_proposal(node: Node, config: dict[str, Any]) -> None:
    result = node.call(facts={"llama": from_config(config).to_dict()}, **gang_node(node))
    (plan,) = result["plans"]
    assert plan["ok"] is False
    assert plan["problems"][0]["fits"] == [{"pipeline-parallel-size": 2}]
    assert any(note.startswith("proposed: ") for note in plan["notes"])


def test_a_run_that_starts_engines_refuses_all_mistakes_of_a_gang(node: Node, run_module: RunModule) -> None:
    given = gang_node(node)
    node.instances[0]["bridge_port"] = 15105
    result = run_module(
        engine_plan,
        False,
        strict=True,
        fit=False,
        instances=node.instances,
        models=node.models,
        image="registry.example.com/vllm@sha256:" + "0" * 64,
        user=USER,
        gangs=given["gangs"],
    )
    assert result["failed"]
    for part in (
        "a bridge would need as many nodes again",
        "vllm_gang_key: (site variable gang_key)",
        "no IP address that other nodes can reach",
    ):
        assert part in result["msg"]
    node.instances[0].pop("bridge_port")
    result = run_module(
        engine_plan,
        False,
        strict=True,
        fit=False,
        instances=node.instances,
        models=node.models,
        image="registry.example.com/vllm@sha256:" + "0" * 64,
        user=USER,
        **given,
    )
    assert "instance main: nodes: the network of n1, n2 is unknown" in result["msg"]


def test_the_networks_of_all_nodes_are_in_the_plan(node: Node) -> None:
    rail = {"device": "mlx5_0", "port": 1, "layer": "ethernet", "netdev": "ens1", "network": "10.1.0.0/16"}
    rail |= {"mtu_active": 4096, "rate_gbps": 400.0}
    nodes = {
        name: {"address": address, "netdev": "eno1", "rails": [{**rail, "rate_gbps": rate}], "ports": 1, "tos": 106}
        for name, address, rate in (("n1", "127.0.0.1", 400.0), ("n2", "192.0.2.2", 200.0))
    }
    node.models["llama"]["tensor-parallel-size"] = 2
    result = node.call(network={"nodes": nodes}, **gang_node(node))
    assert "NCCL_IB_TC" in result["gangs"][0]["shared"]["environment"]
    assert any("the rates of the rails differ" in warning for warning in result["warned"])
    nodes["n2"]["rails"] = []
    problems = node.call(network={"nodes": nodes}, **gang_node(node))["problems"]
    assert any("the rails of the nodes differ: n1 has 1; n2 has 0" in problem["message"] for problem in problems)


def test_every_golden_prompt_of_another_task_is_a_problem(node: Node, config: dict[str, Any]) -> None:
    node.models["llama"]["golden-prompts"] = [
        {"prompt": "a cat", "order": ["a kitten", "a car"]},
        {"prompt": "2 + 2 =", "expect": "4"},
    ]
    node.models["legal"] = {"base": "llama", "adapter": "controller:/srv/legal"}
    node.models["legal"]["golden-prompts"] = [{"prompt": "I like it", "label": "positive"}]
    (plan,) = node.call(facts={"llama": from_config(config).to_dict()})["plans"]
    assert plan["ok"] is False
    found = [(problem["check"], problem["key"], problem["value"]) for problem in plan["problems"]]
    assert found == [
        ("golden-prompts", "models.llama", "a cat"),
        ("golden-prompts", "models.legal", "I like it"),
    ]
    assert "is a golden prompt for the task embed or score or reward" in plan["problems"][0]["message"]
    # Without facts of the model, the golden prompts are not checked.
    (plan,) = node.call()["plans"]
    assert plan["problems"] == []


def test_warm_up_chats_of_a_model_without_chats_are_a_problem(node: Node, config: dict[str, Any]) -> None:
    node.models["llama"]["warm-up-prompts"] = [{"messages": [{"role": "user", "content": "Hello"}]}]
    facts = {"llama": from_config(config).to_dict()}
    assert node.call(facts=facts)["plans"][0]["problems"] == []
    node.models["llama"]["runner"] = "pooling"
    (plan,) = node.call(facts=facts)["plans"]
    assert (plan["ok"], plan["problems"][0]["check"]) == (False, "warm-up-prompts")
    assert (
        "prompt 1 has messages, and the model's tasks are embed, score: write prompt" in plan["problems"][0]["message"]
    )


def test_an_affinity_key_that_no_request_has_is_a_problem(node: Node) -> None:
    node.models["llama"]["routing"] = "affinity"
    facts = from_config({"architectures": ["WhisperForConditionalGeneration"]}).to_dict()
    (plan,) = node.call(facts={"llama": facts})["plans"]
    (problem,) = [one for one in plan["problems"] if one["check"] == "routing"]
    assert (problem["key"], plan["ok"]) == ("models.llama: affinity-key", False)
    assert "is in no request: clients send sound as a form" in problem["message"]
    (plan,) = node.call()["plans"]
    assert "routing" not in [one["check"] for one in plan["problems"]]


def test_mistakes_in_the_own_settings_of_an_instance_are_reported_without_values(node: Node, tmp_path: Path) -> None:
    """The report has no value of a variable, since the value may be a secret."""
    node.models["llama"] |= {"chat-template": "/nowhere/t.jinja", "tool-parser-plugin": "controller:/srv/missing.py"}
    node.instances[0] |= {
        "image": "vllm:latest",
        "user": "nobody-has-this",
        "environment": {"HOME": "/", "HF_TOKEN": "another-s3cret-value"},
    }
    missing = {"controller:/srv/missing.py": {"problem": "cannot be read on the controller: No such file"}}
    secrets = {"mian": {"A": "s3cret-value"}}
    result = node.call(flag_files=missing, instance_secrets=secrets)
    messages = "\n".join(problem["message"] for problem in result["problems"])
    for words in (
        "must name the image by digest",
        "is set by the role",
        "looks like a secret",
        "is not a file on this node",
        "cannot be read on the controller",
        "belongs to no instance",
    ):
        assert words in messages, words
    assert "another-s3cret" not in json.dumps(result)
    node.instances[0] = {"name": "main", "model": "llama", "port": 15005, "user": "nobody-has-this"}
    (problem,) = [one for one in node.call()["problems"] if "user" in one["key"]]
    assert "create the user first" in problem["message"]


def test_a_memory_limit_below_the_weights_does_not_fit(
    node: Node, config: dict[str, Any], write_safetensors: Callable[..., None]
) -> None:
    facts = {"llama": json.loads(json.dumps(from_config(config).to_dict()))}
    node.instances[0]["memory"] = "8g"
    (plan,) = node.call(facts=facts)["plans"]
    (problem,) = [one for one in plan["problems"] if one["check"] == "host_memory"]
    assert "is less than the 15.0 GiB that the engine must hold" in problem["message"] and plan["ok"] is False
    node.instances[0]["memory"] = "80g"
    (plan,) = node.call(facts=facts)["plans"]
    assert "host_memory" not in [one["check"] for one in plan["problems"]]


def test_an_entry_is_checked_for_the_image_that_serves_it(node: Node) -> None:
    """Only the vLLM version of the instance's own image has this flag."""
    node.models["llama"]["reasoning-effort-map"] = {"low": "minimal"}
    assert "is neither a key of the model registry nor a flag" in str(node.call()["problems"])
    node.instances[0]["image"] = "registry.example.com/vllm:v0.33.0@sha256:" + "a" * 64
    result = node.call()
    assert result["problems"] == []
    assert "--reasoning-effort-map" in result["plans"][0]["argv"]


def test_driver_and_gpus_are_judged_by_the_image_of_the_instance(
    node: Node, monkeypatch: pytest.MonkeyPatch, config: dict[str, Any]
) -> None:
    own = "registry.example.com/vllm:v0.33.0@sha256:" + "a" * 64
    driver = {"version": "535.1", "cuda_version": "12.2"}
    gpus = [{**gpu, "compute_capability": "7.0"} for gpu in node.gpus]
    monkeypatch.setattr(plans.gpu_facts, "gather", lambda *arguments: {"gpus": gpus, "gpu_driver": driver})
    versions = {own: "13.0"}
    monkeypatch.setattr(engine_plan.image_cuda, "find", lambda given, image, docker, run: versions.get(image, given))
    facts = {"llama": json.loads(json.dumps(from_config(config).to_dict()))}
    (plan,) = node.call(facts=facts, engine_cuda="12.1")["plans"]
    assert "driver" not in [problem["check"] for problem in plan["problems"]]
    node.instances[0]["image"] = own
    # `engine_cuda` is the version of the site's image, not of the instance's own image.
    (plan,) = node.call(facts=facts, engine_cuda="12.1")["plans"]
    messages = " ".join(problem["message"] for problem in plan["problems"])
    assert "has CUDA 12.2, and the image is built with CUDA 13.0" in messages
    assert "driver" in [problem["check"] for problem in plan["problems"]] and "7.5" in messages
