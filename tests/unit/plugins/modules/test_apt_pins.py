# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module apt_pins: its files, its holds, and what it refuses."""

from __future__ import annotations

import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.modules import apt_pins

PARAMS: dict[str, Any] = {
    "name": "docker",
    "packages": ["docker.io", "runc"],
    "pinned": ["docker.io"],
    "version": "26.1.5*",
}


class Node:
    """A node's packages, as dpkg knows them."""

    def __init__(self, etc: Path) -> None:
        self.etc = etc
        self.wants = {"docker.io": "install", "runc": "install"}
        self.code = 0
        for directory in ("preferences.d", "apt.conf.d"):
            (etc / directory).mkdir()

    def run_command(self, argv: list[str], data: str = "") -> tuple[int, str, str]:
        if argv[0] == "dpkg-query":
            known = "".join(f"{self.wants[name]} installed {name}\n" for name in argv[3:] if name in self.wants)
            return self.code, known, "dpkg's words"
        for line in data.splitlines():
            package, want = line.split()
            self.wants[package] = want
        return self.code, "", "dpkg's words"

    def apply(self, check: bool = False, **params: Any) -> dict[str, Any]:
        module: Any = SimpleNamespace(params={**PARAMS, **params}, check_mode=check, run_command=self.run_command)
        return apt_pins.Manager(module).apply()

    def files(self) -> dict[str, str]:
        return {str(path.relative_to(self.etc)): path.read_text() for path in self.etc.rglob("*") if path.is_file()}


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    monkeypatch.setattr(apt_pins, "ETC_APT", tmp_path)
    return Node(tmp_path)


def test_check_predicts_and_the_second_run_changes_nothing(node: Node) -> None:
    predicted = node.apply(check=True)
    assert node.files() == {} and node.wants["runc"] == "install"
    assert predicted == node.apply()
    assert predicted["changed"] and predicted["held"] == ["docker.io", "runc"]
    assert node.wants == {"docker.io": "hold", "runc": "hold"}
    files = node.files()
    assert "Package: docker.io\nPin: version 26.1.5*\nPin-Priority: 1001\n" in files["preferences.d/52-docker"]
    assert '"^docker\\.io$";' in files["apt.conf.d/52-docker"] and '"^runc$";' in files["apt.conf.d/52-docker"]
    assert node.apply() == {"changed": False, "held": [], "diff": []}


def test_everybody_may_read_the_files(node: Node) -> None:
    node.apply()
    assert {stat.S_IMODE((node.etc / name).stat().st_mode) for name in node.files()} == {0o644}


def test_what_somebody_edited_is_put_right(node: Node) -> None:
    node.apply()
    node.wants["runc"] = "install"
    (node.etc / "apt.conf.d/52-docker").write_text("")
    result = node.apply()
    assert result["held"] == ["runc"] and [d["after_header"][-20:] for d in result["diff"]] == [
        "/apt.conf.d/52-docker"[-20:]
    ]
    assert not node.apply()["changed"]


def test_a_pin_that_is_no_longer_declared_goes(node: Node) -> None:
    node.apply()
    assert node.apply(pinned=[])["changed"]
    assert list(node.files()) == ["apt.conf.d/52-docker"]


def test_a_package_that_is_not_there_is_not_held(node: Node) -> None:
    node.code = 1
    del node.wants["runc"]
    assert node.apply(check=True)["held"] == ["docker.io"]
    assert apt_pins.unheld(
        "install config-files a\nhold installed b\nunknown not-installed c\ninstall installed d\n"
    ) == ["d"]


def test_words_of_dpkg_are_told(node: Node) -> None:
    node.code = 2
    with pytest.raises(apt_pins.PinError, match="dpkg's words"):
        node.apply()


@pytest.mark.parametrize(
    ("params", "word"),
    [
        ({"name": "../x"}, "name"),
        ({"packages": ["docker.io", "a b"]}, "'a b'"),
        ({"packages": ["docker.io", 'x";\n']}, "package's name"),
        ({"pinned": ["runc", "other"]}, "'other'"),
        ({"version": ""}, "version ''"),
        ({"version": "*"}, "version '*'"),
        ({"version": "1\nPin: x"}, "version"),
    ],
)
def test_what_would_break_apt_is_refused(params: dict[str, Any], word: str) -> None:
    assert apt_pins.mistakes(**PARAMS) == []
    assert [word in text for text in apt_pins.mistakes(**{**PARAMS, **params})] == [True]
