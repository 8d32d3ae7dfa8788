# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook plan on the controller alone: which GPUs a model registry needs, and all of its mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.baremetal.inference.plugins.module_utils.models.config import facts

ROOT = Path(__file__).parents[3]

PUBLISHED = ROOT / "tests/unit/plugins/module_utils/models/data/models.json"


def planned(stage: Any, registry: dict[str, Any], **variables: Any) -> tuple[bool, str]:
    """Whether the play succeeded, and what was printed, for a model registry that is written to a file."""
    play = yaml.safe_load((ROOT / "playbooks/plan.yml").read_text(encoding="utf-8"))[0]
    file = stage.home / "models.yml"
    file.write_text(yaml.safe_dump({"models": registry}))
    config = json.loads(PUBLISHED.read_text())["qwen3-8b"]["config"]
    answer = {
        "facts": {"chat": facts.from_config(config).to_dict()},
        "unknown": {"gone": "the hub has no such commit"},
        "changed": False,
    }
    extra = json.dumps({"registry": str(file), **variables})
    done, said = stage.run([play], "localhost", "--extra-vars", extra, seen=[({"module": "model_facts"}, answer)])
    return bool(done), str(said)


CHAT = {"model": "org/chat", "revision": "0" * 40}


@pytest.mark.once
def test_the_plan_reports_what_each_model_needs_and_fails_with_all_mistakes(staged: Any) -> None:
    stage = staged(["model_facts"])
    done, said = planned(stage, {"chat": CHAT, "gone": {**CHAT, "model": "org/gone"}})
    assert done, said
    assert "chat: org/chat" in said and "1 x L4" in said
    assert "unknown the model: the hub has no such commit" in said.replace("\\n", " ").replace("  ", " ")
    (call,) = stage.calls(module="model_facts")
    assert set(call["models"]) == {"chat", "gone"}

    wrong = {
        "chat": {**CHAT, "max-model-lenn": 8192},
        "cloud": {"model": "s3://bucket/name"},
        "gpus": {**CHAT, "gpus": 2},
    }
    done, said = planned(stage, wrong, gpus="1xH100-80GB")
    assert not done
    for words in (
        "did you mean 'max-model-len'?",
        "models.cloud: model: 's3://bucket/name': must be controller:/absolute/path",
        "set it in the instance",
        "names every mistake. Correct them, then plan again",
    ):
        assert words in said, (words, said)
