# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The directory of a variant."""

from __future__ import annotations

import json
from pathlib import Path

from ansible_collections.baremetal.inference.plugins.module_utils.models.manifest import File, Manifest
from ansible_collections.baremetal.inference.plugins.module_utils.store import hashes, variant_files


def file(text: str) -> File:
    return File(len(text), text)


BASE = variant_files.Base(
    "qwen",
    Manifest(
        {
            "config.json": file("c"),
            "chat_template.jinja": file("t"),
            "a/b/model.safetensors": file("w" * 9),
            "system_prompt.txt": file("somebody's"),
        },
        weight_bytes=8,
    ),
)


def test_a_variant_has_few_files_of_its_own_and_links_to_the_other_files_of_its_base() -> None:
    bot = variant_files.plan("bot", BASE, "Be kind.\n\n", "always", {"chat_template.jinja": "<t>"})
    assert bot.files["system_prompt.txt"] == "Be kind.\n"
    assert json.loads(bot.files["model_info.json"]) == {
        "schema": 1,
        "name": "bot",
        "base": {"name": "qwen", "revision": BASE.manifest.revision},
        "system_prompt_policy": "always",
        "templates": ["chat_template.jinja"],
    }
    assert bot.links == {
        "config.json": f"../../qwen/{BASE.manifest.revision}/config.json",
        "a/b/model.safetensors": f"../../../../qwen/{BASE.manifest.revision}/a/b/model.safetensors",
    }
    assert set(bot.manifest.files) == {*bot.files, *bot.links}
    assert (bot.manifest.weight_bytes, bot.manifest.bytes > BASE.manifest.bytes) == (8, True)


def test_a_model_with_a_prompt_of_its_own_links_to_its_revision_without_prompt() -> None:
    own = variant_files.plan("qwen", BASE, "Be kind.", "default", {"chat_template.jinja": "<t>"})
    assert own.links["config.json"] == f"../{BASE.manifest.revision}/config.json"


def test_each_change_gives_another_revision() -> None:
    def revision(name: str = "bot", prompt: str = "p", policy: str = "default", text: str = "<t>") -> str:
        return variant_files.plan(name, BASE, prompt, policy, {"chat_template.jinja": text}).revision

    changed = {revision("b"), revision(prompt="q"), revision(policy="always"), revision(text="<u>")}
    revisions = {revision(), *changed}
    assert len({*revisions, BASE.manifest.revision}) == 6
    assert revision() in revisions


def test_the_written_files_have_the_hashes_of_the_manifest(tmp_path: Path) -> None:
    """Also after the store is moved, links resolve and every hash is right."""
    base_files = {"config.json": "{}", "sub/model.safetensors": "w", "chat_template.jinja": "é"}
    source = tmp_path / "source"
    for path, text in base_files.items():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_text(text)
    digests = hashes.HashCache().hashes([source / path for path in base_files])
    files = {path: File((source / path).stat().st_size, digests[source / path]) for path in base_files}
    base = variant_files.Base("qwen", Manifest(files, 1))
    bot = variant_files.plan("bot", base, "Sei nett – 日本", "default", {"chat_template.jinja": "<é>"})
    store = tmp_path / "store"
    (store / "qwen").mkdir(parents=True)
    source.rename(store / "qwen" / base.manifest.revision)
    root = store / "bot" / bot.revision
    for path, text in bot.files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode())
    for path, target in bot.links.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).symlink_to(target)
    store.rename(tmp_path / "elsewhere")
    root = tmp_path / "elsewhere" / "bot" / bot.revision
    found = hashes.HashCache().hashes([root / path for path in bot.manifest.files])
    assert {path: File((root / path).stat().st_size, found[root / path]) for path in bot.manifest.files} == dict(
        bot.manifest.files
    )
