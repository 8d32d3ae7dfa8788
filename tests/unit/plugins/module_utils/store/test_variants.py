# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variants in the store: what is published, and what counts as damage."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import gather
from ansible_collections.baremetal.inference.plugins.module_utils.models.manifest import find_files
from ansible_collections.baremetal.inference.plugins.module_utils.store import variants
from ansible_collections.baremetal.inference.tests.unit.plugins.module_utils.store.variant_bed import Bed


@pytest.fixture
def bed(tmp_path: Path, write_model: Callable[..., Path]) -> Bed:
    return Bed(tmp_path, write_model)


def test_a_variant_links_to_the_weights_and_with_any_umask_all_users_can_read_its_files(bed: Bed) -> None:
    os.umask(0o077)
    try:
        variants.publish(bed.root, bed.variant)
    finally:
        os.umask(0o022)
    assert variants.damage(bed.path, bed.variant) == []
    shard = bed.path / "model-00001-of-00002.safetensors"
    assert shard.is_symlink()
    assert shard.resolve() == bed.base / shard.name
    assert not os.readlink(shard).startswith("/")
    assert (bed.path / "chat_template.jinja").read_text() == "wrapped"
    assert (bed.base / "chat_template.jinja").read_text() == "{{ messages[0].content }}"
    modes = {path.name: path.stat().st_mode & 0o777 for path in bed.path.rglob("*") if not path.is_symlink()}
    assert modes == {name: 0o755 if name == "templates" else 0o644 for name in modes}
    assert bed.path.stat().st_mode & 0o777 == 0o755
    assert list((bed.root / ".incoming").iterdir()) == []


@pytest.mark.parametrize(
    ("hurt", "message"),
    [
        (
            lambda path: (path / "chat_template.jinja").write_text("other"),
            "chat_template.jinja was altered",
        ),
        (lambda path: (path / "system_prompt.txt").unlink(), "system_prompt.txt was altered"),
        (lambda path: (path / "manifest.json").write_text("{"), "manifest.json was altered"),
        (lambda path: (path / "config.json").unlink(), "config.json is not a link to ../../base/"),
        (lambda path: (path / "stray.py").write_text(""), "stray.py does not belong there"),
    ],
)
def test_an_altered_file_of_a_variant_is_damage_and_is_replaced(
    bed: Bed, hurt: Callable[[Path], None], message: str
) -> None:
    variants.publish(bed.root, bed.variant)
    hurt(bed.path)
    (found,) = variants.damage(bed.path, bed.variant)
    assert message in found
    variants.publish(bed.root, bed.variant)
    assert variants.damage(bed.path, bed.variant) == []
    assert [path.name for path in bed.path.parent.iterdir()] == [bed.variant.revision]


def test_a_file_in_the_place_of_a_link_is_damage(bed: Bed) -> None:
    """The file may equal the base's file now, but a repair of the base would not change it."""
    variants.publish(bed.root, bed.variant)
    link = bed.path / "config.json"
    text = link.read_text()
    link.unlink()
    link.write_text(text)
    assert len(variants.damage(bed.path, bed.variant)) == 1


def test_an_interrupted_publication_is_no_revision(bed: Bed) -> None:
    incoming = bed.root / ".incoming" / f"bot-{bed.variant.revision}"
    incoming.mkdir(parents=True)
    (incoming / "config.json").write_text("half")
    assert not bed.path.exists()
    variants.publish(bed.root, bed.variant)
    assert variants.damage(bed.path, bed.variant) == []


def test_the_facts_of_a_variant_are_those_of_its_base(bed: Bed) -> None:
    variants.publish(bed.root, bed.variant)
    facts, base = gather(bed.path), gather(bed.base)
    assert facts.problems == ()
    assert facts.weights == base.weights
    assert (facts.revision, facts.chat_template) == (bed.variant.revision, "chat_template.jinja")


@pytest.mark.parametrize(
    "base",
    [
        {"name": "..", "revision": "0" * 12},
        {"name": "base", "revision": "../../../etc"},
        {"name": "other", "revision": "0" * 12},
        "base",
    ],
)
def test_a_link_that_does_not_lead_to_the_base_is_a_problem(bed: Bed, base: object) -> None:
    variants.publish(bed.root, bed.variant)
    (bed.path / "model_info.json").write_text(json.dumps({"base": base}))
    _files, problems = find_files(bed.path, "model")
    assert "is a link that leaves" in str(problems[0])


def test_a_model_whose_files_show_that_it_cannot_have_a_prompt_is_refused(bed: Bed, tmp_path: Path) -> None:
    source = tmp_path / "source"
    assert variants.check_model(bed.entry, source) == []
    (source / "config.json").write_text('{"model_type": "gpt_oss", "architectures": ["GptOssForCausalLM"]}')
    (problem,) = variants.check_model(bed.entry, source)
    assert "let the clients send the prompt" in problem.message
    (source / "config.json").write_text('{"architectures": "no list"}')
    (source / "chat_template.jinja").unlink()
    (problem,) = variants.check_model(bed.entry, source)
    assert str(problem).startswith("models.bot: the model has no chat template")


def test_a_damaged_base_is_an_error(bed: Bed) -> None:
    (bed.base / "manifest.json").write_text("{}")
    with pytest.raises(InputError, match=r"models\.bot: .*/manifest\.json cannot be used"):
        variants.read_base(bed.entry, bed.base)
