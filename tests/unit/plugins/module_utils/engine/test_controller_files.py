# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of the controller that flags name: read, hashed, and refused where they cannot be copied."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine import controller_files
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.entries import OWN_KEYS

INSTANCES = [{"name": "main", "model": "bot", "port": 5005}]


def read(models: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return controller_files.read(models, INSTANCES)


def entry(**flags: Any) -> dict[str, Any]:
    return {"bot": {"model": "controller:/srv/weights", **flags}}


def test_a_file_and_a_directory_have_a_digest_of_their_content(tmp_path: Path) -> None:
    template, tokenizer = tmp_path / "chat.jinja", tmp_path / "tokenizer"
    template.write_text("{{ messages }}")
    (tokenizer / "deep").mkdir(parents=True)
    (tokenizer / "deep" / "tokenizer.json").write_text("{}")
    models = entry(**{"chat-template": f"controller:{template}", "tokenizer": f"controller:{tokenizer}"})
    found = read(models)
    assert found.keys() == {f"controller:{template}", f"controller:{tokenizer}"}
    one, two = found[f"controller:{template}"], found[f"controller:{tokenizer}"]
    assert (one["name"], one["source"], one["directory"]) == ("chat.jinja", str(template), False)
    assert (two["name"], two["source"], two["directory"]) == ("tokenizer", f"{tokenizer}/", True)
    assert read(models) == found
    template.write_text("other")
    (tokenizer / "deep" / "tokenizer.json").write_text("[]")
    changed = read(models)
    assert all(changed[text]["digest"] != found[text]["digest"] for text in found)


def test_a_path_in_an_object_that_is_a_text_is_read(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("x")
    text = f"controller:{tmp_path / 't'}"
    models = entry(
        **{"default-mm-loras": json.dumps({"image": text}), "chat-template": "{% for", "hf-overrides": "{" * 9}
    )
    assert list(read(models)) == [text]


def test_only_files_in_flags_of_models_that_instances_need_are_read(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("x")
    text = f"controller:{tmp_path / 't'}"
    models = {
        "base": {"model": "controller:/srv/weights", "default-mm-loras": {"image": text}},
        "bot": {"base": "base", "middleware": [text]},
        "other": {"model": "/a", "chat-template": "controller:/missing"},
    }
    assert list(read(models)) == [text]
    texts = {
        "system-prompt": text,
        "description": text,
        "warm-up-prompts": [text],
        "golden-prompts": [{"prompt": text}],
    }
    assert read(entry(**texts)) == {}, "prompts are no paths"
    assert OWN_KEYS.keys() > controller_files.NOT_FLAGS
    assert controller_files.read(models, []) == {}


def test_a_path_that_cannot_be_copied_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = f"controller:{tmp_path / 'missing'}"
    assert read(entry(tokenizer=missing)) == {
        missing: {"problem": "cannot be read on the controller: No such file or directory"}
    }
    (tmp_path / "a").write_text("x")
    monkeypatch.setattr(controller_files, "MOST_FILES", 0)
    assert "at most 0 files" in read(entry(tokenizer=f"controller:{tmp_path}"))[f"controller:{tmp_path}"]["problem"]


def test_a_directory_with_a_part_that_cannot_be_read_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tokenizer/deep").mkdir(parents=True)
    listed = os.scandir

    def scandir(path: Any) -> Any:
        if str(path).endswith("/deep"):
            raise PermissionError(13, "Permission denied")
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    text = f"controller:{tmp_path / 'tokenizer'}"
    assert read(entry(tokenizer=text)) == {text: {"problem": "cannot be read on the controller: Permission denied"}}
