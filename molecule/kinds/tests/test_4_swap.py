# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Swaps of engines of several tasks, under load, with golden prompts."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import pytest
from load import Load, Shape
from node import Node, playbook
from pooling_load import Asked, PoolingLoad
from talk import sound

UPDATE = "baremetal.inference.update_model"

KEY = "kinds-client-key-71c2"

TEXTS = ("The cat sat on the mat.", "The cat sat on the mat!", "9475 0023 1187")

ENGINES = {"embed": "tiny-embed", "rank": "tiny-score"}
"""The models by instance."""

NAMES = {"tiny-legal": ("I am tiny-legal",), "tiny-medical": ("I am tiny-medical",), "main": ("I am tiny-",)}
"""The beginning of each right answer, by name. For `main`, the base, any model may answer: in a batch with requests for
an adapter, vLLM's kernels for the CPU let this adapter answer for the base."""


def is_vector(answer: dict[str, Any]) -> bool:
    (item,) = answer["data"]
    return len(item["embedding"]) == 128 and math.isclose(math.hypot(*item["embedding"]), 1, abs_tol=1e-3)


def is_ranking(answer: dict[str, Any]) -> bool:
    scores = [item["relevance_score"] for item in answer["results"]]
    return len(scores) == 2 and scores == sorted(scores, reverse=True)


def load(node: Node) -> PoolingLoad:
    asked = {
        "embed": Asked("/v1/embeddings", {"input": TEXTS[0], "encoding_format": "float"}, is_vector),
        "rank": Asked("/v1/rerank", {"query": TEXTS[0], "documents": TEXTS[1:]}, is_ranking),
    }
    return PoolingLoad(f"http://{node.address}:8000", asked, clients=2, key=KEY)


def ranked(node: Node) -> list[str]:
    """The documents by their scores, the best first."""
    status, answer = node.request("/v1/score", {"model": "rank", "text_1": TEXTS[0], "text_2": TEXTS[1:]}, 5007)
    assert status == 200, answer
    scores = [each["score"] for each in answer["data"]]
    return [TEXTS[1:][index] for index in sorted(range(2), key=scores.__getitem__, reverse=True)]


def active(node: Node) -> dict[str, int]:
    """The number of the active release, by instance."""
    found = json.loads(node.run("inferctl releases --json"))["instances"]
    return {
        instance["name"]: kept["release"]
        for instance in found
        for kept in instance["releases"]
        if "active" in kept["roles"]
    }


def updated(models: dict[str, Any], golden: dict[str, list[dict[str, Any]]], length: int) -> dict[str, Any]:
    """The registry with golden prompts and another length for these models, so that each gets a new release."""
    more = {name: {"max-model-len": length, "golden-prompts": golden[name]} for name in golden}
    return {**models, **{name: {**models[name], **flags} for name, flags in more.items()}}


@pytest.mark.full
def test_vectors_and_scores_are_swapped_without_a_failed_request(deb13: Node, models: dict[str, Any]) -> None:
    best, other = ranked(deb13)
    golden: dict[str, list[dict[str, Any]]] = {
        "tiny-embed": [{"prompt": TEXTS[0], "order": list(TEXTS[1:]), "dimension": 128, "norm": 1}],
        "tiny-score": [{"prompt": TEXTS[0], "order": [best, other]}, {"prompt": TEXTS[0], "label": "LABEL_0"}],
    }
    before = active(deb13)
    report = load(deb13).during(
        lambda: playbook("deb13", name=UPDATE, models=updated(models, golden, 256)), seconds_after=5
    )
    assert not report.failures, report
    assert min(report.texts[name] for name in ENGINES) > 5, report
    after = active(deb13)
    assert all(after[name] > before[name] for name in ENGINES)

    # A swap to a release with wrong answers goes back, and no request fails.
    golden["tiny-embed"][0]["dimension"] = 127
    golden["tiny-score"][0]["order"].reverse()
    said: list[str] = []
    report = load(deb13).during(
        lambda: said.append(playbook("deb13", check=False, name=UPDATE, models=updated(models, golden, 128)))
    )
    assert not report.failures, report
    assert active(deb13) == after
    # The run ends at the first instance whose swap goes back.
    assert "has a vector of 128 numbers instead of 127" in said[0] or "does not order the texts as given" in said[0]


@pytest.mark.full
def test_two_adapters_and_their_base_are_swapped_at_once(deb13: Node, models: dict[str, Any]) -> None:
    shapes = (Shape(True, 20), Shape(False, 20))
    load = Load(f"http://{deb13.address}:8000", tuple(NAMES), 3, KEY, shapes, answers=NAMES, pause_seconds=0.5)
    before = active(deb13)
    longer = {**models, "tiny-a": {**models["tiny-a"], "max-model-len": 384}}
    report = load.during(lambda: playbook("deb13", name=UPDATE, models=longer, instance="main"), seconds_after=10)
    assert not report.failures, report
    assert all(report.texts[right] > 5 for (right,) in NAMES.values()), report
    after = active(deb13)
    assert after["main"] > before["main"] and all(after[name] == before[name] for name in ENGINES)
    # Alone, the base answers as itself.
    assert [deb13.ask(name) for name in NAMES] == ["I am tiny-legal.", "I am tiny-medical.", "I am tiny-a."]


@pytest.mark.full
def test_a_golden_prompt_with_audio_decides_a_swap(deb13: Node, models: dict[str, Any]) -> None:
    file = "/srv/golden-talk.wav"
    deb13.run(f"echo {base64.b64encode(sound()[1]).decode()} | base64 --decode > {file}")
    speech = {"max-model-len": 440, "golden-prompts": [{"audio": file, "expect": "I am tiny-speech", "language": "en"}]}
    before = active(deb13)["speech"]
    playbook("deb13", name=UPDATE, models={**models, "tiny-speech": {**models["tiny-speech"], **speech}})
    after = active(deb13)["speech"]
    assert after > before

    speech = {"max-model-len": 432, "golden-prompts": [{"audio": file, "expect": "another answer", "language": "en"}]}
    said = playbook(
        "deb13", check=False, name=UPDATE, models={**models, "tiny-speech": {**models["tiny-speech"], **speech}}
    )
    assert "in which 'another answer' does not occur" in said
    assert active(deb13)["speech"] == after

    deb13.run(f"rm {file}")
    said = playbook(
        "deb13", check=False, name=UPDATE, models={**models, "tiny-speech": {**models["tiny-speech"], **speech}}
    )
    assert f"{file}': is a golden prompt, and on this node the file does not exist" in said
