# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Paths in flags: each reaches the container from the model's directory, the node or the controller, or is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine import flag_paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.flag_paths import (
    Copied,
    named,
    place,
    problems,
)
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Settings

SETTINGS = Settings(store_path="/mnt/models", fast_path="/mnt/nvme/models", cache_path="/mnt/cache")
MODEL = "/mnt/nvme/models/tiny/abc"
TEMPLATE = Copied("chat.jinja", "0123456789abcdef" * 4)
DIRECTORY = Copied("tokenizer", "fedcba9876543210" * 4, directory=True)
COPIED = {"controller:/srv/chat.jinja": TEMPLATE, "controller:/srv/tokenizer": DIRECTORY}


def said(flags: dict[str, Any], **more: Any) -> str:
    given = {"copied": COPIED, "settings": SETTINGS, "on_node": True, **more}
    return "\n".join(map(str, problems("models.tiny", flags, **given)))


@pytest.fixture
def engines_get_dev(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files in /dev are allowed: temporary directories may be in /dev/shm."""
    monkeypatch.setattr(flag_paths, "_PRIVATE", tuple(path for path in flag_paths._PRIVATE if path != "/dev"))


def test_each_path_gets_its_place_in_the_container() -> None:
    flags = {
        "chat-template": "controller:/srv/chat.jinja",
        "tokenizer": "controller:/srv/tokenizer",
        "generation-config": "generation",
        "tool-parser-plugin": "/srv/plugins/tool.py",
        "hf-config-path": "/mnt/models/other/abc",
        "structured-outputs-config": '{"backend": "auto", "reasoning_parser_plugin": "reason.py"}',
        "default-mm-loras": {"image": "/mnt/models/a/b", "audio": "sound"},
        "dtype": "half",
    }
    placed, mounts = place(flags, MODEL, COPIED, SETTINGS)
    assert placed == {
        "chat-template": "/var/lib/inference/files/0123456789abcdef/chat.jinja",
        "tokenizer": "/var/lib/inference/files/fedcba9876543210/tokenizer",
        "generation-config": f"{MODEL}/generation",
        "tool-parser-plugin": "/srv/plugins/tool.py",
        "hf-config-path": "/mnt/models/other/abc",
        "structured-outputs-config": {"backend": "auto", "reasoning_parser_plugin": f"{MODEL}/reason.py"},
        "default-mm-loras": {"image": "/mnt/models/a/b", "audio": f"{MODEL}/sound"},
        "dtype": "half",
    }
    assert mounts == [
        "/srv/plugins/tool.py",
        "/var/lib/inference/files/0123456789abcdef",
        "/var/lib/inference/files/fedcba9876543210",
    ]


@pytest.mark.parametrize(
    "flags",
    [
        {"chat-template": "{% for m in messages %}{{ m }}{% endfor %}"},
        {"chat-template": "line\nline"},
        {"generation-config": "vllm"},
        {"generation-config": "auto"},
        {"structured-outputs-config": "no JSON"},
        {"compilation-config": {"level": 3}},
        {},
    ],
)
def test_a_value_that_is_no_path_stays_as_it_is(flags: dict[str, Any]) -> None:
    assert list(named(flags)) == []
    assert place(flags, MODEL, {}, SETTINGS) == (flags, [])
    assert said(flags) == ""


def test_a_file_of_the_model_must_exist(tmp_path: Path) -> None:
    (tmp_path / "t.jinja").write_text("x")
    assert said({"chat-template": "t.jinja"}, model_files=tmp_path) == ""
    words = said({"chat-template": "u.jinja"}, model_files=tmp_path)
    assert words.startswith("models.tiny: chat-template: 'u.jinja': is not a file in the model's own directory")
    assert "controller:/PATH" in words and "hub" not in words
    # Before the model is on the node, its files are not checked.
    assert said({"chat-template": "u.jinja"}) == ""
    assert "engines are offline, so a hub's name does not work" in said({"tokenizer": "org/name"}, model_files=tmp_path)


@pytest.mark.usefixtures("engines_get_dev")
def test_a_path_of_the_node_must_exist_and_be_of_the_right_kind(tmp_path: Path) -> None:
    plugin = tmp_path / "plugin.py"
    plugin.write_text("")
    assert said({"tool-parser-plugin": str(plugin)}) == ""
    assert said({"allowed-local-media-path": str(tmp_path)}) == ""
    assert "is not a file on this node" in said({"tool-parser-plugin": str(tmp_path)})
    assert "is not a directory on this node" in said({"allowed-local-media-path": str(plugin)})
    words = said({"chat-template": "/vllm-workspace/examples/tool_chat_template.jinja"})
    assert "is not a file on this node, and a path in the image does not count" in words
    assert said({"chat-template": "/nowhere"}, on_node=False) == ""


@pytest.mark.parametrize(
    "path", ["/", "/etc/shadow", "/root/t", "/var/lib/docker/x", "/proc/1/environ", "/var", "/var/lib"]
)
def test_no_engine_gets_a_private_directory_of_the_node(path: str) -> None:
    assert "which no engine gets" in said({"allowed-local-media-path": path})


@pytest.mark.usefixtures("engines_get_dev")
def test_a_link_to_a_private_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").symlink_to("/run")
    assert "is in /run, which no engine gets" in said({"allowed-local-media-path": f"{tmp_path}/run"})


@pytest.mark.parametrize("path", ["../other/x", "/srv/../etc/x", "a,b", "controller:/a/../b"])
def test_a_path_with_dots_or_a_comma_is_refused(path: str) -> None:
    assert "must be a path without a comma" in said({"tokenizer": path})


def test_a_path_of_the_controller_must_be_readable_and_of_the_right_kind() -> None:
    assert said({"chat-template": "controller:/srv/chat.jinja", "tokenizer": "controller:/srv/tokenizer"}) == ""
    assert "must have an absolute path of the controller" in said({"chat-template": "controller:chat.jinja"})
    assert "was not read on the controller" in said({"chat-template": "controller:/srv/x"})
    broken = {"controller:/srv/x": Copied(problem="cannot be read on the controller: No such file")}
    assert "No such file" in said({"chat-template": "controller:/srv/x"}, copied=broken)
    assert "must be a file" in said({"chat-template": "controller:/srv/tokenizer"})
    assert "must be a directory" in said({"generation-config": "controller:/srv/chat.jinja"})


@pytest.mark.parametrize(
    ("flags", "place"),
    [
        ({"middleware": ["a.B", "controller:/srv/chat.jinja"]}, "middleware"),
        ({"ssl-certfile": "controller:/srv/chat.jinja"}, "ssl-certfile"),
        ({"speculative-config": {"model": "controller:/srv/chat.jinja"}}, "speculative-config"),
        ({"structured-outputs-config": '{"backend": "controller:/srv/chat.jinja"}'}, "structured-outputs-config"),
    ],
)
def test_a_flag_that_takes_no_path_gets_no_file_of_the_controller(flags: dict[str, Any], place: str) -> None:
    (words,) = said({**flags, "tokenizer": "controller:/srv/tokenizer"}).splitlines()
    assert words.startswith(
        f"models.tiny: {place}: 'controller:/srv/chat.jinja': is copied from the controller only for"
    )
    assert "chat-template, tokenizer" in words and "default-mm-loras" in words and "cache_dir" not in words


def test_a_path_that_the_engine_writes_must_be_in_its_cache() -> None:
    flags = {"mm-encoder-fp8-scale-save-path": "/srv/scales", "profiler-config": {"torch_profiler_dir": "/tmp/traces"}}
    words = said(flags)
    assert words.count("is written by the engine") == 1 and "/mnt/cache/INSTANCE" in words
    assert said({"compilation-config": {"cache_dir": "/mnt/cache/main/graphs"}}) == ""
    assert place(flags, MODEL, {}, SETTINGS) == (flags, [])


def test_all_mistakes_are_reported_at_once() -> None:
    assert (
        len(said({"chat-template": "controller:x", "tokenizer": "/nowhere", "tool-parser-plugin": "../x"}).splitlines())
        == 3
    )


def test_copied_files_are_read_from_the_filter() -> None:
    assert Copied.from_dict({"name": "a", "digest": "b", "directory": True}) == Copied("a", "b", True)
    assert Copied.from_dict({"problem": "why"}).problem == "why"


def test_an_object_that_is_nested_too_deeply_has_no_path() -> None:
    deep = "[" * 100_000
    assert list(named({"structured-outputs-config": deep})) == [] and said({"hf-overrides": deep}) == ""
