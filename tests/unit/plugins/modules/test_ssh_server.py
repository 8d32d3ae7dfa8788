# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module ssh_server: sshd checks the new file, a failed reload restores the old file, a refusal changes nothing."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
from ansible_collections.baremetal.inference.plugins.module_utils.debian import trial
from ansible_collections.baremetal.inference.plugins.module_utils.debian.ssh_session import Login
from ansible_collections.baremetal.inference.plugins.module_utils.debian.sshd import SshdError
from ansible_collections.baremetal.inference.plugins.modules import ssh_server

from .conftest import RunModule

BASE = {"PasswordAuthentication": False, "PermitRootLogin": "prohibit-password"}


class Node:
    """A node whose sshd takes the first of two values, as the real one does."""

    def __init__(self, root: Path) -> None:
        self.main = root / "sshd_config"
        self.ours = root / "sshd_config.d/10-inference.conf"
        self.ours.parent.mkdir()
        self.main.write_text(f"Include {self.ours.parent}/*.conf\n")
        self.reloads: list[str | None] = []
        self.verbs: list[str] = []
        self.unit = "ssh.service"
        self.reload_works = True
        self.began: list[str] = []

    def values(self, path: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for line in Path(path).read_text().splitlines():
            keyword, _blank, value = line.strip().partition(" ")
            keyword = keyword.lower()
            if keyword == "include":
                names = [name for pattern in value.split() for name in ssh_server.listed(pattern)]
                for name in names:
                    found = self.values(name) | found
            elif keyword and keyword[0] != "#":
                found.setdefault(keyword, value.lower())
        return found

    def run(self, *command: str) -> tuple[int, str]:
        if command[0] == "systemctl":
            if command[1] == "is-active":
                return int(command[-1] != self.unit), ""
            self.verbs.append(command[1])
            self.reloads.append(self.ours.read_text() if self.ours.exists() else None)
            return (0, "") if self.reload_works else (1, "it does not reload")
        path = command[command.index("-f") + 1]
        values = {"passwordauthentication": "yes", "authorizedkeysfile": ".ssh/authorized_keys"} | self.values(path)
        if "nonsense" in values:
            return 255, f"{path} line 1: Bad configuration option: nonsense"
        return 0, "\n".join(f"{keyword} {value}" for keyword, value in values.items())

    def apply(self, check: bool = False, **params: Any) -> dict[str, Any]:
        everything = {"base": BASE, "config": {}, "admins": [], "phase": "apply", "seconds": 60, **params}
        module: Any = SimpleNamespace(params=everything, check_mode=check, _diff=True)
        manager = ssh_server.Manager(module)
        manager.inspect()
        return manager.apply()


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    node = Node(tmp_path)
    sshd = tmp_path / "sshd"
    sshd.touch()
    for name, value in {
        "MAIN": node.main,
        "OURS": node.ours,
        "DEFAULTS": tmp_path / "default",
        "SSHD": sshd,
        "RUN_SSHD": tmp_path / "run",
        "RESTART": 0,
    }.items():
        monkeypatch.setattr(ssh_server, name, value)
    monkeypatch.setattr(trial, "RUN", tmp_path / "trials")

    def begin(*command: str) -> tuple[int, str]:
        if command[0] == "systemd-run":
            node.began.append(command[-1])
        return 0, ""

    monkeypatch.setattr(trial, "_run", begin)
    monkeypatch.setattr(ssh_server.Server, "run", lambda _self, *command: node.run(*command))
    monkeypatch.setattr(ssh_server.ssh_session, "login", lambda: Login("root", "192.0.2.7"))
    return node


def test_check_mode_predicts_the_changes_and_the_second_run_changes_nothing(node: Node) -> None:
    predicted = node.apply(check=True)
    assert predicted["changed"] and predicted["closes"]
    assert not node.ours.exists() and not node.reloads
    done = node.apply()
    assert done == predicted
    assert "PasswordAuthentication no" in node.ours.read_text()
    assert node.ours.stat().st_mode & 0o777 == 0o644
    again = node.apply()
    assert (again["changed"], again["closes"], len(node.reloads)) == (False, False, 1)


def test_passwords_that_stay_allowed_are_not_reported_as_closed(node: Node) -> None:
    assert not node.apply(base={**BASE, "PasswordAuthentication": True})["closes"]


@pytest.mark.parametrize(
    ("theirs", "words"),
    [("PasswordAuthentication yes", "05-x.conf line 1"), ("PermitRootLogin no", "05-x.conf line 1")],
)
def test_a_file_that_overrides_a_value_is_named(node: Node, theirs: str, words: str) -> None:
    node.ours.with_name("05-x.conf").write_text(theirs)
    with pytest.raises(InputError, match=words):
        node.apply()
    assert not node.ours.exists()


def test_a_file_that_no_other_file_includes_is_refused(node: Node) -> None:
    node.main.write_text("UsePAM yes\n")
    with pytest.raises(InputError, match="no file includes this one"):
        node.apply()


def test_an_error_of_sshd_names_the_file_on_the_node(node: Node) -> None:
    with pytest.raises(SshdError, match=f"{node.ours} line 1: Bad configuration option"):
        node.apply(config={"Nonsense": 1})
    assert not node.ours.exists()
    node.main.write_text(f"Nonsense 1\nInclude {node.ours.parent}/*.conf\n")
    with pytest.raises(SshdError, match=f"configuration as a whole: {node.main} line 1"):
        node.apply()


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"base": {**BASE, "PermitRootLogin": False}}, "root: the user of the current connection would be shut out"),
        (
            {"config": {"DenyUsers": "bob"}, "admins": [{"name": "bob", "groups": []}]},
            "bob: an admin would be shut out",
        ),
        ({"config": {"AllowGroups": "staff root"}, "admins": [{"name": "bob", "groups": ["adm"]}]}, "are bob, adm"),
        ({"config": {"AuthorizedKeysFile": "/x"}, "admins": [{"name": "bob", "groups": []}]}, "must name .ssh/auth"),
    ],
)
def test_a_configuration_that_shuts_out_an_admin_is_refused(node: Node, params: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        node.apply(**params)
    assert not node.ours.exists()


def test_a_group_without_a_name_hides_no_other_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh_server.os, "getgrouplist", lambda _user, own: [4294967290, own])
    assert ssh_server.groups_of("root") == ["root"]


def test_the_old_file_is_restored_if_the_server_does_not_reload(node: Node) -> None:
    node.ours.write_text("PasswordAuthentication yes\n")
    node.reload_works = False
    with pytest.raises(SshdError, match="it does not reload") as caught:
        node.apply()
    assert node.ours.read_text() == "PasswordAuthentication yes\n"
    # The server does not reload the old file either.
    assert str(caught.value).startswith(f"{node.ours}: ")
    assert "The old file was put back, but the server may not have loaded it: it does not reload" in str(caught.value)
    assert "read `journalctl --unit=ssh.service` on the node" in str(caught.value)


def test_an_old_file_that_cannot_be_put_back_does_not_hide_the_first_error(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.ours.write_text("PasswordAuthentication yes\n")
    node.reload_works = False
    write = ssh_server.files.write

    def full(path: Path, content: str | None) -> bool:
        if content == "PasswordAuthentication yes\n":
            raise OSError(30, "Read-only file system")
        return write(path, content)

    monkeypatch.setattr(ssh_server.files, "write", full)
    with pytest.raises(SshdError, match="it does not reload") as caught:
        node.apply()
    assert "The old file could not be put back: [Errno 30] Read-only file system" in str(caught.value)


def test_a_rollback_that_leaves_the_new_file_is_reported(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    node.ours.write_text("PasswordAuthentication yes\n")
    node.reload_works = False

    def rollback(_trial: trial.Trial) -> bool:
        if node.ours.read_text() != "PasswordAuthentication yes\n":
            raise trial.TrialError("cp failed")
        return False

    monkeypatch.setattr(trial.Trial, "rollback", rollback)
    with pytest.raises(SshdError, match="The old file could not be put back: cp failed"):
        node.apply()


@pytest.mark.parametrize(("unit", "verbs"), [("ssh.service", ["reload"]), ("ssh.socket", ["stop"]), ("neither", [])])
def test_a_running_server_is_reloaded_or_stopped_for_the_new_file(node: Node, unit: str, verbs: list[str]) -> None:
    """A server that ssh.socket has started cannot reload. It stops, and the next connection starts it again."""
    node.unit = unit
    node.apply()
    assert node.verbs == verbs


def test_a_trial_begins_before_the_change(node: Node) -> None:
    node.ours.write_text("PasswordAuthentication yes\n")
    assert node.apply(phase="trial")["trial"]
    script = Path(node.began[0]).read_text()
    assert f"old.conf {node.ours}" in script
    assert "systemctl reload ssh.service" in script
    # If the run is cut off here, the node restores the old file. So the next run must not take the new file as final.
    (waiting,) = node.apply(check=True)["differs"]
    assert "on trial" in waiting
    trial.Trial(ssh_server.TRIAL_NAME).confirm()
    assert node.apply(check=True)["differs"] == []


def test_a_server_that_reads_another_file_is_refused(node: Node) -> None:
    ssh_server.DEFAULTS.write_text("# x\nSSHD_OPTS='-f /etc/other'\n")
    with pytest.raises(SshdError, match="SSHD_OPTS"):
        node.apply()


def test_options_with_half_a_quote_are_refused(node: Node) -> None:
    ssh_server.DEFAULTS.write_text('SSHD_OPTS="-4\n')
    with pytest.raises(SshdError, match=r"SSHD_OPTS in .* has a quote without an end"):
        node.apply()


def test_a_missing_server_is_an_error(node: Node) -> None:
    ssh_server.SSHD.unlink()
    with pytest.raises(SshdError, match="install openssh-server"):
        node.apply(check=True)


@pytest.mark.parametrize("phase", ["confirm", "rollback"])
def test_a_trial_ends_without_an_inspection_of_the_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_module: RunModule, phase: str
) -> None:
    monkeypatch.setattr(trial, "RUN", tmp_path)
    commands: list[tuple[str, ...]] = []

    def run(*command: str) -> tuple[int, str]:
        commands.append(command)
        return 0, ""

    monkeypatch.setattr(trial, "_run", run)
    pending = tmp_path / "ssh/pending"
    pending.parent.mkdir()
    pending.touch()
    assert run_module(ssh_server, check=True, phase=phase)["changed"]
    assert pending.exists() and commands == []
    assert run_module(ssh_server, phase=phase)["changed"]
    rollback = [("/bin/sh", str(tmp_path / "ssh/rollback"))] if phase == "rollback" else []
    assert commands == [*rollback, ("systemctl", "stop", "inference-trial-ssh.timer")]
    assert pending.exists() == (phase == "rollback"), "in a rollback, the script removes the file"


def test_a_trial_that_has_ended_cannot_be_confirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_module: RunModule
) -> None:
    monkeypatch.setattr(trial, "RUN", tmp_path)
    found = run_module(ssh_server, phase="confirm")
    assert (found["failed"], "the old state is back" in found["msg"]) == (True, True)
    assert run_module(ssh_server, phase="rollback")["changed"] is False


@pytest.mark.parametrize("phase", ["apply", "trial"])
def test_a_change_needs_the_option_base(run_module: RunModule, phase: str) -> None:
    found = run_module(ssh_server, phase=phase)
    assert found["failed"] and "missing: base" in found["msg"]
