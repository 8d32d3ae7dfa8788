# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the engines of a snapshot need, and the node does not have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.backup import serving
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Settings, render
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored_model import StoredModel

MODELS = {"base": {"model": "https://models.example.com/a.tar"}, "bot": {"base": "base"}, "x": {"model": "/x"}}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A snapshot with an active release, and a damaged release."""
    saved = tmp_path / "saved"
    release: dict[str, Any] = {
        "instance": "main",
        "number": 3,
        "model": "bot",
        "revision": "0123456789ab",
        "model_path": "/mnt/models/bot/0123456789ab",
        "image": "vllm@sha256:00",
        "port": 5005,
        "accelerator": "cpu",
        "settings": {"uid": 999, "gid": 997},
    }
    for name, text in (("main", json.dumps(release)), ("torn", "{")):
        directory = saved / f"var/lib/inference/releases/{name}/3"
        directory.mkdir(parents=True)
        (directory / "release.json").write_text(text)
        (directory.parent / "active").symlink_to("3")
    (saved / "etc/inference").mkdir(parents=True)
    (saved / "etc/inference/registry.json").write_text(json.dumps({"schema": 1, "models": MODELS}))
    return saved


def same(uid: int, gid: int) -> tuple[int, int]:
    return uid, gid


def test_a_damaged_release_is_left_out(saved: Path, tmp_path: Path) -> None:
    (found,) = serving.served(saved)
    assert (found.instance, found.release, found.port, found.user) == ("main", 3, 5005, (999, 997))
    assert serving.registry(saved) == MODELS and serving.registry(tmp_path) == {}


def test_the_user_of_an_old_release_is_read_from_its_argv(saved: Path) -> None:
    stored = StoredModel("/mnt/models/bot/0123456789ab", "0123456789ab")
    instance = Instance(name="main", model="bot", port=5005, accelerator="cpu")
    written = json.loads(
        render(instance, [], stored, "vllm@sha256:00", Settings(uid=998, gid=996), number=3).release.to_json()
    )
    for name in ("flags", "arguments", "settings"):
        del written[name]
    (saved / "var/lib/inference/releases/main/3/release.json").write_text(json.dumps(written))
    (found,) = serving.served(saved)
    assert (found.instance, found.user) == ("main", (998, 996))


def test_an_absent_model_is_listed_with_its_base(saved: Path, tmp_path: Path) -> None:
    wanted = serving.served(saved)
    assert serving.absent(wanted, tmp_path) == wanted
    assert serving.entries(wanted, MODELS) == {"base": MODELS["base"], "bot": MODELS["bot"]}
    assert serving.entries(wanted, {}) == {}
    (tmp_path / "mnt/models/bot/ffffffffffff").mkdir(parents=True)
    (problem,) = serving.problems(wanted, tmp_path, MODELS, same)
    assert "main needs /mnt/models/bot/0123456789ab" in problem
    assert "the store has: ffffffffffff" in problem and "https://models.example.com/a.tar" in problem
    (problem,) = serving.problems(wanted, tmp_path, {}, same)
    assert "Neither the model registry in the snapshot nor the inventory has" in problem


def test_an_account_with_another_number_is_a_problem(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "mnt/models/bot/0123456789ab").mkdir(parents=True)
    wanted = serving.served(saved)
    assert serving.problems(wanted, tmp_path, MODELS, same) == []
    (problem,) = serving.problems(wanted, tmp_path, MODELS, lambda _uid, gid: (1000, gid))
    assert (
        problem.startswith("main runs as 999:997")
        and "has the numbers 1000:997 on this node" in problem
        and "usermod" in problem
    )


def test_an_absent_adapter_is_listed_with_its_base(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "mnt/models/bot/0123456789ab").mkdir(parents=True)
    file = saved / "var/lib/inference/releases/main/3/release.json"
    path = "/mnt/models/legal/ba9876543210"
    file.write_text(json.dumps({**json.loads(file.read_text()), "lora": {"legal": path}}))
    models = {"bot": {"model": "/srv/bot"}, "legal": {"base": "bot", "adapter": "org/legal"}}
    wanted = serving.served(saved)
    assert serving.absent(wanted, tmp_path) == wanted and serving.entries(wanted, models) == models
    (problem,) = serving.problems(wanted, tmp_path, models, same)
    assert f"main needs {path}, revision ba9876543210 of legal" in problem and "The source org/legal has" in problem
    (tmp_path / path[1:]).mkdir(parents=True)
    assert serving.absent(wanted, tmp_path) == []
