# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""`inferctl models` and `inferctl plan`: what they print, the JSON, the exit codes and the errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import plans
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Settings, render
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import releases
from ansible_collections.baremetal.inference.plugins.module_utils.models.flags import catalogue
from ansible_collections.baremetal.inference.plugins.module_utils.models.flags.check import arguments
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.entries import read
from ansible_collections.baremetal.inference.plugins.module_utils.node.cli import inferctl
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored_model import StoredModel

STABLE_KEYS = ["ok", "model", "argv", "estimate", "problems"]
"""Keys that scripts of sites read from the JSON document."""

MODELS = {
    "llama": {"model": "/srv/llama", "max-model-len": 8192, "description": "General chat"},
    "short": {"base": "llama", "max-model-len": 1024},
}


class Node:
    """A node whose instance main serves `short`, a variant of llama, on one GPU."""

    def __init__(self, root: Path, config: Mapping[str, Any]) -> None:
        self.paths = Paths(root)
        self.models = json.loads(json.dumps(MODELS))
        self.stored = root / "mnt/models/llama/ab12cd34ef56"
        self.stored.mkdir(parents=True)
        (self.stored / "config.json").write_text(json.dumps(config))
        self.running = {"vllm@main.service"}
        self.stage("main", "short")
        releases.activate(self.paths, "main", 1)

    def stage(self, name: str, model: str, **settings: Any) -> None:
        """Write the files that engine_release writes."""
        flags = catalogue.choose("0.32.0")
        entry = read(self.models, flags).entries[model]
        instance = Instance(name=name, model=model, port=5005, gpus=("0",))
        stored = StoredModel(str(self.stored), self.stored.name)
        engine = arguments(entry.flags, flags)

        def rendered(number: int) -> Any:
            return render(instance, engine, stored, "image", Settings(**settings), number=number)

        staged, _written = releases.stage(self.paths, name, rendered(0).release.id, rendered, pytest.fail)
        state = {"schema": 1, "model": model, "release": staged.release.number}
        files.write_json(self.paths.instance(name), state)
        files.write_json(self.paths.registry, {"schema": 1, "engine": {"version": "0.32.0"}, "models": self.models})


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, published: dict[str, Any]) -> Node:
    node = Node(tmp_path, published["llama-3-8b"]["config"])
    gpu = {"index": 0, "uuid": "GPU-1", "product": "H100-80GB", "compute_capability": "9.0", "memory_total_mib": 81559}
    monkeypatch.setattr(plans.gpu_facts, "gather", lambda *arguments: {"gpus": [gpu]})
    monkeypatch.setattr(systemd, "active_state", lambda unit: "active" if unit in node.running else "inactive")
    return node


Call = Callable[..., tuple[int, str]]


@pytest.fixture
def call(node: Node, capsys: pytest.CaptureFixture[str]) -> Call:
    """Run inferctl; returns its exit code and all that it printed."""

    def run(*arguments: str) -> tuple[int, str]:
        code = inferctl.main(arguments, node.paths)
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    return run


def test_the_command_models_lists_source_revision_base_and_instances(call: Call) -> None:
    code, text = call("models")
    assert code == 0
    assert [line.split() for line in text.splitlines()[1:]] == [
        ["llama", "/srv/llama", "ab12cd34ef56", "-", "-", "yes"],
        ["short", "/srv/llama", "ab12cd34ef56", "llama", "main", "yes"],
    ]
    found = json.loads(call("models", "--json")[1])
    assert found["schema"] == 1
    assert found["models"][0]["description"] == "General chat"
    assert found["models"][1]["instances"] == ["main"]


@pytest.mark.parametrize(
    ("entry", "row"),
    [
        ({"model": 5}, ["odd", "5", "-", "-", "-", "?"]),
        ({"model": None}, ["odd", "-", "-", "-", "-", "?"]),
        ({"model": "/m", "revision": 7}, ["odd", "/m", "7", "-", "-", "?"]),
    ],
)
def test_a_model_registry_that_was_edited_by_hand_is_shown(node: Node, call: Call, entry: Any, row: list[str]) -> None:
    files.write_json(node.paths.registry, {"schema": 1, "models": {"odd": entry}})
    code, text = call("models")
    assert (code, [line.split() for line in text.splitlines()[1:]]) == (0, [row])


def test_a_model_that_was_deleted_is_not_on_disk(node: Node, call: Call) -> None:
    (node.stored / "config.json").unlink()
    assert [model["on_disk"] for model in json.loads(call("models", "--json")[1])["models"]] == [False, False]


def test_an_empty_node_has_neither_models_nor_plans(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = Paths(tmp_path)
    assert inferctl.main(["models"], paths) == 0
    assert "baremetal.inference.site fetches" in capsys.readouterr().out
    assert inferctl.main(["plan"], paths) == 0
    assert "baremetal.inference.site makes" in capsys.readouterr().out


def plan(call: Call, *arguments: str) -> tuple[int, dict[str, Any]]:
    code, text = call("plan", "--json", *arguments)
    return code, json.loads(text)


def test_the_plan_of_an_instance_that_fits_has_no_problems(node: Node, call: Call) -> None:
    # Without --model-config, the plan would report the missing weights of the directory.
    code, found = plan(call, "main", "--model-config", str(node.stored / "config.json"))
    assert code == 0
    assert set(STABLE_KEYS) <= set(found)
    release = releases.load(node.paths, "main", 1)
    assert found["argv"] == ["vllm", *release.engine_argv]
    assert found["argv"][-2:] == ["--max-model-len", "1024"]
    assert found["ok"] is True
    assert found["estimate"]["weights_gib"] == pytest.approx(14.96, abs=0.01)
    assert found["estimate"]["max_model_len"] == 1024
    assert found["change"] == {"action": "none", "active": 1, "desired": 1, "served": False, "differences": []}
    assert found["problems"] == []


def test_the_text_has_the_command_and_the_estimate(node: Node, call: Call) -> None:
    code, text = call("plan", "--model-config", str(node.stored / "config.json"), "main")
    lines = text.splitlines()
    assert (code, lines[0]) == (0, "main: fits")
    assert f"  command   vllm serve {node.stored} --served-model-name main short --host 127.0.0.1" in text
    assert "  runs on   H100-80GB (GPU 0)" in lines
    assert "  estimate  weights 14.96 GiB, " in text
    assert "  change    nothing: release 1 runs" in lines


def test_files_that_are_missing_are_problems(node: Node, call: Call) -> None:
    code, found = plan(call, "main")
    assert (code, found["ok"]) == (1, False)
    assert {problem["check"] for problem in found["problems"]} == {"files"}
    assert "PROBLEM" in call("plan")[1]


def test_without_a_name_all_instances_are_planned(node: Node, call: Call) -> None:
    node.stage("side", "llama")
    code, found = plan(call)
    assert (code, found["ok"]) == (1, False)
    assert [one["instance"] for one in found["plans"]] == ["main", "side"]
    assert found["plans"][1]["change"]["action"] == "start"


def test_a_plan_shows_what_the_desired_release_changes(node: Node, call: Call) -> None:
    node.models["short"]["max-model-len"] = 2048
    node.stage("main", "short", environment={"VLLM_API_KEY": "s3cret-value"})
    _code, found = plan(call, "main")
    assert found["change"] == {
        "action": "update",
        "active": 1,
        "desired": 2,
        "served": False,
        "differences": ["- --max-model-len 1024", "+ --max-model-len 2048", "environment: VLLM_API_KEY"],
    }
    text = call("plan", "main")[1]
    assert "release 1 runs, release 2 is pending: run baremetal.inference.update_model to swap to it" in text
    assert "s3cret" not in text
    node.running.clear()
    assert "does not run: baremetal.inference.site starts release 2, in place of release 1" in call("plan", "main")[1]


def test_the_name_of_a_model_means_its_instance_or_the_model_alone(node: Node, call: Call) -> None:
    assert plan(call, "short")[1]["instance"] == "main"
    found = plan(call, "llama")[1]
    assert found["instance"] is None
    assert found["argv"] == [
        *("vllm", "serve", str(node.stored), "--served-model-name", "llama", "--max-model-len", "8192"),
    ]
    assert found["change"] is None
    # The plan of a model without an instance has the model's revision in the store.
    assert found["revision"] == "ab12cd34ef56"


def test_an_unknown_name_is_an_error_that_lists_the_known_names(call: Call) -> None:
    code, text = call("plan", "mian")
    assert code == 2
    assert "no instance or model 'mian' on this node: did you mean 'main'? known: llama, main, short" in text


def test_hardware_and_a_model_that_the_node_does_not_have_can_be_planned(
    call: Call, tmp_path: Path, published: dict[str, Any]
) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(published["llama-3-70b"]["config"]))
    code, found = plan(call, "--gpus", "8xH100-80GB", "--model-config", str(config))
    # The plan proposes a division over GPUs if the flags have none.
    assert (code, found["ok"]) == (0, True)
    assert found["argv"] == ["vllm", "serve", str(tmp_path), "--tensor-parallel-size", "2"]
    assert len(found["devices"]) == 8
    text = call("plan", "--gpus", "8xH100-80GB", "--model-config", str(config))[1]
    assert "runs on   8 x H100-80GB" in text
    assert "tensor-parallel-size: 2: proposed" in text


def test_flags_of_the_engine_follow_two_dashes(call: Call, tmp_path: Path, published: dict[str, Any]) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(published["llama-3-70b"]["config"]))
    asked = ("--gpus", "8xH100-80GB", "--model-config", str(config), "--")
    code, found = plan(call, *asked, "--tensor-parallel-size", "1")
    assert (code, found["argv"][-2:]) == (1, ["--tensor-parallel-size", "1"])
    assert found["problems"][0]["fits"][0] == {"tensor-parallel-size": 2}
    code, found = plan(call, *asked, "--tp=4")
    assert (code, found["argv"][-2:]) == (0, ["--tensor-parallel-size", "4"])
    code, found = plan(call, *asked, "-tp", "4", "--max-model-len", "-1")
    assert (code, found["argv"][-3:]) == (0, ["--max-model-len=-1", "--tensor-parallel-size", "4"])
    _code, found = plan(call, *asked, "--max-model-len", "4k", "--enforce-eager", "--no-enable-prefix-caching")
    assert found["argv"][3:8] == [
        "--no-enable-prefix-caching",
        "--enforce-eager",
        "--max-model-len",
        "4k",
        "--tensor-parallel-size",
    ]
    # A name comes before the dashes.
    _code, found = plan(call, "main", "--", "--max-model-len", "512")
    assert found["estimate"]["max_model_len"] == 512


@pytest.mark.parametrize(
    "words",
    [
        ["main", "--gpus", "2xH100-80GB"],
        ["--gpus", "2xH100-80GB", "main"],
        ["--gpus=2xH100-80GB", "main", "--nodes", "1"],
        ["main", "--nodes", "1", "--gpus", "2xH100-80GB"],
    ],
)
def test_options_may_come_before_or_after_the_name(words: list[str], node: Node, call: Call) -> None:
    words = [*words, "--model-config", str(node.stored / "config.json")]
    code, found = plan(call, *words, "--", "--max-model-len", "512", "-tp", "2")
    assert (code, found["instance"], found["estimate"]["max_model_len"]) == (0, "main", 512)
    assert found["argv"][-4:] == ["--max-model-len", "512", "--tensor-parallel-size", "2"]
    # After the dashes, each word is for the engine, even if `plan` has an option of this name.
    code, text = call("plan", *words, "--", "--json")
    assert (code, "--: json: " in text) == (2, True)


def test_the_short_name_of_a_flag_is_a_value_if_it_has_no_dash(call: Call) -> None:
    _code, found = plan(call, "main", "--", "--tokenizer", "q")
    assert found["argv"][-2:] == ["--tokenizer", "q"]


def test_two_dashes_without_flags_change_nothing(call: Call) -> None:
    assert call("plan", "main", "--json", "--") == call("plan", "main", "--json")


def test_an_instance_can_be_planned_on_other_hardware(node: Node, call: Call) -> None:
    """The flags and the command of the instance stay, and no GPU of this node is named."""
    config = str(node.stored / "config.json")
    code, found = plan(call, "main", "--gpus", "T4", "--model-config", config)
    assert (code, found["gpus"], found["devices"][0]["name"]) == (1, None, "T4")
    assert "release 1" in call("plan", "main", "--gpus", "T4")[1]
    assert plan(call, "main", "--gpus", "H100-80GB", "--model-config", config)[0] == 0


def test_an_unknown_fit_is_no_success(node: Node, call: Call, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"model_type": "unheard-of", "num_attention_heads": 8}))
    code, found = plan(call, "main", "--model-config", str(config))
    assert (code, found["ok"]) == (4, None)
    assert found["unknown"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--", "--max-modl-len", "5"], "did you mean 'max-model-len'?"),
        (["--", "--port", "5"], "port: is not allowed here: set port of the instance"),
        (["--", "main"], "'main' is the value of no flag: write --FLAG VALUE after --"),
        (["--", "--dtype", "half", "auto"], "'auto' is the value of no flag: write --FLAG VALUE after --"),
        (["--gpus", "8xH100"], "--gpus: 'H100' is the name of several GPUs: H100-80GB, H100-PCIe-80GB or H100-NVL?"),
        (["--gpus", "8xH100-80G"], "--gpus: 'H100-80G' is no GPU of the hardware table: did you mean 'H100-80GB'"),
        (["--model-config", "/nowhere/config.json"], "--model-config: /nowhere/config.json is no file"),
    ],
)
def test_wrong_options_of_plan_are_wrong_usage(call: Call, arguments: list[str], message: str) -> None:
    code, text = call("plan", *arguments)
    assert code == 2
    assert message in text


def test_a_gpu_that_the_node_does_not_have_is_a_problem(
    node: Node, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans.gpu_facts, "gather", lambda *arguments: {"gpus": []})
    code, found = plan(call, "main", "--model-config", str(node.stored / "config.json"))
    assert (code, found["problems"][0]["value"]) == (1, ["0"])
    assert "the node has no GPU '0'" in found["problems"][0]["message"]


def test_a_damaged_release_is_a_problem_of_its_instance_alone(node: Node, call: Call) -> None:
    node.stage("side", "llama")
    (node.paths.release("side", 1) / releases.RELEASE_FILE).write_text("")
    code, found = plan(call)
    assert (code, [one["argv"] == [] for one in found["plans"]]) == (1, [False, True])
    assert found["plans"][1]["ok"] is False
    assert found["plans"][1]["problems"][0]["check"] == "release"
    assert "baremetal.inference.site stages anew" in call("plan", "side")[1]


def test_a_damaged_model_registry_is_named(node: Node, call: Call) -> None:
    node.paths.registry.write_text("[]")
    code, text = call("plan")
    assert (code, f"{node.paths.registry} is damaged: run baremetal.inference.site, which writes it anew" in text) == (
        1,
        True,
    )


def test_a_model_is_planned_over_several_nodes_like_this_one(call: Call) -> None:
    _code, found = plan(call, "llama", "--nodes", "3", "--gpus", "1xL4")
    assert (found["nodes"], found["rank"], len(found["devices"])) == (3, 0, 1)
    assert found["argv"][-2:] == ["--pipeline-parallel-size", "3"]
    assert any(
        "tensor-parallel-size: 3 is not possible: the size does not divide the model's 32 attention heads" in one
        for one in found["notes"]
    )
    assert "L4 on each of 3 nodes" in call("plan", "llama", "--nodes", "3", "--gpus", "1xL4")[1]
    for words in (("--nodes", "2", "main"), ("main", "--nodes", "2")):
        _code, found = plan(call, *words, "--", "--tensor-parallel-size", "3")
        assert found["problems"][0]["key"] == "nodes"


@pytest.mark.parametrize("nodes", ["0", "-1", "65"])
def test_an_impossible_number_of_nodes_is_wrong_usage(nodes: str, call: Call) -> None:
    code, text = call("plan", "llama", f"--nodes={nodes}")
    assert (code, "--nodes" in text) == (2, True)
