# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tokens that the engine guesses, by words of the prompt or by a draft model; and an instance with an image of its own.

The file comes last, because the chat model loses its adapters here. The first of two updates lets the chat model guess
by words of the prompt, and gives `rank` another image. The second gives the chat model a draft, and takes the other
image away.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from engine_metrics import panels, read_by, totals
from node import CACHE, PROJECT, Node, changed_tasks, playbook, wait_for

UPDATE = "baremetal.inference.update_model"

RECORD = "instance:inference_draft_tokens_accepted:ratio_rate5m"

HOST: dict[str, Any] = yaml.safe_load((PROJECT / "molecule/kinds/hosts.yml").read_text())["inference"]["hosts"]["deb13"]

CHAT: dict[str, Any] = HOST["models"]["tiny-a"]

ANSWER = "I am tiny-a."

LABEL = "molecule.kinds"
"""The label of the other image."""


def instances(**own: str) -> list[dict[str, Any]]:
    """The instances of the inventory without images of their own. `own` are further keys of `rank`."""
    without = [{key: value for key, value in each.items() if key != "image"} for each in HOST["instances"]]
    return [{**each, **own} if each["name"] == "rank" else each for each in without]


def updated(node: Node, guess: dict[str, Any], declared: list[dict[str, Any]], **models: Any) -> dict[str, Any]:
    """Update `main`, which then guesses tokens in this way, and `rank`. Returns the input of the update."""
    kept = {name: entry for name, entry in HOST["models"].items() if "adapter" not in entry}
    chat = {**CHAT, "speculative-config": guess}
    given: dict[str, Any] = {"models": {**kept, "tiny-a": chat, **models}, "instances": declared}
    # `embed` and `speech` run releases of earlier files, and their swaps take minutes. No engine has a second replica.
    playbook("deb13", name=UPDATE, update_instances=["main", "rank"], allow_downtime=True, **given)
    return given


@pytest.fixture(scope="module")
def others(deb13: Node) -> dict[str, int]:
    """The engines that no update of this file swaps."""
    return {name: deb13.engine_pid(name) for name in ("embed", "speech")}


@pytest.fixture(scope="module")
def usual() -> str:
    """The image of all engines."""
    return str(json.loads((CACHE / "engine-image.json").read_text())["reference"])


@pytest.fixture(scope="module")
def other(usual: str) -> Iterator[str]:
    """The engine's image with one label more, in the tests' image registry."""
    tag = "127.0.0.1:5000/vllm-cpu:kinds"
    described = f"FROM inference-engine:cpu\nLABEL {LABEL}=other\n"
    argv = ["docker", "build", "--quiet", "--tag", tag, "-"]
    # BuildKit may be missing, so images/parts/tools.py builds without BuildKit, too.
    environment = {**os.environ, "DOCKER_BUILDKIT": "0"}
    subprocess.run(argv, input=described, text=True, capture_output=True, check=True, env=environment)
    try:
        said = subprocess.run(["docker", "push", tag], text=True, capture_output=True, check=True).stdout
        (digest,) = set(re.findall(r"sha256:[0-9a-f]{64}", said))
        yield f"{usual.partition('@')[0]}@{digest}"
    finally:
        subprocess.run(["docker", "image", "rm", tag], capture_output=True, check=True)


@pytest.fixture(scope="module")
def first(deb13: Node, others: dict[str, int], other: str) -> dict[str, Any]:
    """The input of the first update."""
    ngram = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 3}
    return updated(deb13, ngram, instances(image=other))


@pytest.fixture(scope="module")
def second(deb13: Node, first: dict[str, Any]) -> dict[str, Any]:
    """The input of the second update."""
    draft = {"model": "tiny-draft", "num_speculative_tokens": 3}
    # The same weights as the chat model, which accepts nearly each token.
    return updated(deb13, draft, instances(), **{"tiny-draft": {"model": CHAT["model"]}})


def guessed(node: Node) -> tuple[float, float]:
    """The accepted and all guessed tokens of the chat model, by the counters that the dashboard's rule reads."""
    names = read_by(RECORD)
    found = totals(node, 5005, names)
    assert len(found) == 2, f"the engine has other names for these counters: {names}"
    accepted, every = (found[name] for name in names)
    return accepted, every


def images(node: Node) -> dict[str, str]:
    """The image of each instance, as `inferctl status` reports. Each container runs it."""
    reported = {each["name"]: each["image"] for each in json.loads(node.run("inferctl status --json"))["instances"]}
    for name, image in reported.items():
        assert node.run(f"docker inspect --format '{{{{.Config.Image}}}}' vllm-{name}") == image
    return reported


def label(node: Node, instance: str) -> str:
    """The label of the other image on a container."""
    return node.run(f"docker inspect --format '{{{{index .Config.Labels \"{LABEL}\"}}}}' vllm-{instance}")


def scores(node: Node) -> bool:
    """Whether `rank` answers."""
    status, answer = node.request("/v1/score", {"model": "rank", "text_1": "a", "text_2": ["b"]}, 5007)
    return status == 200 and len(answer["data"]) == 1


@pytest.mark.full
def test_the_engine_guesses_tokens_by_words_of_the_prompt(deb13: Node, first: dict[str, Any]) -> None:
    assert deb13.ask() == ANSWER
    accepted, every = guessed(deb13)
    # The answer repeats words of the prompt. At its end, the engine guesses that the prompt's next words follow.
    assert deb13.ask(messages=[{"role": "user", "content": f"{ANSWER} {ANSWER}"}]) == ANSWER
    wait_for("tokens are guessed", lambda: guessed(deb13)[1] > every, 10)
    more = guessed(deb13)
    assert 0 < more[0] - accepted <= more[1] - every, (accepted, every, more)


@pytest.mark.full
def test_one_instance_runs_another_image(
    deb13: Node, first: dict[str, Any], others: dict[str, int], usual: str, other: str, tmp_path: Path
) -> None:
    assert other != usual
    assert images(deb13) == {"main": usual, "embed": usual, "rank": other, "speech": usual}
    assert label(deb13, "rank") == "other" and label(deb13, "embed") == ""
    assert scores(deb13)
    changed, _output = changed_tasks(deb13, tmp_path, **first)
    assert changed == set()
    assert {name: deb13.engine_pid(name) for name in others} == others


@pytest.mark.full
def test_a_draft_is_stored_and_its_tokens_are_accepted(deb13: Node, second: dict[str, Any]) -> None:
    assert "tiny-draft" in deb13.run("ls /mnt/models").split()
    assert "/tiny-draft/" in deb13.run("docker inspect --format '{{.Args}}' vllm-main")
    assert deb13.ask() == ANSWER
    accepted, every = guessed(deb13)
    assert 0.5 < accepted / every <= 1, (accepted, every)
    shown = [panel["title"] for panel in panels() if RECORD in json.dumps(panel.get("targets", []))]
    assert shown == ["Accepted tokens of the draft"]


@pytest.mark.full
def test_an_instance_without_its_own_image_runs_the_image_of_all_engines(
    deb13: Node, second: dict[str, Any], others: dict[str, int], usual: str
) -> None:
    assert images(deb13) == dict.fromkeys(("main", "embed", "rank", "speech"), usual)
    assert label(deb13, "rank") == ""
    assert scores(deb13)
    assert {name: deb13.engine_pid(name) for name in others} == others
