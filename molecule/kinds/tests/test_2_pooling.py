# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Models that make vectors and scores, through the gateway."""

from __future__ import annotations

import json
import math
from typing import Any
from urllib.request import Request, urlopen

import openai
import pytest
from node import Node
from openai import OpenAI

KEY = "kinds-client-key-71c2"

TEXTS = ("The cat sat on the mat.", "The cat sat on the mat!", "9475 0023 1187")


def ask(node: Node, path: str, **body: Any) -> dict[str, Any]:
    """The gateway's answer to a request that the official client does not have."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
    request = Request(f"http://{node.address}:8000{path}", json.dumps(body).encode(), headers)
    with urlopen(request, timeout=60) as answer:
        return dict(json.load(answer))


def similarity(one: list[float], other: list[float]) -> float:
    """The cosine of the angle between two vectors of length 1."""
    return sum(a * b for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("name", ["embed", "tiny-embed"])
def test_texts_become_vectors(client: OpenAI, name: str) -> None:
    answer = client.embeddings.create(model=name, input=list(TEXTS))
    vectors = [each.embedding for each in answer.data]
    assert [len(vector) for vector in vectors] == [128] * 3
    assert all(math.isclose(similarity(vector, vector), 1, abs_tol=1e-3) for vector in vectors)
    assert similarity(vectors[0], vectors[1]) > similarity(vectors[0], vectors[2])
    assert client.embeddings.create(model=name, input=TEXTS[0]).data[0].embedding == pytest.approx(vectors[0], abs=1e-4)


def test_documents_are_ranked_by_their_scores(deb13: Node) -> None:
    documents = list(TEXTS[1:])
    scores = [
        each["score"] for each in ask(deb13, "/v1/score", model="rank", text_1=TEXTS[0], text_2=documents)["data"]
    ]
    ranked = ask(deb13, "/v1/rerank", model="tiny-score", query=TEXTS[0], documents=documents)["results"]
    best = max(range(2), key=scores.__getitem__)
    assert [each["index"] for each in ranked] == [best, 1 - best]
    assert ranked[0]["relevance_score"] == pytest.approx(scores[best], abs=1e-4)


def test_a_request_of_another_task_gets_an_error(client: OpenAI) -> None:
    with pytest.raises(openai.NotFoundError):
        client.completions.create(model="embed", prompt="Who", max_tokens=5)
    with pytest.raises(openai.NotFoundError):
        client.embeddings.create(model="main", input="Who")
    assert client.completions.create(model="main", prompt="Who", max_tokens=1).usage


def test_the_node_is_fit_to_serve(deb13: Node) -> None:
    """Each engine was probed by its own task: none of the three waits, or counts as ill."""
    found = {each["name"]: each for each in json.loads(deb13.run("inferctl status --json"))["instances"]}
    assert set(found) == {"main", "embed", "rank"}
    assert {each["probe"]["verdict"] for each in found.values()} == {"healthy"}
