# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module apt_sources: apt tries the new files first, and then all files are replaced, or none."""

from __future__ import annotations

import errno
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian import openpgp
from ansible_collections.baremetal.inference.plugins.module_utils.debian.apt_sources import (
    ARMOUR,
    Transport,
    read_sources,
)
from ansible_collections.baremetal.inference.plugins.modules import apt_sources

KEY = f"{ARMOUR}\nabc\n-----END PGP PUBLIC KEY BLOCK-----"
TEST = {"name": "test", "uris": ["http://mirror/"], "suites": ["$(CODENAME)"], "components": ["main"], "key": KEY}
PROXY = "http://u:s3cret@proxy:1"


class Node:
    """A node's /etc/apt, and an apt with prepared answers."""

    def __init__(self, etc: Path) -> None:
        self.etc = etc
        self.calls: list[str] = []
        self.seen: dict[str, str] = {}
        self.answers: dict[str, tuple[int, str, str]] = {}
        for directory in ("sources.list.d", "apt.conf.d", "keyrings"):
            (etc / directory).mkdir()
        (etc / "sources.list").write_text("deb http://old bookworm main\n")
        (etc / "apt.conf.d/70debconf").write_text("// hooks\n")

    def run_command(self, argv: list[str], environ_update: dict[str, str]) -> tuple[int, str, str]:
        verb = argv[-1] if "APT_CONFIG" in environ_update else "refresh"
        self.calls.append(verb)
        if verb == "update":
            self.root = root = Path(environ_update["APT_CONFIG"]).parent
            self.seen = {str(p.relative_to(root)): p.read_text() for p in root.rglob("*") if p.is_file()}
            assert stat.S_IMODE(root.stat().st_mode) == 0o755
            assert stat.S_IMODE((root / "apt.conf.d").stat().st_mode) == 0o700
        return self.answers.get(verb, (0, "", ""))

    def apply(
        self, *entries: dict[str, Any], check: bool = False, http_proxy: str = "", **params: Any
    ) -> dict[str, Any]:
        options = {"exclusive": False, "keep": [], **params}
        module: Any = SimpleNamespace(params=options, check_mode=check, run_command=self.run_command)
        return apt_sources.Manager(module, read_sources(entries), Transport(http_proxy)).apply()

    def files(self) -> dict[str, str]:
        return {str(path.relative_to(self.etc)): path.read_text() for path in self.etc.rglob("*") if path.is_file()}


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    (tmp_path / "os-release").write_text('ID=debian\nVERSION_CODENAME="trixie"\n')
    monkeypatch.setattr(apt_sources, "OS_RELEASE", tmp_path / "os-release")
    monkeypatch.setattr(apt_sources, "ETC_APT", tmp_path / "apt")
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    (tmp_path / "apt").mkdir()
    return Node(tmp_path / "apt")


def test_check_mode_predicts_the_changes_and_the_second_run_changes_nothing(node: Node) -> None:
    before = node.files()
    predicted = node.apply(TEST, check=True, http_proxy=PROXY)
    assert node.files() == before and node.calls == ["update", "indextargets"]
    assert predicted == node.apply(TEST, http_proxy=PROXY)
    assert "Suites: trixie\n" in node.files()["sources.list.d/test.sources"]
    assert node.files()["keyrings/inference-test.asc"] == KEY + "\n"
    assert stat.S_IMODE((node.etc / "apt.conf.d/52-inference-proxy").stat().st_mode) == 0o600
    assert "s3cret" not in str(predicted)
    node.calls.clear()
    assert not node.apply(TEST, http_proxy=PROXY)["changed"] and node.calls == []


def test_apt_tries_the_declared_sources_through_the_declared_proxy(node: Node) -> None:
    (node.etc / "apt.conf").write_text('APT::Update::Post-Invoke { "touch /hook"; };')
    (node.etc / "apt.conf.d/52-inference-proxy").write_text("old proxy")
    node.apply(TEST, check=True, http_proxy=PROXY)
    assert "sources.list" not in node.seen and "70debconf" in str(node.seen)
    assert PROXY in node.seen["apt.conf.d/52-inference-proxy"]
    # apt reads the file of Dir::Etc::Main last. So no option of the node's own apt.conf calls a hook.
    assert f'Dir::Etc::Main "{node.root}/last.conf";' in node.seen["apt.conf"]
    own, _between, ours = node.seen["last.conf"].partition("Dir::Etc::SourceList")
    assert "touch /hook" in own and "#clear APT::Update::Post-Invoke;" in ours
    assert "Signed-By: /etc/apt" not in node.seen["sources.list.d/test.sources"]
    # Without declared sources, apt tries the node's sources through the new proxy.
    node.apply(http_proxy=PROXY, check=True)
    assert node.seen["sources.list"] == "deb http://old bookworm main\n"


@pytest.mark.parametrize(
    "answer",
    [
        ("update", (100, "", "E: Failed to fetch http://mirror/ u:s3cret@proxy")),
        ("update", (0, "", "W: Skipping acquire of configured file 'x'")),
        ("update", (124, "", "")),
        ("indextargets", (100, "", "E: Conflicting values set for option Signed-By")),
        ("refresh", (100, "", "E: Failed to fetch http://mirror/")),
    ],
)
def test_a_refusal_of_apt_leaves_nothing_changed(node: Node, answer: tuple[str, tuple[int, str, str]]) -> None:
    node.apply({**TEST, "components": ["contrib"]})
    before = node.files()
    node.answers = dict([answer])
    with pytest.raises(apt_sources.SourceError) as error:
        node.apply(TEST, exclusive=True, http_proxy=PROXY)
    assert node.files() == before
    assert "s3cret" not in str(error.value)


def test_a_run_waits_for_the_lock_of_apt(node: Node) -> None:
    answers = iter([(100, "", "E: Could not get lock /var/lib/apt/lists/lock."), (0, "", "")])
    run = node.run_command

    def locked(argv: list[str], environ_update: dict[str, str]) -> tuple[int, str, str]:
        return run(argv, environ_update) if "APT_CONFIG" in environ_update else next(answers)

    node.run_command = locked  # type: ignore[method-assign]
    assert node.apply(TEST)["changed"]


def test_a_write_that_fails_undoes_the_other_writes(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    before = node.files()
    write = apt_sources.write

    def full(path: Path, file: apt_sources.File) -> None:
        if path.parent == node.etc / "keyrings":
            raise OSError("No space left on device")
        write(path, file)

    monkeypatch.setattr(apt_sources, "write", full)
    with pytest.raises(OSError):
        node.apply(TEST)
    assert node.files() == before


def test_old_files_that_cannot_be_put_back_do_not_hide_the_first_error(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.apply({**TEST, "components": ["contrib"]})
    node.answers = {"refresh": (100, "", "E: The repository does not answer")}
    write = apt_sources.write

    def full(path: Path, file: apt_sources.File) -> None:
        if path.parent == node.etc / "sources.list.d" and "contrib" in file.text:
            raise OSError(30, "Read-only file system")
        write(path, file)

    monkeypatch.setattr(apt_sources, "write", full)
    with pytest.raises(apt_sources.SourceError, match="The repository does not answer") as error:
        node.apply(TEST)
    assert "Not all old files could be put back: [Errno 30] Read-only file system" in str(error.value)
    assert "are back" not in str(error.value)


def test_the_option_exclusive_renames_sources_that_are_not_declared(node: Node) -> None:
    (node.etc / "sources.list.d/docker.sources").write_text("Types: deb\n")
    (node.etc / "sources.list.d/comment.list").write_text("# deb x\n")
    (node.etc / "sources.list.inference.save").write_text("of an earlier time")
    old = str(node.etc / "sources.list")
    assert node.apply(TEST, keep=["docker"])["undeclared"] == [old, str(node.etc / "sources.list.d/docker.sources")]
    result = node.apply(TEST, exclusive=True, keep=["docker"])
    assert result["saved"] == [old]
    assert result["diff"][-1] == {"prepared": f"{old} is renamed to {old}.2.inference.save\n"}
    files = node.files()
    assert files["sources.list.2.inference.save"] == "deb http://old bookworm main\n"
    assert files["sources.list.inference.save"] == "of an earlier time"
    assert "sources.list" not in files and "sources.list.d/docker.sources" in files
    assert not node.apply(TEST, exclusive=True, keep=["docker"])["changed"]


def test_an_absent_source_and_a_proxy_that_is_not_declared_are_removed(node: Node) -> None:
    node.apply(TEST, http_proxy=PROXY)
    node.apply({"name": "test", "state": "absent"})
    assert sorted(node.files()) == ["apt.conf.d/70debconf", "sources.list"]


def test_duplicate_sources_are_reported(node: Node) -> None:
    line = f"W: Target Packages (x) is configured multiple times in {node.etc}/sources.list:1 and /b.sources:1"
    node.answers["indextargets"] = (0, "", line)
    assert node.apply(TEST)["duplicates"] == [[str(node.etc / "sources.list"), "/b.sources"]]


def test_a_node_is_not_left_without_sources(node: Node) -> None:
    sources = read_sources([{**TEST, "key": "/nowhere.gpg"}, {"name": "gone", "state": "absent"}])
    assert [str(problem) for problem in apt_sources.check(sources, Transport(), True)] == [
        "source test: key: '/nowhere.gpg': must be a file on the node: correct the path"
    ]
    assert "without any source" in str(apt_sources.check(sources[1:], Transport(), True)[0])


def test_a_keyring_on_the_node_is_compared_with_its_fingerprints(tmp_path: Path) -> None:
    path = tmp_path / "vendor.gpg"
    path.write_bytes(bytes.fromhex("c60e0400000001160001020304050607"))
    (pin,) = openpgp.fingerprints(path.read_bytes())
    for fingerprints, found in (([], 0), ([pin], 0), (["0" * 40], 1)):
        sources = read_sources([{**TEST, "key": str(path), "fingerprints": fingerprints}])
        assert len(apt_sources.check(sources, Transport(), False)) == found


def test_a_keyring_that_cannot_be_read_is_a_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_path: Path) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    path = tmp_path / "vendor.gpg"
    path.touch()
    monkeypatch.setattr(Path, "read_bytes", broken)
    (problem,) = apt_sources.check(read_sources([{**TEST, "key": str(path)}]), Transport(), False)
    assert str(problem) == f"source test: key: '{path}': cannot be read (Input/output error): replace the file"
