# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The base of the parts of a node's settings: files that are written and restored, and units that are on."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian.node_settings import Node, Part, SettingsError


def node(root: Path, code: int = 0, output: str = "") -> Node:
    """A node on which every command has this exit code and output."""
    return Node(lambda _command, **_options: (code, output, ""), str, root)


def test_files_are_written_and_restored(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old\n")
    (tmp_path / "gone").write_text("gone\n")
    part = Part(node(tmp_path), {})
    for path, text in (("/old", "new\n"), ("/made", "made\n"), ("/gone", None), ("/absent", None)):
        part.want(path, text)
    assert [change.path.name for change in part.changes] == ["old", "made", "gone"]
    part.write()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"old": "new\n", "made": "made\n"}
    part.undo()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"old": "old\n", "gone": "gone\n"}


def test_bytes_that_are_not_utf_8_are_kept(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"# caf\xe9\nold\n")
    part = Part(node(tmp_path), {})
    part.want("/old", (part.node.read("/old") or "") + "new\n")
    part.write()
    assert (tmp_path / "old").read_bytes() == b"# caf\xe9\nold\nnew\n"
    part.undo()
    assert (tmp_path / "old").read_bytes() == b"# caf\xe9\nold\n"


@pytest.mark.parametrize(
    ("active", "file", "on"), [("active", "enabled", True), ("active", "disabled", False), ("inactive", "", False)]
)
def test_a_unit_is_on_if_it_runs_and_starts_at_boot(tmp_path: Path, active: str, file: str, on: bool) -> None:
    assert node(tmp_path, output=f"UnitFileState={file}\nActiveState={active}\n").on("x.service") is on


def test_a_failed_command_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"systemctl show .* failed \(1\): no bus"):
        node(tmp_path, 1, "no bus").started("x.service")


def test_a_missing_program_has_exit_code_127(tmp_path: Path) -> None:
    def absent(_command: list[str], **_options: bool) -> tuple[int, str, str]:
        raise FileNotFoundError("no such file")

    assert Node(absent, str, tmp_path).run("logrotate")[0] == 127
