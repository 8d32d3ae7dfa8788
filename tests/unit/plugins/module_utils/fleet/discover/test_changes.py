# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A discovery with the inventory of an earlier discovery."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover.changes import (
    compare,
    hosts,
    missing,
    variables,
)
from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover.inventory import Options, discover
from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover.record import UNREAD

Results = Callable[..., dict[str, Any]]


def write(out: Path, files: dict[str, str]) -> None:
    for path, content in files.items():
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (out / path).write_text(content)


def test_a_second_discovery_finds_nothing_new(tmp_path: Path, results: Results) -> None:
    found = discover({"a": results("l40s"), "b": results("none", 12)}, Options())
    assert missing(tmp_path, found) == found.files
    write(tmp_path, found.files)
    assert compare(tmp_path, found) == [] and missing(tmp_path, found) == {}
    assert hosts(tmp_path / "hosts.yml") == {"l40s-11": "10.0.0.11", "none-12": "10.0.0.12"}
    assert list(missing(tmp_path, found, again=True)) == [
        "host_vars/l40s-11/discovered.yml",
        "host_vars/none-12/discovered.yml",
    ]


def test_a_record_of_another_form_counts_as_empty(tmp_path: Path, results: Results) -> None:
    found = discover({"a": results("l40s")}, Options())
    write(tmp_path, {**found.files, "host_vars/l40s-11/discovered.yml": "discovered: a text\n"})
    assert "l40s-11: hostname was None, is l40s-11" in compare(tmp_path, found)


def test_new_lost_and_changed_machines_get_lines(tmp_path: Path, results: Results) -> None:
    write(tmp_path, discover({"a": results("l40s"), "b": results("none", 12)}, Options()).files)
    main = tmp_path / "group_vars/inference/main.yml"
    main.write_text(main.read_text().replace("'580'", "'570'"))
    (tmp_path / "group_vars/all/decide.yml").unlink()
    later = discover({"a": results("l40s", disks=[]), "c": results("l40s", 13)}, Options())
    lines = compare(tmp_path, later)
    assert "l40s-11: nvidia_driver_version is '570' in the inventory, this discovery proposes '580'" in lines
    assert "l40s-11: disks: /dev/disk/by-id/nvme-a is gone (blank)" in lines
    assert "l40s-13: is new: add this machine to hosts.yml. Its files are in host_vars/l40s-13" in lines
    assert lines[-1] == "not looked at, or no answer: none-12"
    # The operator has answered the questions and removed decide.yml: the file does not come back.
    assert list(missing(tmp_path, later)) == ["host_vars/l40s-13/main.yml", "host_vars/l40s-13/discovered.yml"]


def test_only_new_machines_get_files(tmp_path: Path, results: Results) -> None:
    found = discover({"a": results("l40s"), "b": results("l40s", 12)}, Options())
    write(tmp_path, found.files)
    own = tmp_path / "host_vars/l40s-11"
    # The operator keeps the variables of a machine in another file of the directory, or in a single file.
    (own / "main.yml").rename(own / "own.yml")
    (tmp_path / "host_vars/l40s-12/main.yml").rename(tmp_path / "host_vars/l40s-12.yml")
    (tmp_path / "host_vars/l40s-12/discovered.yml").unlink()
    (tmp_path / "host_vars/l40s-12").rmdir()
    assert missing(tmp_path, found) == {}
    assert "host_vars/l40s-12/discovered.yml" in missing(tmp_path, found, again=True)
    # A machine that the operator has added to hosts.yml before the discovery is new as well.
    (tmp_path / "host_vars/l40s-12.yml").unlink()
    assert list(missing(tmp_path, found)) == ["host_vars/l40s-12/main.yml", "host_vars/l40s-12/discovered.yml"]


def test_encrypted_files_and_values_are_no_obstacle(tmp_path: Path) -> None:
    write(tmp_path, {"vault.yml": "$ANSIBLE_VAULT;1.1;AES256\n6162\n", "own.yml": "a: !vault |\n  x\nb: 1\n"})
    assert variables(tmp_path) == {"a": UNREAD, "b": 1}
    assert variables(tmp_path / "none") == {}


def test_an_encrypted_variable_is_no_difference(tmp_path: Path, results: Results) -> None:
    found = discover({"a": results("l40s")}, Options())
    write(tmp_path, found.files)
    own = tmp_path / "host_vars/l40s-11/own.yml"
    own.write_text("nvidia_driver_version: !vault |\n  x\ncommon_disks: [{devices: !vault x}]\n")
    assert compare(tmp_path, found) == []


@pytest.mark.parametrize("content", [b"a: [", b"# M\xfcller\na: 1\n", b"a: 1\n---\nb: 2\n"])
def test_a_file_that_is_no_yaml_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "main.yml").write_bytes(content)
    with pytest.raises(ValueError, match=f"^{tmp_path}/main.yml is no YAML in UTF-8: correct the file "):
        variables(tmp_path)


def test_groups_of_another_form_have_no_hosts(tmp_path: Path) -> None:
    text = "a: {hosts: [b, c]}\nd: {hosts: {e: f, g: {ansible_host: h}}, children: [i]}\nj: k\n"
    (tmp_path / "hosts.yml").write_text(text)
    assert hosts(tmp_path / "hosts.yml") == {"e": "e", "g": "h"}
