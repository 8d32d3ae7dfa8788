# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan on a node that serves, by the playbook and by inferctl, with and without mistakes. Nothing changes."""

from __future__ import annotations

import json
import re
from typing import Any

from node import Node, changes, playbook

PLAN = "baremetal.inference.plan"


def plan(node: Node, check: bool = True, **extra: Any) -> dict[str, Any]:
    """The JSON that plan.yml prints for the node."""
    output = playbook(node.name, name=PLAN, check=check, format="json", **extra)
    assert changes(output) == 0
    (message,) = re.findall(r'^    "msg": (.*)$', output, re.MULTILINE)[:1]
    return dict(json.loads(json.loads(message)))


def test_running_instances_fit_and_would_not_change(node: Node) -> None:
    found = plan(node)
    assert (found["ok"], found["problems"], found["node"]) == (True, [], node.name)
    assert {each["instance"]: each["change"]["action"] for each in found["plans"]} == {"main": "none", "office": "none"}
    for each in found["plans"]:
        assert each["estimate"]["kv_cache_gib"] == 1.0
        running = json.loads(node.run(f"docker inspect --format '{{{{json .Args}}}}' vllm-{each['instance']}"))
        assert each["argv"] == ["vllm", *running]


def test_the_text_has_the_verdict_and_the_change_of_an_instance(node: Node) -> None:
    output = playbook(node.name, name=PLAN)
    assert "main: fits" in output
    assert "nothing: release" in output


def test_a_wrong_plan_names_every_problem_and_touches_nothing(node: Node) -> None:
    """The input has a length beyond the model's and a mistyped flag, and does not declare an instance of the node."""
    pids = [node.engine_pid(name) for name in ("main", "office")]
    models = {
        "tiny-a": {"model": "/srv/none", "dtype": "float32", "enforce-eager": True, "max-model-len": 99999},
        "tiny-pirate": {"base": "tiny-a", "system-prompt": "Other."},
        "typo": {"base": "tiny-a", "dtypee": "half"},
    }
    instances = [
        {"name": "main", "model": "tiny-pirate", "port": 5005, "accelerator": "cpu"},
        {"name": "third", "model": "typo", "port": 5007, "accelerator": "cpu"},
    ]
    found = plan(node, check=False, models=models, instances=instances)
    assert found["ok"] is False
    assert "models.typo: dtypee" in [problem["key"] for problem in found["problems"]]
    (main,) = found["plans"]
    (problem,) = main["problems"]
    assert (problem["check"], problem["fits"]) == ("max_model_len", [{"max-model-len": 8192}])
    assert main["change"]["action"] == "update"
    assert "office" in found["orphans"]
    assert [node.engine_pid(name) for name in ("main", "office")] == pids


def test_a_cut_shard_and_a_model_without_a_template_are_reported(node: Node) -> None:
    node.run("cp -r $(readlink -f /mnt/models/tiny-a/*/) /srv/cut && rm -f /srv/cut/manifest.json")
    node.run("rm -f /srv/cut/chat_template.jinja && truncate --size=-100 /srv/cut/model.safetensors")
    node.run('sed -i \'s/"chat_template"/"no_template"/\' /srv/cut/tokenizer_config.json')
    models = {"cut": {"model": "/srv/cut"}, "bot": {"base": "cut", "system-prompt": "Be kind."}}
    instances = [{"name": "third", "model": "bot", "port": 5007, "accelerator": "cpu"}]
    found = plan(node, check=False, models=models, instances=instances)
    problems = {(problem["check"], problem["key"]): problem["message"] for problem in found["plans"][0]["problems"]}
    assert problems["files", "model.safetensors"].startswith("is cut: expected "), problems
    assert any(
        check == "system-prompt" and "has no chat template" in message for (check, _key), message in problems.items()
    )
    output = node.site("--check", check=False, models=models, instances=instances)
    assert "the model has no chat template" in output
    node.run("rm -r /srv/cut")


def test_inferctl_makes_the_same_plan(node: Node) -> None:
    listed = {model["name"]: model for model in json.loads(node.run("inferctl models --json"))["models"]}
    assert listed["tiny-pirate"]["instances"] == ["main"]
    assert (listed["tiny-pirate"]["base"], listed["tiny-pirate"]["on_disk"]) == ("tiny-a", True)
    planned = json.loads(node.run("inferctl plan office --json"))
    assert (planned["ok"], planned["model"], planned["change"]["action"]) == (True, "tiny-clerk", "none")
    assert "vllm serve /run/fast/tiny-clerk/" in node.run("inferctl plan office")
    assert "known: main, office, tiny-a" in node.run("inferctl plan mian 2>&1", check=False)
    # A 70B model on one GPU of 24 GB.
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 8192, "head_dim": 128}
    config |= {"num_attention_heads": 64, "num_key_value_heads": 8, "num_hidden_layers": 80, "dtype": "bfloat16"}
    config |= {"intermediate_size": 28672, "vocab_size": 32000, "max_position_embeddings": 4096}
    node.run(f"cat > /tmp/config.json <<'END'\n{json.dumps(config)}\nEND")
    command = "inferctl plan --json --model-config /tmp/config.json --gpus 1xRTX-4090"
    planned = json.loads(node.run(command, check=False))
    assert (planned["ok"], [problem["check"] for problem in planned["problems"]]) == (False, ["weights"])
