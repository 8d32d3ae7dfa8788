# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module admin_accounts: accounts, keys and sudo rules on a node below a temporary directory."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
from ansible_collections.baremetal.inference.plugins.module_utils.debian import trial
from ansible_collections.baremetal.inference.plugins.module_utils.debian.ssh_session import Login
from ansible_collections.baremetal.inference.plugins.modules import admin_accounts

from .conftest import RunModule

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2VGWBPgbVPMyfzZKaTCM1gbqz2ETAGlrMjCkaxVOEt alice@laptop"
OTHER = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBzY0dEPcFMW4q5mGhTAnBbVKnzYBRO0pDWcm0PdJ/Hk alice@desk"
ALICE = {"name": "alice", "keys": [KEY], "sudo": None, "groups": None, "shell": None, "state": "present"}


class Node:
    """A node whose users have their homes below `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sudoers = root / "sudoers.d"
        self.sudoers.mkdir()
        self.users: dict[str, int] = {"root": 0}
        self.groups: dict[str, set[str]] = {"adm": set()}
        self.commands: list[tuple[str, ...]] = []
        self.visudo_accepts = True
        self.logind_refuses = False
        self.warnings: list[str] = []
        self.homes: dict[str, str] = {}
        self.shells: dict[str, str] = {}

    def account(self, name: str) -> SimpleNamespace:
        home = self.homes.get(name, str(self.root / name))
        shell = self.shells.get(name, "/bin/bash")
        # A user's own group has the number of the user.
        return SimpleNamespace(
            pw_name=name, pw_uid=self.users[name], pw_gid=self.users[name], pw_dir=home, pw_shell=shell
        )

    def run(self, *command: str, text: str = "") -> tuple[int, str]:
        if Path(command[0]).name == "visudo":
            return (0, "") if self.visudo_accepts else (1, "syntax error near line 2")
        self.commands.append(command)
        if command[0] == "loginctl" and self.logind_refuses:
            return 1, "Connection timed out"
        if command[0] == "useradd":
            self.users[command[-1]] = 59999
            (self.root / command[-1]).mkdir(exist_ok=True)
        if command[0] in ("useradd", "usermod") and "/nonexistent" in command:
            self.homes[command[-1]], self.shells[command[-1]] = "/nonexistent", "/usr/sbin/nologin"
        if command[0] == "userdel":
            del self.users[command[-1]]
        if command[0] == "groupadd":
            self.groups[command[-1]] = set()
        if "--groups" in command:
            wanted = command[command.index("--groups") + 1].split(",")
            for group, members in self.groups.items():
                (members.add if group in wanted else members.discard)(command[-1])
        return 0, ""

    def key_file(self, name: str = "alice") -> str:
        return (self.root / name / ".ssh/authorized_keys").read_text()

    def apply(
        self, *admins: dict[str, Any], check: bool = False, phase: str = "apply", service: str = ""
    ) -> dict[str, Any]:
        params = {
            "admins": [{**ALICE, **item} for item in admins],
            "service_user": service or "inference",
            "make_service_user": bool(service),
            "phase": phase,
        }
        module: Any = SimpleNamespace(
            params={**params, "seconds": 60}, check_mode=check, _diff=True, warn=self.warnings.append
        )
        manager = admin_accounts.Manager(module)
        manager.inspect()
        return manager.apply()


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    node = Node(tmp_path)
    visudo = tmp_path / "visudo"
    visudo.touch()

    @contextmanager
    def acting_as(_account: Any) -> Iterator[None]:
        yield

    def getpwnam(name: str) -> SimpleNamespace:
        return node.account(name)

    def in_place(path: Path, text: str) -> bool:
        return path.read_text() == text if path.exists() else not text

    module = admin_accounts
    monkeypatch.setattr(module, "SUDOERS", node.sudoers)
    monkeypatch.setattr(module, "VISUDO", visudo)
    monkeypatch.setattr(module, "PROC", tmp_path / "proc")
    monkeypatch.setattr(module, "SHADOW", tmp_path / "shadow")
    monkeypatch.setattr(module, "LOGINS", tmp_path / "logins")
    monkeypatch.setattr(module, "run", node.run)
    monkeypatch.setattr(module, "acting_as", acting_as)
    # All files belong to the user who runs the tests, so owners are not compared.
    monkeypatch.setattr(module, "in_place", in_place)
    monkeypatch.setattr(module.pwd, "getpwall", lambda: [node.account(name) for name in node.users])
    monkeypatch.setattr(module.pwd, "getpwnam", getpwnam)
    monkeypatch.setattr(
        module.grp,
        "getgrall",
        lambda: [SimpleNamespace(gr_name=name, gr_gid=1, gr_mem=sorted(node.groups[name])) for name in node.groups],
    )
    monkeypatch.setattr(module.grp, "getgrnam", lambda name: SimpleNamespace(gr_mem=node.groups[name], gr_gid=59999))
    monkeypatch.setattr(module.ssh_session, "login", lambda: Login("root", "192.0.2.7"))
    monkeypatch.setattr(trial, "RUN", tmp_path / "trials")
    monkeypatch.setattr(trial, "_run", node.run)
    return node


def test_check_mode_predicts_the_changes_and_the_second_run_changes_nothing(node: Node) -> None:
    admin = {"groups": ["adm", "gpu"]}
    predicted = node.apply(admin, check=True)
    assert node.commands == [] and "alice" not in node.users
    done = node.apply(admin)
    assert done == predicted
    assert done["differs"] == [
        "make the group gpu",
        "make the user alice",
        "replace the keys of alice",
        "write the sudo rule of alice",
    ]
    assert ("groupadd", "--system", "gpu") in node.commands
    assert node.key_file().splitlines()[1:] == [KEY]
    rule = node.sudoers / "inference-alice"
    assert rule.read_text().splitlines()[1:] == ["alice ALL=(ALL:ALL) NOPASSWD: ALL"]
    assert rule.stat().st_mode & 0o777 == 0o440
    assert (node.root / "alice/.ssh/authorized_keys").stat().st_mode & 0o777 == 0o600
    assert node.apply(admin)["changed"] is False


def test_a_key_that_is_not_declared_is_removed_from_both_files(node: Node) -> None:
    node.apply({"keys": [KEY, OTHER]})
    second = node.root / "alice/.ssh/authorized_keys2"
    second.write_text(OTHER)
    result = node.apply({})
    assert OTHER not in node.key_file() and not second.exists()
    shown = str(result["diff"])
    assert "SHA256:" in shown and "AAAA" not in shown


def test_other_users_cannot_write_to_the_directory_of_keys(node: Node) -> None:
    node.apply({})
    directory = node.root / "alice/.ssh"
    directory.chmod(0o777)
    node.apply({"keys": [OTHER]})
    assert directory.stat().st_mode & 0o777 == 0o755


def test_groups_stay_unless_they_are_declared(node: Node) -> None:
    node.apply({"groups": ["adm"]})
    assert node.apply({})["changed"] is False
    assert node.apply({"groups": []})["differs"] == ["put alice into the groups (none)"]
    assert node.groups["adm"] == set()


def test_a_rule_that_visudo_refuses_changes_nothing(node: Node) -> None:
    node.visudo_accepts = False
    with pytest.raises(InputError, match="syntax error near line 2"):
        node.apply({})
    assert node.commands == []


def test_without_a_sudo_rule_the_file_of_the_admin_is_removed(node: Node) -> None:
    node.apply({})
    assert node.apply({"sudo": []})["differs"] == ["remove the sudo rule of alice"]
    assert list(node.sudoers.iterdir()) == []


def test_a_missing_sudo_is_predicted_and_is_an_error_of_a_run(node: Node) -> None:
    admin_accounts.VISUDO.unlink()
    assert node.apply({}, check=True)["sudo_installed"] is False
    with pytest.raises(admin_accounts.AccountError, match="sudo is not installed"):
        node.apply({})


def test_an_absent_admin_loses_access_before_the_account_is_removed(node: Node) -> None:
    node.apply({})
    node.commands.clear()
    node.apply({"state": "absent"})
    assert [command[0] for command in node.commands] == ["usermod", "loginctl", "userdel"]
    assert not (node.root / "alice/.ssh/authorized_keys").exists()
    assert list(node.sudoers.iterdir()) == []
    assert node.apply({"state": "absent"})["changed"] is False


def test_an_account_stays_if_its_sessions_cannot_be_ended(node: Node) -> None:
    node.apply({})
    node.logind_refuses = True
    (node.root / "logins").mkdir()
    (node.root / "logins/59999").touch()
    with pytest.raises(admin_accounts.AccountError, match=r"loginctl cannot end the sessions \(1\): Connection timed"):
        node.apply({"state": "absent"})
    assert "alice" in node.users


def test_logind_may_refuse_a_user_without_sessions(node: Node) -> None:
    node.apply({})
    node.logind_refuses = True
    node.apply({"state": "absent"})
    assert "alice" not in node.users


def test_keys_that_cannot_be_removed_are_in_a_warning(node: Node) -> None:
    node.apply({})
    key_file = node.root / "alice/.ssh/authorized_keys"
    key_file.unlink()
    key_file.mkdir()
    node.apply({"state": "absent"})
    assert "alice: its keys could not be removed" in "".join(node.warnings)
    assert "alice" not in node.users


def test_processes_in_containers_are_not_killed(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Users in containers can have the same numbers as users of the node."""
    proc = node.root / "proc"
    for number, namespace in ((1, "node"), (100, "node"), (200, "container")):
        (proc / str(number) / "ns").mkdir(parents=True)
        (proc / str(number) / "ns/pid").symlink_to(namespace)
    killed: list[int] = []

    def kill(number: int, _signal: int) -> None:
        killed.append(number)
        shutil.rmtree(proc / str(number))

    monkeypatch.setattr(admin_accounts, "owner", lambda path: 0 if path.name == "1" else 59999)
    monkeypatch.setattr(admin_accounts.os, "kill", kill)
    node.apply({})
    node.apply({"state": "absent"})
    assert killed == [100]


def test_an_account_whose_removal_was_cut_off_is_opened_again(node: Node) -> None:
    node.apply({})
    (node.root / "shadow").write_text("root:*:19000:0:99999:7:::\nalice:!*:19000:0:99999:7::1:\n")
    assert node.apply({}, check=True)["differs"] == ["open the account of alice again"]
    node.apply({})
    assert node.commands[-1] == ("usermod", "--expiredate", "", "--password", "*", "alice")
    # An expiry date that an operator has set stays.
    (node.root / "shadow").write_text("alice:*:19000:0:99999:7::20000:\n")
    assert not node.apply({})["changed"]


def test_an_admin_that_is_no_longer_declared_is_in_a_warning(node: Node) -> None:
    (node.sudoers / "inference-bob").touch()
    node.apply({})
    assert "bob was an admin" in node.warnings[0]


def test_a_missing_shell_is_refused(node: Node) -> None:
    with pytest.raises(InputError, match="must be a program on the node"):
        node.apply({"shell": "/bin/nosuchshell"})


def test_only_a_change_of_the_connections_own_user_is_on_trial(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    node.apply({}, {"name": "bob"})
    assert not node.apply({"keys": [OTHER]}, {"name": "bob"}, phase="trial")["trial"]
    monkeypatch.setattr(admin_accounts.ssh_session, "login", lambda: Login("alice", "192.0.2.7"))
    assert not node.apply({"keys": [OTHER]}, {"name": "bob"}, phase="trial")["trial"]
    node.commands.clear()
    changed = {"sudo": [], "keys": [KEY], "groups": ["adm"], "shell": "/bin/sh"}
    result = node.apply(changed, {"name": "bob"}, phase="trial")
    assert result["trial"]
    assert [command[0] for command in node.commands][:2] == ["systemctl", "systemd-run"]
    script = Path(node.commands[1][-1]).read_text()
    for words in (
        "runuser -u alice",
        "install -m 0440",
        "usermod --groups '' alice",
        "authorized_keys2",
        "usermod --shell /bin/bash alice",
    ):
        assert words in script
    assert (node.root / "trials/admins/authorized_keys").read_text().splitlines()[1:] == [OTHER]
    # If the run is cut off here, the node restores the old state. So the next run must not take the new state as final.
    assert "on trial" in node.apply(changed, {"name": "bob"}, check=True)["differs"][-1]
    trial.Trial(admin_accounts.TRIAL_NAME).confirm()
    assert "on trial" not in str(node.apply(changed, {"name": "bob"}, check=True)["differs"])


def test_the_rights_of_root_are_restored_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, Any]] = []
    for name in ("setgroups", "setegid", "seteuid"):
        monkeypatch.setattr(os, name, lambda value, name=name: calls.append((name, value)))
    monkeypatch.setattr(os, "getgroups", lambda: [0, 4])
    account: Any = SimpleNamespace(pw_uid=1000, pw_gid=1001)
    with pytest.raises(OSError), admin_accounts.acting_as(account):
        assert calls == [("setgroups", []), ("setegid", 1001), ("seteuid", 1000)]
        raise OSError
    assert calls[3:] == [("seteuid", 0), ("setegid", 0), ("setgroups", [0, 4])]


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
    pending = tmp_path / "admins/pending"
    pending.parent.mkdir()
    pending.touch()
    assert run_module(admin_accounts, check=True, phase=phase)["changed"]
    assert pending.exists() and commands == []
    assert run_module(admin_accounts, phase=phase)["changed"]
    rollback = [("/bin/sh", str(tmp_path / "admins/rollback"))] if phase == "rollback" else []
    assert commands == [*rollback, ("systemctl", "stop", "inference-trial-admins.timer")]
    assert pending.exists() == (phase == "rollback"), "in a rollback, the script removes the file"


def test_a_trial_that_has_ended_cannot_be_confirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_module: RunModule
) -> None:
    monkeypatch.setattr(trial, "RUN", tmp_path)
    found = run_module(admin_accounts, phase="confirm")
    assert (found["failed"], "the old state is back" in found["msg"]) == (True, True)
    assert run_module(admin_accounts, phase="rollback")["changed"] is False


@pytest.mark.parametrize("phase", ["apply", "trial"])
def test_a_change_needs_admins(run_module: RunModule, phase: str) -> None:
    found = run_module(admin_accounts, phase=phase)
    assert found["failed"] and "missing: admins" in found["msg"]


def test_a_removed_sudo_is_reported_if_an_admin_needs_sudo(node: Node) -> None:
    node.apply({})
    (node.root / "visudo").unlink()
    found = node.apply({}, check=True)
    assert (found["differs"], found["changed"]) == (["sudo is not installed"], False)
    assert node.apply(check=True)["differs"] == [], "no admin needs sudo"


def test_the_user_of_a_service_is_made_and_has_neither_home_nor_shell(node: Node) -> None:
    predicted = node.apply(service="engines", check=True)
    assert predicted["differs"] == ["make the group engines", "make the user engines"] and node.commands == []
    assert node.apply(service="engines") == predicted
    assert node.account("engines").pw_shell == "/usr/sbin/nologin"
    assert node.apply(service="engines")["differs"] == []
    node.shells["engines"] = "/bin/bash"
    assert node.apply(service="engines")["differs"] == ["remove home directory and shell of the user engines"]
    assert not node.apply(service="engines")["changed"]


def test_the_user_of_a_service_is_made_only_on_request(node: Node) -> None:
    assert node.apply()["differs"] == [] and node.commands == []


@pytest.mark.parametrize("name", ["root", "Engines", ""])
def test_an_invalid_name_of_the_service_user_is_refused(node: Node, name: str) -> None:
    with pytest.raises(InputError, match="common_user"):
        node.apply(service=name or " ")
    assert node.commands == []


def test_a_failure_names_the_changes_that_were_done_or_begun(
    node: Node, run_module: RunModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = node.run

    def broken(*command: str, text: str = "") -> tuple[int, str]:
        return (1, "the disk is full") if command[0] == "useradd" else run(*command, text=text)

    monkeypatch.setattr(admin_accounts, "run", broken)
    monkeypatch.setattr(admin_accounts.grp, "getgrnam", {}.__getitem__)
    found = run_module(admin_accounts, admins=[], service_user="engines", make_service_user=True)
    assert found["failed"] and "the disk is full Done or begun: make the group engines; make the user" in found["msg"]
