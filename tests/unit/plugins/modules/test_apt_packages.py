# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module apt_packages: one run of apt-get, simulated first, and none where nothing is to do."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian import apt_packages as ap
from ansible_collections.baremetal.inference.plugins.module_utils.debian import apt_pins
from ansible_collections.baremetal.inference.plugins.modules import apt_packages


class Node:
    """A node's packages, and an apt-get that is told what to say."""

    def __init__(self) -> None:
        self.installed = {"curl": "8.14", "old": "1"}
        self.offered = {"jq", "intel-microcode"}
        self.plan = ""
        self.code = 0
        self.words = ""
        self.asked: list[list[str]] = []
        self.preferences: dict[str, str] = {}
        self.status = ""
        self.versions: list[str] = []

    def run_command(self, argv: list[str], environ_update: dict[str, str]) -> tuple[int, str, str]:
        if argv[0] == "dpkg-query":
            names = argv[3:] or list(self.installed)
            rows = [f"install installed {name} {self.installed[name]}\n" for name in names if name in self.installed]
            return int(len(rows) < len(names)), "".join(rows), ""
        if argv[1] == "policy":
            return 0, "".join(f"{n}:\n  Installed: (none)\n  Candidate: 1\n" for n in argv[2:] if n in self.offered), ""
        if argv[1] == "madison":
            return 0, "".join(f" {argv[2]} | {version} | file:/srv ./ Packages\n" for version in self.versions), ""
        if argv[1] == "indextargets":
            return 0, "main\ncontrib\n", ""
        assert environ_update["DEBIAN_FRONTEND"] == "noninteractive" and "--no-install-recommends" in argv
        for word in argv:
            if word.startswith("--option=Dir::State::status="):
                self.status = Path(word.rpartition("=")[2]).read_text()
            if word.startswith("--option=Dir::Etc::PreferencesParts="):
                self.preferences = {path.name: path.read_text() for path in Path(word.rpartition("=")[2]).iterdir()}
        self.asked.append([word for word in argv if word not in apt_packages.ap.OPTIONS])
        return self.code, self.plan if "--simulate" in argv else "", self.words

    def apply(self, *present: str, check: bool = False, lenient: bool = False, **lists: Any) -> dict[str, Any]:
        reading = ap.read_lists(present, lists.get("absent", ()), lists.get("optional", ()))
        params = {"allow_unavailable": lenient, "pins": lists.get("pins"), "gone": lists.get("gone", [])}
        module: Any = SimpleNamespace(params=params, check_mode=check, run_command=self.run_command)
        return apt_packages.Manager(module, reading.lists).apply()


@pytest.fixture
def node() -> Node:
    return Node()


def test_what_is_as_declared_is_not_touched(node: Node) -> None:
    assert not node.apply("curl", absent=["gone"])["changed"]
    assert node.asked == []


def test_one_run_installs_and_removes(node: Node) -> None:
    node.plan = "Inst jq (1)\nInst libjq1 (1)\nRemv old [1]\n"
    predicted = node.apply("curl", "jq=1*", absent=["old"], check=True)
    assert [words[1] for words in node.asked] == ["--simulate"]
    assert predicted == node.apply("curl", "jq=1*", absent=["old"])
    assert predicted["installed"] == ["jq", "libjq1"] and predicted["removed"] == ["old"]
    assert node.asked[-1] == ["apt-get", "install", "--allow-downgrades", "jq=1*", "old-"]


def test_a_plan_that_takes_others_along_is_not_carried_out(node: Node) -> None:
    node.plan = "Inst jq (1)\nRemv curl [8]\n"
    with pytest.raises(apt_packages.PackageError, match="would remove curl, which is declared as present"):
        node.apply("curl", "jq")
    assert len(node.asked) == 1


def test_what_is_optional_is_installed_where_a_source_has_it(node: Node) -> None:
    node.plan = "Inst intel-microcode (1)\n"
    result = node.apply(optional=["intel-microcode", "firmware-x"])
    assert result["installed"] == ["intel-microcode"] and result["unavailable"] == ["firmware-x"]
    assert result["components"] == ["contrib", "main"]


def test_a_package_that_is_nowhere(node: Node) -> None:
    node.code, node.words = 100, "E: Unable to locate package crul\n"
    with pytest.raises(apt_packages.PackageError, match=r"package crul.*components contrib, main"):
        node.apply("crul", check=True)
    # The sources are about to change: only a real run must find it.
    result = node.apply("crul", absent=["old"], check=True, lenient=True)
    assert (result["unavailable"], result["installed"], result["removed"]) == (["crul"], ["crul"], ["old"])
    with pytest.raises(apt_packages.PackageError):
        node.apply("crul", lenient=True)


def test_a_version_that_is_nowhere(node: Node) -> None:
    node.code, node.words = 100, "E: Version '9*' for 'curl' was not found\n"
    node.versions = ["8.14-2", "8.14-1"]
    with pytest.raises(apt_packages.PackageError, match=r"sources have of curl 8.14-2, 8.14-1\."):
        node.apply("curl=9*", check=True)


def test_words_of_dpkg_are_told() -> None:
    words = "E: Sub-process /usr/bin/dpkg returned an error code (1)"
    assert "no space left" in apt_packages.ap.tail("Unpacking x\n no space left on device", words)
    assert apt_packages.ap.tail("Reading package lists...", "W: x\nE: Unable to locate package y") == (
        "E: Unable to locate package y"
    )


def test_the_simulation_counts_with_pins_that_are_yet_to_come(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else what the old pins hold back would be refused before the new ones are written."""
    (tmp_path / "52-driver").write_text("the old pins")
    (tmp_path / "others").write_text("kept")
    monkeypatch.setattr(apt_pins, "PREFERENCES", tmp_path)
    node.plan = "Inst jq (2)\n"
    node.apply("jq=2*", pins={"name": "driver", "packages": ["jq", "libjq*"], "version": "2*"})
    assert node.preferences == {"52-driver": apt_pins.preferences(["jq", "libjq*"], "2*"), "others": "kept"}
    assert "Package: jq libjq*\nPin: version 2*\n" in node.preferences["52-driver"]
    simulated, done = node.asked
    assert len(simulated) == len(done) + 2, "the installation itself reads the node's own"
    assert (tmp_path / "52-driver").read_text() == "the old pins"


def test_what_goes_before_is_not_there_any_more(node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else what depends on the new version of it could not be simulated."""
    status = tmp_path / "status"
    status.write_text("Package: old\nVersion: 1\n\nPackage: older\nVersion: 1\n\nPackage: curl\nVersion: 8.14\n\n")
    monkeypatch.setattr(apt_packages, "STATUS", status)
    node.plan = "Inst old (2)\n"
    assert node.apply("old", gone=["old"], check=True)["installed"] == ["old"]
    assert node.status == "Package: older\nVersion: 1\n\nPackage: curl\nVersion: 8.14\n\n"
