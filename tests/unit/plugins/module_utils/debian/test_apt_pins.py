# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pins: their files, their holds, and parameters that are refused."""

from __future__ import annotations

import fnmatch
import stat
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian import apt_pins

PARAMS: dict[str, Any] = {
    "name": "docker",
    "packages": ["docker.io", "runc"],
    "pinned": ["docker.io"],
    "version": "26.1.5*",
    "versions": {},
}

UNCHANGED: dict[str, Any] = {"held": [], "released": [], "diff": []}


class Node:
    """A node's packages, as dpkg lists them."""

    def __init__(self, etc: Path) -> None:
        self.etc = etc
        self.wants = {"docker.io": "install", "runc": "install"}
        self.code = 0
        for directory in ("preferences.d", "apt.conf.d"):
            (etc / directory).mkdir()

    def run_command(self, argv: list[str], data: str = "") -> tuple[int, str, str]:
        if argv[0] == "dpkg-query":
            asked = [name for name in self.wants if any(fnmatch.fnmatchcase(name, item) for item in argv[3:] or ["*"])]
            return self.code, "".join(f"{self.wants[name]} installed {name}\n" for name in asked), "dpkg's words"
        for line in data.splitlines():
            package, want = line.split()
            self.wants[package] = want
        return self.code, "", "dpkg's words"

    def apply(self, check: bool = False, **params: Any) -> dict[str, Any]:
        coming = params.pop("coming", [])
        return apt_pins.Pins(self.run_command, {**PARAMS, **params}, check).apply(coming)

    def files(self) -> dict[str, str]:
        return {str(path.relative_to(self.etc)): path.read_text() for path in self.etc.rglob("*") if path.is_file()}


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    monkeypatch.setattr(apt_pins, "ETC_APT", tmp_path)
    monkeypatch.setattr(apt_pins, "PREFERENCES", tmp_path / "preferences.d")
    return Node(tmp_path)


def test_check_mode_predicts_the_changes_and_the_second_run_changes_nothing(node: Node) -> None:
    predicted = node.apply(check=True)
    assert node.files() == {} and node.wants["runc"] == "install"
    assert predicted == node.apply()
    assert predicted["diff"] and predicted["held"] == ["docker.io", "runc"]
    assert node.wants == {"docker.io": "hold", "runc": "hold"}
    files = node.files()
    assert "Package: docker.io\nPin: version 26.1.5*\nPin-Priority: 1001\n" in files["preferences.d/52-docker"]
    assert '"^docker\\.io$";' in files["apt.conf.d/52-docker"] and '"^runc$";' in files["apt.conf.d/52-docker"]
    assert node.apply() == UNCHANGED


def test_another_order_of_the_packages_changes_nothing(node: Node) -> None:
    both: dict[str, Any] = {"packages": ["docker.io", "runc"], "pinned": ["docker.io", "runc"]}
    assert node.apply(**both) != UNCHANGED
    assert node.apply(**{key: found[::-1] for key, found in both.items()}) == UNCHANGED


def test_all_users_may_read_the_files(node: Node) -> None:
    node.apply()
    assert {stat.S_IMODE((node.etc / name).stat().st_mode) for name in node.files()} == {0o644}


def test_an_edited_file_and_a_removed_hold_are_restored(node: Node) -> None:
    node.apply()
    node.wants["runc"] = "install"
    (node.etc / "apt.conf.d/52-docker").write_text("")
    result = node.apply()
    assert result["held"] == ["runc"] and [d["after_header"][-20:] for d in result["diff"]] == [
        "/apt.conf.d/52-docker"[-20:]
    ]
    assert node.apply() == UNCHANGED


def test_a_pin_that_is_no_longer_declared_is_removed(node: Node) -> None:
    node.apply()
    assert node.apply(pinned=[]) != UNCHANGED
    assert list(node.files()) == ["apt.conf.d/52-docker"]


def test_a_package_that_is_not_installed_is_not_held(node: Node) -> None:
    node.code = 1
    del node.wants["runc"]
    assert node.apply(check=True)["held"] == ["docker.io"]
    assert apt_pins.states(
        "install config-files a\nhold installed b\nunknown not-installed c\ninstall installed d\n"
    ) == {"b": True, "d": False}


def kernel(node: Node, packages: list[str], **options: Any) -> dict[str, Any]:
    return node.apply(name="kernel", packages=packages, pinned=[], version="", **options)


def test_a_package_that_a_wildcard_matches_is_held_even_if_installed_later(node: Node) -> None:
    node.wants["linux-image-6.1.0-50-amd64"] = "install"
    assert kernel(node, ["linux-image-*"])["held"] == ["linux-image-6.1.0-50-amd64"]
    assert kernel(node, ["linux-image-*"]) == UNCHANGED
    node.wants["linux-image-amd64"] = "install"
    assert kernel(node, ["linux-image-*"])["held"] == ["linux-image-amd64"]
    coming = ["linux-image-6.1.0-51-amd64=6.1", "linux-base"]
    assert kernel(node, ["linux-image-*"], check=True, coming=coming)["held"] == ["linux-image-6.1.0-51-amd64"]
    lines = apt_pins.listed((node.etc / "apt.conf.d/52-kernel").read_text())
    assert [
        bool(lines[0].match(name)) for name in ("linux-image-6.1.0-50-amd64", "linux-imagex", "my-linux-image-x")
    ] == [
        True,
        False,
        False,
    ]


def test_the_hold_of_a_package_that_is_no_longer_declared_is_removed(node: Node) -> None:
    node.wants |= {"linux-image-amd64": "install", "mine": "hold"}
    node.apply()
    kernel(node, ["linux-image-*", "runc"])
    predicted = kernel(node, [], check=True)
    assert node.wants["linux-image-amd64"] == "hold"
    assert predicted == kernel(node, [])
    # The holds of another set of pins and of the operator stay.
    assert predicted["released"] == ["linux-image-amd64"]
    assert node.wants == {"docker.io": "hold", "runc": "hold", "linux-image-amd64": "install", "mine": "hold"}
    assert sorted(node.files()) == ["apt.conf.d/52-docker", "preferences.d/52-docker"]
    assert kernel(node, []) == UNCHANGED


def test_each_package_may_have_its_own_version(node: Node) -> None:
    node.apply(versions={"runc": "1.1*"})
    assert node.files()["preferences.d/52-docker"].split("\n", 1)[1] == (
        "Package: docker.io\nPin: version 26.1.5*\nPin-Priority: 1001\n\n"
        "Package: runc\nPin: version 1.1*\nPin-Priority: 1001\n"
    )


def test_an_error_of_dpkg_is_reported(node: Node) -> None:
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
        ({"versions": {"other": "1*"}}, "'other'"),
        ({"versions": {"runc": "*"}}, "runc: '*'"),
    ],
)
def test_parameters_that_would_break_apt_are_refused(params: dict[str, Any], word: str) -> None:
    assert apt_pins.mistakes(**PARAMS) == []
    assert [word in text for text in apt_pins.mistakes(**{**PARAMS, **params})] == [True]


def test_the_packages_of_a_set_of_pins_can_be_read_back(node: Node) -> None:
    """A file that another program wrote has no pins of this collection."""
    assert apt_pins.held_patterns("docker") == []
    node.apply(packages=["docker.io", "linux-image-*"])
    assert apt_pins.held_patterns("docker") == ["docker.io", "linux-image-*"]
    (node.etc / "apt.conf.d/52-others").write_text('Unattended-Upgrade::Package-Blacklist {\n        "^bash$";\n};\n')
    assert apt_pins.held_patterns("others") == []
