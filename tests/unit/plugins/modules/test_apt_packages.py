# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module apt_packages: one run of apt-get, simulated first, and no run without a difference; pins and upgrades."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.module_utils import basic

from ansible_collections.baremetal.inference.plugins.module_utils.debian import apt_packages as ap
from ansible_collections.baremetal.inference.plugins.module_utils.debian import apt_pins
from ansible_collections.baremetal.inference.plugins.modules import apt_packages

from .conftest import RunModule


class Node:
    """A node's packages, and an apt-get with prepared answers."""

    def __init__(self) -> None:
        self.installed = {"curl": "8.14", "old": "1"}
        self.offered = {"jq", "intel-microcode"}
        self.plan = ""
        self.code = 0
        self.damaged = False
        self.words = ""
        self.asked: list[list[str]] = []
        self.preferences: dict[str, str] = {}
        self.status = ""
        self.versions: list[str] = []
        self.held: set[str] = set()
        self.comes: list[str] = []
        """The packages whose version an installation changes. Each of them loses its hold."""
        self.done: list[str] = []

    def run_command(
        self, argv: list[str], environ_update: dict[str, str] | None = None, data: str = ""
    ) -> tuple[int, str, str]:
        if argv[0] == "dpkg":
            self.done.append(data)
            self.held |= {line.split()[0] for line in data.splitlines() if line.endswith(" hold")}
            return 0, "", ""
        if argv[0] == "dpkg-query":
            names = argv[3:] or list(self.installed)
            version = "${Version}" in argv[2]
            rows = [
                f"{'hold' if name in self.held else 'install'} installed {name}"
                f"{' ' + self.installed[name] if version else ''}\n"
                for name in names
                if name in self.installed
            ]
            return int(len(rows) < len(names)), "".join(rows), ""
        if argv[1] == "policy" and self.damaged:
            return 100, "", "E: The package cache file is corrupted"
        if argv[1] == "policy":
            return 0, "".join(f"{n}:\n  Installed: (none)\n  Candidate: 1\n" for n in argv[2:] if n in self.offered), ""
        if argv[1] == "madison":
            return 0, "".join(f" {argv[2]} | {version} | file:/srv ./ Packages\n" for version in self.versions), ""
        if argv[1] == "indextargets":
            return 0, "main\ncontrib\n", ""
        assert environ_update is not None
        assert environ_update["DEBIAN_FRONTEND"] == "noninteractive" and "--no-install-recommends" in argv
        for word in argv:
            if word.startswith("--option=Dir::State::status="):
                self.status = Path(word.rpartition("=")[2]).read_text()
            if word.startswith("--option=Dir::Etc::PreferencesParts="):
                self.preferences = {path.name: path.read_text() for path in Path(word.rpartition("=")[2]).iterdir()}
        self.asked.append([word for word in argv if word not in apt_packages.ap.OPTIONS])
        if "--simulate" not in argv:
            self.done.append("install")
            self.installed |= dict.fromkeys(self.comes, "2")
            self.held -= set(self.comes)
        return self.code, self.plan if "--simulate" in argv else "", self.words

    def apply(self, *present: str, check: bool = False, lenient: bool = False, **lists: Any) -> dict[str, Any]:
        reading = ap.read_lists(present, lists.get("absent", ()), lists.get("optional", ()))
        params = {
            "allow_unavailable": lenient,
            "gone": lists.get("gone", []),
            "coming": [],
            "unattended": lists.get("unattended"),
        }
        module: Any = SimpleNamespace(params=params, check_mode=check, run_command=self.run_command)
        pins = [apt_pins.Pins(self.run_command, item, check) for item in lists.get("pins", [])]
        return apt_packages.Manager(module, reading.lists, pins).apply()


DRIVER: dict[str, Any] = {
    "name": "driver",
    "packages": ["jq", "libjq*"],
    "pinned": ["jq", "libjq*"],
    "version": "2*",
    "versions": {},
}


def etc(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts apt's configuration below a directory."""
    for directory in ("preferences.d", "apt.conf.d"):
        (root / directory).mkdir()
    monkeypatch.setattr(apt_pins, "ETC_APT", root)
    monkeypatch.setattr(apt_pins, "PREFERENCES", root / "preferences.d")


@pytest.fixture
def node() -> Node:
    return Node()


def test_without_a_difference_apt_get_does_not_run(node: Node) -> None:
    result = node.apply("curl", absent=["gone"])
    assert result["installed"] == result["removed"] == result["differs"] == []
    assert node.asked == []


def test_one_run_installs_and_removes(node: Node) -> None:
    node.plan = "Inst jq (1)\nInst libjq1 (1)\nRemv old [1]\n"
    predicted = node.apply("curl", "jq=1*", absent=["old"], check=True)
    assert [words[1] for words in node.asked] == ["--simulate"]
    assert predicted == node.apply("curl", "jq=1*", absent=["old"])
    assert predicted["installed"] == ["jq", "libjq1"] and predicted["removed"] == ["old"]
    assert predicted["differs"] == ["install jq, libjq1", "remove old"]
    assert node.asked[-1] == ["apt-get", "install", "--allow-downgrades", "jq=1*", "old-"]


def test_a_plan_that_removes_a_declared_package_is_not_carried_out(node: Node) -> None:
    node.plan = "Inst jq (1)\nRemv curl [8]\n"
    with pytest.raises(apt_packages.PackageError, match="would remove curl, which is declared as present"):
        node.apply("curl", "jq")
    assert len(node.asked) == 1


def test_an_optional_package_is_installed_if_a_source_has_it(node: Node) -> None:
    node.plan = "Inst intel-microcode (1)\n"
    result = node.apply(optional=["intel-microcode", "firmware-x"])
    assert result["installed"] == ["intel-microcode"] and result["unavailable"] == ["firmware-x"]
    assert result["components"] == ["contrib", "main"]


def test_a_package_in_no_source_is_an_error(node: Node) -> None:
    node.code, node.words = 100, "E: Unable to locate package crul\n"
    with pytest.raises(apt_packages.PackageError, match=r"package crul.*components contrib, main"):
        node.apply("crul", check=True)
    # With allow_unavailable, check mode accepts the package: a real run may add its source before.
    result = node.apply("crul", absent=["old"], check=True, lenient=True)
    assert (result["unavailable"], result["installed"], result["removed"]) == (["crul"], ["crul"], ["old"])
    with pytest.raises(apt_packages.PackageError):
        node.apply("crul", lenient=True)


def test_a_version_in_no_source_is_an_error_with_the_known_versions(node: Node) -> None:
    node.code, node.words = 100, "E: Version '9*' for 'curl' was not found\n"
    node.versions = ["8.14-2", "8.14-1"]
    with pytest.raises(apt_packages.PackageError, match=r"sources have of curl 8.14-2, 8.14-1\."):
        node.apply("curl=9*", check=True)


def test_errors_of_dpkg_are_in_the_message() -> None:
    words = "E: Sub-process /usr/bin/dpkg returned an error code (1)"
    assert "no space left" in apt_packages.ap.tail("Unpacking x\n no space left on device", words)
    assert apt_packages.ap.tail("Reading package lists...", "W: x\nE: Unable to locate package y") == (
        "E: Unable to locate package y"
    )


def test_the_simulation_uses_the_new_pins(node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the old pins, apt-get would refuse versions that only the new pins allow."""
    etc(tmp_path, monkeypatch)
    (tmp_path / "preferences.d/52-driver").write_text("the old pins")
    (tmp_path / "preferences.d/others").write_text("kept")
    node.plan = "Inst jq (2)\n"
    node.apply("jq=2*", check=True, pins=[DRIVER])
    assert node.preferences == {"52-driver": apt_pins.preferences(["jq", "libjq*"], "2*"), "others": "kept"}
    assert "Package: jq libjq*\nPin: version 2*\n" in node.preferences["52-driver"]
    assert (tmp_path / "preferences.d/52-driver").read_text() == "the old pins"
    node.apply("jq=2*", pins=[DRIVER])
    _predicted, simulated, done = node.asked
    assert len(simulated) == len(done) + 2, "the installation itself reads the node's own pins"
    assert (tmp_path / "preferences.d/52-driver").read_text() == node.preferences["52-driver"]


def test_packages_are_pinned_before_their_installation_and_held_afterwards(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An installed package is held at once, and loses the hold when its version changes."""
    etc(tmp_path, monkeypatch)
    node.installed["jq"] = "1"
    node.plan, node.comes = "Inst jq (2)\nInst libjq1 (2)\n", ["jq", "libjq1"]
    pins = {**DRIVER, "packages": ["jq", "libjq1"], "pinned": ["jq"]}
    predicted = node.apply("jq=2*", check=True, pins=[pins])
    assert (predicted["held"], node.done) == (["jq", "libjq1"], [])
    result = node.apply("jq=2*", pins=[pins])
    assert node.done == ["jq hold\n", "install", "jq hold\nlibjq1 hold\n"]
    assert (set(result["held"]), node.held) == ({"jq", "libjq1"}, {"jq", "libjq1"})
    node.plan, node.installed["jq"] = "", "2"
    again = node.apply("jq=2*", pins=[pins])
    assert [again[key] for key in ("installed", "held", "released", "diff", "differs")] == [[], [], [], [], []]
    node.held.remove("libjq1")
    assert node.apply("jq=2*", check=True, pins=[pins])["differs"] == ["hold libjq1"]
    files = [f"{tmp_path}/{name}/52-driver differs" for name in ("preferences.d", "apt.conf.d")]
    gone = node.apply("jq=2*", check=True, pins=[{**pins, "packages": [], "pinned": []}])
    assert gone["differs"] == ["release jq", *files]


def test_a_package_of_another_set_is_held(node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The role nvidia_driver installs kernel headers. The role common puts them on hold."""
    etc(tmp_path, monkeypatch)
    (tmp_path / "apt.conf.d/52-kernel").write_text(apt_pins.blacklist(["linux-headers-*"]))
    node.plan, node.comes = "Inst jq (2)\nInst linux-headers-6 (2)\n", ["jq", "linux-headers-6"]
    predicted = node.apply("jq", check=True)
    assert (predicted["held"], node.done) == (["linux-headers-6"], [])
    assert node.apply("jq") == predicted
    assert (node.done, node.held) == (["install", "linux-headers-6 hold\n"], {"linux-headers-6"})


def test_unattended_upgrades_are_configured_before_their_package_is_installed(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise, the package would start with its own defaults."""
    etc(tmp_path, monkeypatch)
    file = tmp_path / "apt.conf.d/52-inference"
    options: dict[str, Any] = {"unattended": {"enabled": True, "origins": ["origin=Debian"]}}
    node.plan = "Inst unattended-upgrades (1)\n"
    predicted = node.apply("unattended-upgrades", check=True, **options)
    assert predicted["differs"] == ["install unattended-upgrades", f"{file} differs"] and not file.exists()
    carry_out = apt_packages.Manager.carry_out
    monkeypatch.setattr(
        apt_packages.Manager, "carry_out", lambda self, plan: (file.read_text(), carry_out(self, plan))[1]
    )
    assert node.apply("unattended-upgrades", **options) == predicted


def test_nothing_is_pinned_if_the_packages_cannot_be_installed(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    etc(tmp_path, monkeypatch)
    node.plan = "Inst jq (1)\nRemv curl [8]\n"
    with pytest.raises(apt_packages.PackageError, match="would remove curl"):
        node.apply("curl", "jq", pins=[DRIVER])
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_packages_that_an_earlier_task_removes_count_as_not_installed(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise, apt-get could not simulate packages that need the new version."""
    status = tmp_path / "status"
    status.write_text("Package: old\nVersion: 1\n\nPackage: older\nVersion: 1\n\nPackage: curl\nVersion: 8.14\n\n")
    monkeypatch.setattr(apt_packages, "STATUS", status)
    node.plan = "Inst old (2)\n"
    assert node.apply("old", gone=["old"], check=True)["installed"] == ["old"]
    assert node.status == "Package: older\nVersion: 1\n\nPackage: curl\nVersion: 8.14\n\n"


def test_lists_of_packages_that_cannot_be_read_are_an_error(node: Node) -> None:
    node.damaged = True
    with pytest.raises(
        apt_packages.PackageError, match=r"policy failed \(100\): E: The package cache file is corrupted"
    ):
        node.apply(optional=["jq"])
    assert node.asked == []


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
        # An upgrade skips packages on hold.
        chosen = [name for name in self.offers if self.installed[name][0] != "hold"] if names is None else names
        return [f"Inst {name} [{self.installed[name][2]}] ({self.offers[name]} [amd64])" for name in chosen]


@pytest.fixture
def apt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Apt:
    apt = Apt()

    def run_command(*given: Any, **more: Any) -> Any:
        return apt(*given, **more)

    monkeypatch.setattr(basic.AnsibleModule, "run_command", run_command)
    etc(tmp_path, monkeypatch)
    blacklist = tmp_path / "apt.conf.d" / apt_pins.file_name("docker")
    item = '        "^docker\\.io$";\n'
    blacklist.write_text(f"// {apt_pins.HEADER}\nUnattended-Upgrade::Package-Blacklist {{\n{item}}};\n")
    return apt


def upgrade(run_module: RunModule, check: bool = False, **wanted: Any) -> dict[str, Any]:
    return run_module(apt_packages, check, upgrade=wanted)


def test_security_updates_are_installed_once(apt: Apt, run_module: RunModule) -> None:
    foreseen = upgrade(run_module, check=True)
    assert foreseen["lines"] == ["curl 1 -> 2"] and foreseen["changed"] and apt.calls == []
    assert foreseen["on_hold"] == ["docker.io"]
    found = upgrade(run_module)
    assert found["updates"] == [{"name": "curl", "old": "1", "new": "2"}]
    assert apt.calls == ["apt-get install curl=2"]
    assert upgrade(run_module)["changed"] is False


@pytest.mark.parametrize(("mode", "names"), [("all", ["curl", "tzdata"]), ("none", [])])
def test_the_mode_selects_the_updates(apt: Apt, run_module: RunModule, mode: str, names: list[str]) -> None:
    assert [update["name"] for update in upgrade(run_module, mode=mode)["updates"]] == names


def test_a_package_on_hold_is_updated_only_by_the_option_release_and_stays_on_hold(
    apt: Apt, run_module: RunModule
) -> None:
    apt.offers["docker.io"] = "1.1 Debian:12/stable"
    assert "docker.io" not in str(upgrade(run_module, mode="all", check=True)["updates"])
    found = upgrade(run_module, mode="security", release=["docker"])
    assert [update["name"] for update in found["updates"]] == ["curl", "docker.io"]
    assert "docker.io hold" in apt.calls[-1]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("Remv nginx [1]", "it would remove nginx"),
        ("Inst docker.io [1] (2 Debian:12/stable [amd64])", "it would change docker.io, which is on hold"),
    ],
)
def test_an_update_that_removes_a_package_or_changes_a_held_one_is_refused(
    apt: Apt, run_module: RunModule, line: str, words: str
) -> None:
    apt.takes_along = [line]
    found = upgrade(run_module)
    assert found["failed"] and words in found["msg"] and "Nothing was changed" in found["msg"]
    assert apt.calls == []


def test_a_refused_upgrade_names_the_changes_of_other_options(apt: Apt, run_module: RunModule, tmp_path: Path) -> None:
    apt.takes_along = ["Remv nginx [1]"]
    options = {"unattended": {"enabled": False}, "upgrade": {}}
    foreseen = run_module(apt_packages, True, **options)["msg"]
    assert foreseen.startswith("Nothing was changed. With curl=2\n- it would remove nginx")
    file = tmp_path / "apt.conf.d/52-inference"
    found = run_module(apt_packages, **options)["msg"]
    assert file.exists() and "Nothing was changed" not in found and "it would remove nginx" in found
    assert f"No package was upgraded, but other options have taken effect ({file} differs)" in found


def test_a_half_configured_package_is_finished(apt: Apt, run_module: RunModule) -> None:
    apt.installed["tzdata"][1] = "half-configured"
    assert upgrade(run_module, mode="none", check=True)["lines"] == ["finish tzdata"]
    found = upgrade(run_module, mode="none")
    assert found["finished"] == ["tzdata"] and apt.calls == ["dpkg --configure"]
    assert upgrade(run_module, mode="none")["changed"] is False


def test_a_failed_update_is_an_error_with_the_reason(apt: Apt, run_module: RunModule) -> None:
    apt.fails = "disk full"
    assert "disk full" in upgrade(run_module)["msg"]


def test_all_mistakes_are_named_at_once_and_nothing_is_changed(apt: Apt, run_module: RunModule) -> None:
    unattended = {"enabled": True, "origins": ["Debian"]}
    found = run_module(
        apt_packages, present=["curl!"], pins=[{"name": "../x", "packages": ["a b"]}], unattended=unattended
    )
    words = ("curl!", "../x", "a b", "common_unattended_upgrades_origins has 'Debian'")
    assert found["failed"] and [word for word in words if word not in found["msg"]] == []
    assert apt.calls == []


def test_without_an_upgrade_the_result_has_no_updates(apt: Apt, run_module: RunModule) -> None:
    found = run_module(apt_packages, present=["curl"])
    assert (found["changed"], "updates" in found, apt.calls) == (False, False, [])
