# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module package_updates: what it would do, what it does, and that it does it once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import basic

from ansible_collections.baremetal.inference.plugins.module_utils.debian import apt_pins
from ansible_collections.baremetal.inference.plugins.modules import package_updates

RunModule = Callable[..., dict[str, Any]]


class Apt:
    """A node's packages: `offers` are the newer versions, as apt-get simulates them."""

    def __init__(self) -> None:
        self.installed = {
            "curl": ["install", "installed", "1"],
            "tzdata": ["install", "installed", "1"],
            "docker.io": ["hold", "installed", "1"],
        }
        self.offers = {"curl": "2 Debian-Security:12/stable-security", "tzdata": "2 Debian:12/stable"}
        self.takes_along: list[str] = []
        self.fails = ""
        self.calls: list[str] = []

    def __call__(self, _module: object, argv: list[str], **more: Any) -> tuple[int, str, str]:
        words = [word for word in argv if not word.startswith("--") or word in ("--simulate", "--configure")]
        if argv[0] == "dpkg-query":
            rows = [f"{want} {status} {name} {version}" for name, (want, status, version) in self.installed.items()]
            return 0, "\n".join(rows), ""
        if "--simulate" not in words:
            self.calls.append(" ".join([*words, more.get("data", "").strip()]).strip())
        if self.fails and "--simulate" not in words:
            return 100, "", f"E: {self.fails}"
        names = [word.partition("=")[0] for word in words[words.index("install") + 1 :]] if "install" in words else None
        if argv[0] == "apt-get" and "--simulate" in words:
            return 0, "\n".join([*self.simulated(names), *self.takes_along]), ""
        if argv[0] == "apt-get":
            for name in names or ():
                self.installed[name] = ["install", "installed", self.offers.pop(name).split()[0]]
        if argv[:2] == ["dpkg", "--configure"]:
            for package in self.installed.values():
                package[1] = "installed"
        return 0, "", ""

    def simulated(self, names: list[str] | None) -> list[str]:
        # An upgrade leaves what is on hold.
        chosen = [name for name in self.offers if self.installed[name][0] != "hold"] if names is None else names
        return [f"Inst {name} [{self.installed[name][2]}] ({self.offers[name]} [amd64])" for name in chosen]


@pytest.fixture
def apt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Apt:
    apt = Apt()

    def run_command(*given: Any, **more: Any) -> Any:
        return apt(*given, **more)

    monkeypatch.setattr(basic.AnsibleModule, "run_command", run_command)
    monkeypatch.setattr(apt_pins, "ETC_APT", tmp_path)
    blacklist = tmp_path / "apt.conf.d" / apt_pins.file_name("docker")
    blacklist.parent.mkdir()
    item = '        "^docker\\.io$";\n'
    blacklist.write_text(f"// {apt_pins.HEADER}\nUnattended-Upgrade::Package-Blacklist {{\n{item}}};\n")
    return apt


def test_security_updates_come_and_then_no_more(apt: Apt, run_module: RunModule) -> None:
    foreseen = run_module(package_updates, check=True)
    assert foreseen["lines"] == ["curl 1 -> 2"] and foreseen["changed"] and apt.calls == []
    assert foreseen["held"] == ["docker.io"]
    found = run_module(package_updates)
    assert found["updates"] == [{"name": "curl", "old": "1", "new": "2"}]
    assert apt.calls == ["apt-get install curl=2"]
    assert run_module(package_updates)["changed"] is False


@pytest.mark.parametrize(("mode", "names"), [("all", ["curl", "tzdata"]), ("none", [])])
def test_other_updates(apt: Apt, run_module: RunModule, mode: str, names: list[str]) -> None:
    assert [one["name"] for one in run_module(package_updates, mode=mode)["updates"]] == names


def test_what_is_held_comes_only_with_its_own_word_and_stays_held(apt: Apt, run_module: RunModule) -> None:
    apt.offers["docker.io"] = "1.1 Debian:12/stable"
    assert "docker.io" not in str(run_module(package_updates, mode="all", check=True)["updates"])
    found = run_module(package_updates, mode="security", release=["docker"])
    assert [one["name"] for one in found["updates"]] == ["curl", "docker.io"]
    assert "docker.io hold" in apt.calls[-1]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("Remv nginx [1]", "it would remove nginx"),
        ("Inst docker.io [1] (2 Debian:12/stable [amd64])", "it would change docker.io, which is on hold"),
    ],
)
def test_what_takes_others_along_is_refused(apt: Apt, run_module: RunModule, line: str, words: str) -> None:
    apt.takes_along = [line]
    found = run_module(package_updates)
    assert found["failed"] and words in found["msg"] and "Nothing was changed" in found["msg"]
    assert apt.calls == []


def test_what_failed_half_way_is_finished(apt: Apt, run_module: RunModule) -> None:
    apt.installed["tzdata"][1] = "half-configured"
    assert run_module(package_updates, mode="none", check=True)["lines"] == ["finish tzdata"]
    found = run_module(package_updates, mode="none")
    assert found["finished"] == ["tzdata"] and apt.calls == ["dpkg --configure"]
    assert run_module(package_updates, mode="none")["changed"] is False


def test_an_update_that_fails_says_why(apt: Apt, run_module: RunModule) -> None:
    apt.fails = "disk full"
    assert "disk full" in run_module(package_updates)["msg"]
