# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Models that make vectors and scores, through the gateway."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import openai
import pytest
import yaml
from node import PROJECT, Node, changes
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


def test_vectors_as_numbers_and_as_base64_are_the_same(client: OpenAI) -> None:
    # Without a format, the client asks for base64, and decodes the answer.
    default = client.embeddings.create(model="embed", input=TEXTS[0]).data[0].embedding
    numbers = client.embeddings.create(model="embed", input=TEXTS[0], encoding_format="float").data[0].embedding
    assert default == pytest.approx(numbers, abs=1e-6) and len(numbers) == 128
    used = client.embeddings.create(model="embed", input=TEXTS[0]).usage
    assert used.prompt_tokens == used.total_tokens > 0


def test_documents_are_ranked_by_their_scores(deb13: Node) -> None:
    documents = list(TEXTS[1:])
    scores = [
        each["score"] for each in ask(deb13, "/v1/score", model="rank", text_1=TEXTS[0], text_2=documents)["data"]
    ]
    ranked = ask(deb13, "/v1/rerank", model="tiny-score", query=TEXTS[0], documents=documents)["results"]
    best = max(range(2), key=scores.__getitem__)
    assert [each["index"] for each in ranked] == [best, 1 - best]
    assert ranked[0]["relevance_score"] == pytest.approx(scores[best], abs=1e-4)


PATHS = {
    "main": "Its task is generate. Paths: /v1/chat/completions, /v1/completions, /v1/responses",
    "embed": "Its tasks are embed, score. Paths: /v1/embeddings, /pooling, /v1/rerank, /v1/score",
    "speech": "Its task is transcribe. Paths: /v1/audio/transcriptions, /v1/audio/translations",
    "tiny-score": "Its tasks are score, classify. Paths: /v1/rerank, /v1/score, /classify, /pooling",
}
"""Words of the gateway's error for a request that no task of the model serves, by name."""


@pytest.mark.parametrize(
    ("name", "request_"),
    [
        ("embed", lambda client, name: client.completions.create(model=name, prompt="Who", max_tokens=5)),
        ("embed", lambda client, name: client.responses.create(model=name, input="Who")),
        ("tiny-score", lambda client, name: client.embeddings.create(model=name, input="Who")),
        ("main", lambda client, name: client.embeddings.create(model=name, input="Who")),
        ("speech", lambda client, name: client.completions.create(model=name, prompt="Who", max_tokens=5)),
        ("main", lambda client, name: client.audio.transcriptions.create(model=name, file=("a.wav", b"RIFF"))),
    ],
)
def test_a_request_of_another_task_gets_an_error(client: OpenAI, name: str, request_: Callable[..., Any]) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        request_(client, name)
    assert caught.value.code == "wrong_task"
    assert f"The model {name} does not answer at this path. {PATHS[name]}" in str(caught.value)
    assert client.completions.create(model="main", prompt="Who", max_tokens=1).usage


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/v1/rerank", "main"),
        ("/v1/score", "main"),
        ("/classify", "main"),
        ("/classify", "embed"),
        ("/pooling", "main"),
    ],
)
def test_a_path_that_the_official_client_does_not_have_gets_the_same_error(deb13: Node, path: str, name: str) -> None:
    with pytest.raises(HTTPError) as caught:
        ask(deb13, path, model=name, input="Who")
    error = json.load(caught.value)["error"]
    assert (caught.value.code, error["code"]) == (400, "wrong_task")
    assert PATHS[name] in error["message"]


def test_vectors_and_classes_have_paths_of_their_own(deb13: Node) -> None:
    (vector,) = ask(deb13, "/pooling", model="embed", input="Who")["data"]
    assert len(vector["data"]) == 128
    (found,) = ask(deb13, "/classify", model="rank", input="Who")["data"]
    assert found["label"] == "LABEL_0"


def test_audio_above_its_limit_is_refused_with_the_limit(client: OpenAI) -> None:
    """An engine transcribes, so that audio has a limit of its own."""
    with pytest.raises(openai.BadRequestError) as passed:
        client.audio.transcriptions.create(model="main", file=("a.wav", bytes(9 << 20)))
    assert passed.value.code == "wrong_task"
    with pytest.raises(openai.APIStatusError) as caught:
        client.audio.transcriptions.create(model="speech", file=("a.wav", bytes(26 << 20)))
    assert (caught.value.status_code, caught.value.code) == (413, "request_too_large")
    assert "The request with audio is larger than 25 MiB." in str(caught.value)


def test_golden_prompts_of_another_task_are_refused_at_once(deb13: Node) -> None:
    hosts = yaml.safe_load((PROJECT / "molecule/kinds/hosts.yml").read_text())
    models = hosts["inference"]["hosts"]["deb13"]["models"]
    wrong = {
        "tiny-a": {"prompt": TEXTS[0], "order": list(TEXTS[1:])},
        "tiny-embed": {"prompt": "Who are you?", "expect": "tiny"},
        "tiny-score": {"prompt": TEXTS[0], "dimension": 128},
    }
    registry = {**models, **{name: {**models[name], "golden-prompts": [item]} for name, item in wrong.items()}}
    output = deb13.site(check=False, models=registry)
    assert changes(output) == 0, output[-3000:]
    said = " ".join(output.replace("\\n", " ").split())
    for words in (
        "is a golden prompt for the task embed or score or reward, and the model's task is generate: "
        "use prompt and expect",
        "is a golden prompt for the task generate, and the model's tasks are embed, score: use order",
        "is a golden prompt for the task embed, and the model's tasks are score, classify: use order",
    ):
        assert words in said


def test_all_engines_are_healthy(deb13: Node) -> None:
    """The agent probes each of the four engines by the engine's own task."""
    found = {each["name"]: each for each in json.loads(deb13.run("inferctl status --json"))["instances"]}
    assert set(found) == {"main", "embed", "rank", "speech"}
    assert {each["probe"]["verdict"] for each in found.values()} == {"healthy"}
