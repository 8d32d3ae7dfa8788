# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists of packages: missing and surplus packages, contradictions, and plans of apt that are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian import apt_packages as ap

INSTALLED = {"curl": ap.Installed("8.14.1-2"), "docker.io": ap.Installed("26.1", held=True), "old": ap.Installed("1")}


def lists(*present: str, absent: tuple[str, ...] = (), optional: tuple[str, ...] = ()) -> ap.Lists:
    reading = ap.read_lists(present, absent, optional)
    assert reading.problems == []
    return reading.lists


def test_missing_and_surplus_packages_are_found() -> None:
    wanted = lists("curl", "jq", "curl=8.14.1-*", absent=("old", "gone"))
    assert wanted.missing(INSTALLED) == ["jq"]
    assert wanted.surplus(INSTALLED) == ["old"]
    assert lists("curl=8.15*").missing(INSTALLED) == ["curl=8.15*"]


def test_packages_that_are_half_installed_or_not_installed_are_absent() -> None:
    asked: list[list[str]] = []

    def run(argv: list[str]) -> tuple[int, str, str]:
        asked.append(argv[3:])
        return 1, "hold installed haproxy 2.6\ninstall half-configured socat 1.7\ndeinstall config-files jq 1.6\n", ""

    assert ap.absent_of(run, ["haproxy", "socat", "jq", "curl"]) == ["socat", "jq", "curl"]
    assert ap.absent_of(run, []) == [] and asked == [["haproxy", "socat", "jq", "curl"]]
    with pytest.raises(OSError, match=r"dpkg-query failed \(2\): is locked"):
        ap.absent_of(lambda _argv: (2, "", "is locked\n"), ["curl"])


def test_a_package_in_both_lists_is_present_and_not_optional() -> None:
    assert lists("curl=8*", optional=("curl", "jq")).optional == ("jq",)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((["a b"], [], []), "present: 'a b'"),
        ((["curl=*"], [], []), "present: 'curl=*'"),
        ((["--reinstall"], [], []), "'--reinstall'"),
        ((["curl=1", "curl=2"], [], []), "curl has two versions, 1 and 2"),
        (([], ["curl=1"], []), "absent: 'curl=1'"),
        (([], [], ["x/y"]), "optional: 'x/y'"),
        ((["curl"], ["curl"], []), "also declared as present"),
        (([], ["curl"], ["curl"]), "also declared as optional"),
        (([], ["docker.io"], [], ["docker*"]), "also declared as held"),
    ],
)
def test_each_mistake_of_the_lists_is_found(arguments: tuple[list[str], ...], words: str) -> None:
    problems = ap.read_lists(*arguments).problems
    assert [words in str(problem) for problem in problems] == [True]


def test_the_outputs_of_dpkg_and_apt_are_parsed() -> None:
    output = "install not-installed curl \ninstall installed jq 1.7\nhold installed runc 1.1\n"
    output += "install half-configured broken 2\ndeinstall config-files x 1\n"
    installed = ap.read_installed(output)
    assert installed == {
        "jq": ap.Installed("1.7"),
        "runc": ap.Installed("1.1", held=True),
        "broken": ap.Installed("2", whole=False),
    }
    assert lists("jq", "broken").missing(installed) == ["broken"]
    assert lists(absent=("broken", "gone")).surplus(installed) == ["broken"]
    policy = (
        "curl:\n  Installed: (none)\n  Candidate: 8.1\n  Version table:\nx:\n  Installed: (none)\n  Candidate: (none)\n"
    )
    assert ap.read_candidates(policy) == {"curl"}
    assert ap.read_components("main\nmain\n\nnon-free-firmware\n") == ["main", "non-free-firmware"]
    assert ap.actions(
        "NOTE: x\nInst a [1] (2 Debian [all])\nInst b:amd64 (1)\nRemv c [1]\nConf a (2)\nConf d (1)\n"
    ) == (ap.Actions(["a", "b"], ["c"], ["d"]))
    words = "E: Unable to locate package crul\nE: Version '9*' for 'curl' was not found\n"
    words += "E: Package 'x' has no installation candidate\n"
    assert ap.unknown(words) == ["crul", "x", "curl"]


def test_apt_may_remove_only_packages_declared_as_absent() -> None:
    wanted = lists("curl", absent=("old",))
    assert ap.objections(wanted, INSTALLED, ap.Actions([], ["old"], [])) == []
    assert "declared as present" in ap.objections(wanted, INSTALLED, ap.Actions([], ["old", "curl"], []))[0]
    assert "declare jq as absent" in ap.objections(wanted, INSTALLED, ap.Actions([], ["old", "jq"], []))[0]


def test_apt_changes_a_held_package_only_to_a_declared_version_or_if_the_caller_has_set_the_hold() -> None:
    assert "on hold" in ap.objections(lists("curl"), INSTALLED, ap.Actions(["docker.io"], [], []))[0]
    assert "on hold" in ap.objections(lists(absent=("docker.io",)), INSTALLED, ap.Actions([], ["docker.io"], []))[0]
    own = replace(lists(absent=("docker.io",)), own_holds=("docker.*",))
    assert ap.objections(own, INSTALLED, ap.Actions([], ["docker.io"], [])) == []
    assert ap.objections(replace(own, own_holds=("docker",)), INSTALLED, ap.Actions([], ["docker.io"], []))
    assert ap.objections(lists("docker.io=27*"), INSTALLED, ap.Actions(["docker.io"], [], [])) == []


@pytest.mark.parametrize(
    ("vendor", "virtual", "package"),
    [
        ("GenuineIntel", False, "intel-microcode"),
        ("AuthenticAMD", False, "amd64-microcode"),
        ("AuthenticAMD", True, ""),
        ("HygonGenuine", False, ""),
    ],
)
def test_microcode_is_for_bare_metal(vendor: str, virtual: bool, package: str) -> None:
    assert ap.microcode(f"processor\t: 0\nvendor_id\t: {vendor}\nmodel\t: 1\n", virtual) == package


def test_apt_is_asked_only_for_optional_packages_that_are_not_completely_installed() -> None:
    lists = ap.Lists({"curl": ""}, frozenset({"nano"}), ("there", "offered", "nowhere"))
    asked: list[list[str]] = []

    def policy(names: list[str]) -> str:
        asked.append(names)
        return "offered:\n  Installed: (none)\n  Candidate: 1.0\nnowhere:\n  Installed: (none)\n  Candidate: (none)\n"

    installed = {"there": ap.Installed("1"), "nano": ap.Installed("1")}
    assert ap.gap(lists, installed, policy) == ap.Gap(["curl", "offered"], ["nano"], ["nowhere"])
    assert asked == [["offered", "nowhere"]]
    assert ap.gap(ap.Lists({}), installed, policy) == ap.Gap([], [], []) and len(asked) == 1
    half = {"there": ap.Installed("1"), "offered": ap.Installed("1.0", whole=False)}
    assert ap.gap(lists, half, policy).missing == ["curl", "offered"]
