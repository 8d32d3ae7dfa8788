# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module model_variants. The program that renders prompts runs in the test's process, not in a container."""

from __future__ import annotations

import errno
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import basic

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import gather
from ansible_collections.baremetal.inference.plugins.module_utils.models.prompts import command
from ansible_collections.baremetal.inference.plugins.module_utils.node.calls import model_variants
from ansible_collections.baremetal.inference.plugins.module_utils.store import variant_files, variants
from ansible_collections.baremetal.inference.plugins.module_utils.store.describe import build
from ansible_collections.baremetal.inference.plugins.module_utils.store.fast_copy import FastStore, Room
from ansible_collections.baremetal.inference.plugins.module_utils.store.hashes import HashCache
from ansible_collections.baremetal.inference.plugins.module_utils.store.store import Store

TEMPLATE = "{% for message in messages %}<{{ message.role }}>{{ message.content }}{% endfor %}"

RunModule = Callable[..., dict[str, Any]]


class Bed:
    """A source, a store with its model, and a fake Docker that has the engine's image or lacks it."""

    def __init__(self, root: Path, write_model: Callable[..., Path], run_module: RunModule) -> None:
        self._run = run_module
        self.paths = Paths(root)
        (self.paths.library / "models/prompts").mkdir(parents=True)
        self.store = root / "store"
        self.source = write_model(root / "source")
        (self.source / "chat_template.jinja").write_text(TEMPLATE)
        manifest, _problems = build(self.source, "base", HashCache())
        assert manifest
        wanted = Store(self.store, HashCache()).plan("base", manifest)
        Store(self.store, HashCache()).publish(wanted, self.source)
        self.base = wanted.path
        self.models: dict[str, Any] = {
            "base": {"model": f"controller:{self.source}"},
            "bot": {"base": "base", "system-prompt": "Be kind – 親切."},
        }
        self.instances = [{"name": "main", "model": "bot", "port": 5005}]
        self.image_is_there = True
        self.rendering: tuple[int, str, str] | None = None
        self.calls: list[list[str]] = []

    def docker(self, argv: list[str], data: str = "", **_more: Any) -> tuple[int, str, str]:
        self.calls.append(argv)
        if "inspect" in argv:
            return 0 if self.image_is_there else 1, "", ""
        if self.rendering:
            return self.rendering
        stdout = io.StringIO()
        command.main(io.StringIO(data), stdout)
        return 0, stdout.getvalue(), ""

    def run(self, check: bool = False, **arguments: Any) -> dict[str, Any]:
        given = {
            "instances": self.instances,
            "models": self.models,
            "store": str(self.store),
            "places": {"base": {"path": str(self.base), "revision": self.base.name}},
            "image": "registry.example.com/vllm@sha256:00",
            **arguments,
        }
        return self._run(model_variants, check, **given)

    def check(self, state: str = "checked", **arguments: Any) -> dict[str, Any]:
        """The check of the preflight, which has neither places nor image."""
        given = {"instances": self.instances, "models": self.models, **arguments}
        return self._run(model_variants, state=state, **given)


@pytest.fixture
def bed(
    tmp_path: Path,
    write_model: Callable[..., Path],
    run_module: RunModule,
    monkeypatch: pytest.MonkeyPatch,
) -> Bed:
    bed = Bed(tmp_path, write_model, run_module)
    monkeypatch.setattr(model_variants, "Paths", lambda: bed.paths)
    monkeypatch.setattr(basic.AnsibleModule, "get_bin_path", lambda module, name: "/usr/bin/docker")
    monkeypatch.setattr(basic.AnsibleModule, "run_command", bed.docker)
    return bed


def test_variants_are_published_once_as_check_mode_predicts(bed: Bed) -> None:
    predicted = bed.run(check=True)
    assert not (bed.store / "bot").exists()
    result = bed.run()
    # Only some versions of ansible-core return the arguments of the call.
    assert {**result, "invocation": None} == {**predicted, "invocation": None}
    assert result["changed"]
    (path,) = map(Path, result["published"])
    assert result["places"] == {"bot": {"path": str(path), "revision": path.name}}
    assert "<user>" not in (path / "chat_template.jinja").read_text().split(TEMPLATE)[0]
    assert (path / "system_prompt.txt").read_text() == "Be kind – 親切.\n"
    again = bed.run()
    assert (again["changed"], again["places"]) == (False, result["places"])


def test_the_container_that_renders_templates_has_neither_network_nor_capabilities_nor_writable_files(bed: Bed) -> None:
    bed.run()
    (argv,) = [argv for argv in bed.calls if "run" in argv]
    for option in ("--network none", "--cap-drop ALL", "--read-only", "--init", "--user=65534:65534", "--memory=2g"):
        assert option in " ".join(argv)
    assert [each for each in argv if each.startswith("--mount")] == [
        f"--mount=type=bind,source={bed.paths.library},target={bed.paths.library},readonly"
    ]
    compile(argv[-1], "code", "exec")
    assert argv[-2] == "-c"


def test_a_variant_on_the_fast_path_links_to_the_fast_copy_or_to_the_store(bed: Bed, tmp_path: Path) -> None:
    fast = FastStore(tmp_path / "fast", bed.store, HashCache())
    base = (bed.base.parent.name, bed.base.name)
    fast.apply(fast.outlook([base], {}, Room(0, 0)))
    predicted = bed.run(check=True, fast_path=str(fast.root))
    result = bed.run(fast_path=str(fast.root))
    assert predicted["published"] == result["published"]
    (path,) = [Path(path) for path in result["published"] if path.startswith(str(fast.root))]
    # `places` has the path in the store. The renderer of releases chooses the path for the engine.
    assert result["places"]["bot"]["path"] == str(bed.store / "bot" / path.name)
    shard = path / "model-00001-of-00002.safetensors"
    assert shard.resolve().is_relative_to(fast.root / ".copies" / "base")
    assert gather(path).problems == ()
    fast.drop(base)
    assert shard.resolve().is_relative_to(bed.base)
    assert gather(path).problems == ()
    assert not bed.run(fast_path=str(fast.root))["changed"]


def test_a_full_fast_disk_is_a_warning(bed: Bed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish = variants.publish

    def full(root: Path, wanted: variant_files.Variant) -> None:
        if root == tmp_path / "fast":
            raise OSError(errno.ENOSPC, "No space left on device")
        publish(root, wanted)

    monkeypatch.setattr(variants, "publish", full)
    result = bed.run(fast_path=str(tmp_path / "fast"))
    (path,) = [Path(path) for path in result["published"] if path.startswith(str(tmp_path / "fast"))]
    assert "No space left on device: the variant is served from the store" in str(result["warnings"])
    assert path.resolve() == bed.store / "bot" / path.name
    assert gather(path).problems == ()
    assert not bed.run(fast_path=str(tmp_path / "fast"))["changed"]


def test_a_damaged_variant_on_a_full_fast_disk_is_served_from_the_store(
    bed: Bed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = tmp_path / "fast"
    (path,) = [Path(one) for one in bed.run(fast_path=str(fast))["published"] if one.startswith(str(fast))]
    shard = path / "model-00001-of-00002.safetensors"
    shard.unlink()
    publish = variants.publish

    def full(root: Path, wanted: variant_files.Variant) -> None:
        if root == fast:
            raise OSError(errno.ENOSPC, "No space left on device")
        publish(root, wanted)

    with monkeypatch.context() as disk:
        disk.setattr(variants, "publish", full)
        bed.run(check=True, fast_path=str(fast))
        assert not path.is_symlink()
        result = bed.run(fast_path=str(fast))
        assert "No space left on device: the variant is served from the store" in str(result["warnings"])
        assert path.is_symlink() and path.resolve() == bed.store / "bot" / path.name
        assert [one.name for one in path.parent.iterdir()] == [path.name]
        assert not bed.run(fast_path=str(fast))["changed"]
    assert bed.run(fast_path=str(fast))["published"] == [str(path)]
    assert not path.is_symlink() and shard.is_symlink()


def test_a_variant_moves_from_the_store_to_the_fast_disk_when_the_disk_has_room_again(
    bed: Bed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = FastStore(tmp_path / "fast", bed.store, HashCache())
    fast.apply(fast.outlook([(bed.base.parent.name, bed.base.name)], {}, Room(0, 0)))
    with monkeypatch.context() as full:
        publish = variants.publish

        def refuse(root: Path, wanted: variant_files.Variant) -> None:
            if root == fast.root:
                raise OSError(errno.ENOSPC, "No space left on device")
            publish(root, wanted)

        full.setattr(variants, "publish", refuse)
        first = bed.run(fast_path=str(fast.root))
        assert not bed.run(fast_path=str(fast.root))["changed"]
    (path,) = [Path(path) for path in first["published"] if path.startswith(str(fast.root))]
    shard = path / "model-00001-of-00002.safetensors"
    assert path.is_symlink() and shard.resolve().is_relative_to(bed.base)
    predicted = bed.run(check=True, fast_path=str(fast.root))
    assert path.is_symlink()
    assert predicted["published"] == bed.run(fast_path=str(fast.root))["published"] == [str(path)]
    assert not path.is_symlink() and shard.resolve().is_relative_to(fast.root / ".copies" / "base")
    assert gather(path).problems == ()
    assert not bed.run(fast_path=str(fast.root))["changed"]


def test_check_mode_writes_nothing_to_a_fast_disk_that_cannot_be_read(
    bed: Bed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage = variants.damage

    def broken(path: Path, variant: variant_files.Variant) -> list[str]:
        if path.is_relative_to(tmp_path / "fast"):
            raise OSError(errno.EIO, "Input/output error")
        return damage(path, variant)

    monkeypatch.setattr(variants, "damage", broken)
    assert "the variant is served from the store" in str(
        bed.run(check=True, fast_path=str(tmp_path / "fast"))["warnings"]
    )
    assert not (tmp_path / "fast").exists()


def test_only_served_variants_are_published(bed: Bed) -> None:
    bed.models["idle"] = {"base": "base", "system-prompt": "Be idle."}
    bed.instances.append({"name": "gone", "model": "idle", "port": 5006, "state": "absent"})
    assert list(bed.run()["places"]) == ["bot"]


@pytest.mark.parametrize("missing", ["image", "library", "model"])
def test_check_mode_predicts_variants_without_image_library_or_model(bed: Bed, missing: str) -> None:
    if missing == "image":
        bed.image_is_there = False
    elif missing == "library":
        (bed.paths.library / "models/prompts").rmdir()
    else:
        (bed.base / "manifest.json").unlink()
    result = bed.run(check=True)
    assert (result["changed"], result["places"]["bot"]["revision"]) == (True, "REVISION")


def test_a_damaged_variant_is_named_and_repaired(bed: Bed) -> None:
    (path,) = map(Path, bed.run()["published"])
    (path / "chat_template.jinja").write_text("other")
    result = bed.run()
    assert result["changed"]
    assert "chat_template.jinja was altered" in str(result["warnings"])
    assert not bed.run()["changed"]


def test_a_template_that_takes_no_prompt_is_refused_before_anything_is_written(bed: Bed) -> None:
    (bed.base / "chat_template.jinja").write_text("{{ raise_exception('Closed') }}")
    result = bed.run()
    assert result["failed"]
    assert "models.bot: chat_template.jinja: does not render a single message of a user: Closed" in result["msg"]
    assert not (bed.store / "bot").exists()


@pytest.mark.parametrize("rendering", [(142, "", ""), (1, "", "Traceback\nImportError: x"), (0, "no JSON", "")])
def test_a_failed_container_is_an_error_with_its_exit_status(bed: Bed, rendering: tuple[int, str, str]) -> None:
    bed.rendering = rendering
    result = bed.run()
    assert f"could not put the prompt into the chat template (exit {rendering[0]}" in result["msg"]
    assert ("ImportError: x" in result["msg"]) is bool(rendering[2])


def test_all_mistakes_are_in_one_message(bed: Bed) -> None:
    (bed.base / "config.json").write_text('{"model_type": "gpt_oss"}')
    bed.models["bad/name"] = {"base": "base", "system-prompt": "Be kind."}
    bed.instances.append({"name": "two", "model": "bad/name", "port": 5006})
    message = bed.run()["msg"]
    assert "models.bot: system-prompt: the engine writes gpt-oss" in message.replace(": 'Be", "")
    assert "models.bad/name: cannot name a directory" in message


def test_preflight_refuses_by_the_files_of_the_source(bed: Bed) -> None:
    assert bed.check(origin="controller")["checked"] == ["bot"]
    assert bed.check(store=str(bed.store))["checked"] == []
    (bed.source / "chat_template.jinja").unlink()
    message = bed.check(origin="controller")["msg"]
    assert message.startswith("Nothing was changed. models.bot: the model has no chat template")


def test_preflight_reads_models_of_the_node_on_the_node(bed: Bed) -> None:
    bed.models["base"]["model"] = str(bed.source)
    assert bed.check(origin="controller")["checked"] == []
    assert bed.check()["checked"] == ["bot"]
    # The source is gone, but an earlier run has published its model.
    bed.models["base"]["model"] = "/gone"
    assert bed.check(store=str(bed.store))["checked"] == ["bot"]
    assert bed.check()["checked"] == []


def test_publishing_needs_store_places_and_image(bed: Bed) -> None:
    message = bed.check(state="published")["msg"]
    assert "state is published but all of the following are missing: store, places, image" in message
