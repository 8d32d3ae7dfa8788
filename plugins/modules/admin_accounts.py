#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: admin_accounts
short_description: Manage the admins of a machine, their SSH keys and sudo rules, and the user of a service
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Creates users that log in with SSH keys and have no password, with their groups and their sudo rule.
  - Checks the input before the first change. A text that is no public key is never printed, because it may be a
    private key.
  - Removes keys that are not declared from C(authorized_keys) and C(authorized_keys2). C(visudo) checks the sudo rule
    before it is written to C(/etc/sudoers.d/inference-NAME).
  - For an absent admin, removes keys, sudo rule, sessions and account. The home directory stays.
  - With O(phase=trial), a timer of systemd undoes the change after O(seconds) if it concerns the user of Ansible's
    current connection. O(phase=confirm) makes the change permanent before that, O(phase=rollback) undoes it at once.
    Changes of other users are permanent at once.
extends_documentation_fragment:
  - baremetal.inference.attributes
  - baremetal.inference.trial
attributes:
  check_mode:
    support: full
    details:
      - If sudo is not installed yet, its rules are not checked.
  diff_mode:
    support: full
    details:
      - Keys are shown by their fingerprints.
options:
  admins:
    description:
      - The admins. Users that are not listed stay unchanged.
      - Required with O(phase=apply) and O(phase=trial).
    type: list
    elements: dict
    suboptions:
      name:
        description: The user's name.
        type: str
        required: true
      keys:
        description: Public keys, each as the line of a C(.pub) file. Options may precede a key.
        type: list
        elements: str
        default: []
      sudo:
        description:
          - Sudo rules without the user's name. An empty list means no rules.
          - If omitted, the admin may run every command, with C(NOPASSWD), because the admin has no password.
        type: list
        elements: str
      groups:
        description:
          - The exact list of the user's groups other than its own group. Missing groups are created.
          - If omitted, the user's groups stay unchanged.
        type: list
        elements: str
      shell:
        description: The login shell. If omitted, a new user gets C(/bin/bash), and an existing user keeps its shell.
        type: path
      state:
        description: Whether the admin is set up or removed.
        type: str
        choices: [present, absent]
        default: present
  service_user:
    description: The user that a service runs as. It must not be an admin.
    type: str
    default: ""
  make_service_user:
    description:
      - Create O(service_user), and a group of the same name, as a system account without home directory, shell and
        password.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Create the user that engines run as
  baremetal.inference.admin_accounts:
    admins: []
    service_user: inference
    make_service_user: true

- name: Set up two admins, and remove a third
  baremetal.inference.admin_accounts:
    admins:
      - name: alice
        keys:
          - "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2VGWBPgbVPMyfzZKaTCM1gbqz2ETAGlrMjCkaxVOEt alice@example.org"
      - name: bob
        keys:
          - "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBzY0dEPcFMW4q5mGhTAnBbVKnzYBRO0pDWcm0PdJ/Hk bob@example.org"
        groups: [adm]
        sudo: ["ALL=(root) NOPASSWD: /usr/bin/systemctl restart vllm@*"]
      - name: carol
        state: absent
"""

RETURN = r"""
differs:
  description:
    - The changes, or in check mode the changes to come, one phrase each.
    - Also whether sudo is missing, and in check mode whether the change of an earlier run is on trial.
  returned: with O(phase=apply) and O(phase=trial)
  type: list
  elements: str
sudo_installed:
  description: Whether sudo is installed.
  returned: with O(phase=apply) and O(phase=trial)
  type: bool
trial:
  description: Whether a change of the connection's user waits for O(phase=confirm).
  returned: with O(phase=apply) and O(phase=trial)
  type: bool
user:
  description: The user that has logged in for this run; empty without SSH.
  returned: with O(phase=apply) and O(phase=trial)
  type: str
"""

import grp
import os
import pwd
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError, Problem
from ansible_collections.baremetal.inference.plugins.module_utils.core.quiet_module import QuietModule
from ansible_collections.baremetal.inference.plugins.module_utils.debian import accounts as declared_admins
from ansible_collections.baremetal.inference.plugins.module_utils.debian import ssh_session
from ansible_collections.baremetal.inference.plugins.module_utils.debian.accounts import Admin
from ansible_collections.baremetal.inference.plugins.module_utils.debian.trial import (
    APPLY,
    ENDINGS,
    PHASES,
    TRIAL,
    Trial,
    TrialError,
)

SUDOERS = Path("/etc/sudoers.d")
VISUDO = Path("/usr/sbin/visudo")
PROC = Path("/proc")
SHADOW = Path("/etc/shadow")
LOGINS = Path("/run/systemd/users")
"""A file for each user with sessions, by the user's number. logind writes these files."""

TRIAL_NAME = "admins"

SHELL = "/bin/bash"

NO_HOME = "/nonexistent"
NO_SHELL = "/usr/sbin/nologin"
"""Home and shell of a user without log-ins. Source: Debian policy 9.2.3"""

REMOVED = "1"
"""The expiry date, in days since 1970, that marks an account whose removal has begun."""

NO_PASSWORD = "*"
"""A password hash that no password matches. An exclamation mark would lock the account, also for keys, on a server
without PAM. Source: sshd(8), LOGIN PROCESS"""

KEY_FILE = "authorized_keys"
KEY_FILES = (KEY_FILE, "authorized_keys2")
"""The key files that sshd reads in ~/.ssh. Source: AuthorizedKeysFile in sshd_config(5)"""

QUICK = 60
"""Time limit of a command, in seconds."""

END = 5.0
"""How long to wait until killed processes are gone, in seconds."""


class AccountError(Exception):
    """A command failed, or the node does not allow the declared state. The text is for the operator."""


def run(*command: str, text: str = "") -> tuple[int, str]:
    """Exit code and output of a command. Raises AccountError if the command hangs."""
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
    try:
        result = subprocess.run(
            command,
            input=text,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=QUICK,
            env=environment,
            cwd="/",
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise AccountError(f"{shlex.join(command)} did not end within {QUICK} s") from error
    return result.returncode, (result.stdout + result.stderr).strip()


def must(*command: str) -> None:
    """Run a command. Raises AccountError if the command fails or hangs."""
    code, output = run(*command)
    if code:
        raise AccountError(f"{shlex.join(command)} failed ({code}): {output}")


@contextmanager
def acting_as(account: pwd.struct_passwd) -> Iterator[None]:
    """Switch to the user and group of an account, so that a link in the home gives access to nothing else."""
    groups = os.getgroups()
    os.setgroups([])
    os.setegid(account.pw_gid)
    os.seteuid(account.pw_uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)


def rule_file(name: str) -> Path:
    """The file of an admin's sudo rule."""
    return SUDOERS / f"inference-{name}"


def in_place(path: Path, text: str) -> bool:
    """Whether a rule's file has the wanted text, and the owner and mode that sudo accepts."""
    if not path.exists():
        return not text
    status = path.stat()
    return files.text(path) == text and (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (0, 0, 0o440)


class Manager:
    """One run: inspect the node, and (outside check mode) change it."""

    def __init__(self, module: QuietModule) -> None:
        self.module = module
        self.trial = Trial(TRIAL_NAME)
        self.login = ssh_session.login() or ssh_session.Login("", "")
        self.differs: list[str] = []
        self.diff: list[dict[str, str]] = []
        self.on_trial = False
        self.applies = not module.check_mode

    # --- Inspect

    def inspect(self) -> None:
        """Undo a change that is still on trial, read the node, and check the input.

        Raises InputError, AccountError and TrialError.
        """
        if self.applies:
            self.trial.rollback()
        self.accounts = {account.pw_name: account for account in pwd.getpwall()}
        self.groups = {group.gr_name: group.gr_gid for group in grp.getgrall()}
        users = {name: account.pw_uid for name, account in self.accounts.items()}
        self.admins, found = declared_admins.understand(
            self.module.params["admins"], users, self.groups, self.module.params["service_user"], self.login.user
        )
        found += self.service_problems()
        present = [admin for admin in self.admins if admin.present]
        for number, admin in enumerate(self.admins):
            if admin.present:
                found += self.shell_problems(number, admin)
        # After a problem in a rule's text, for example a line break, visudo would check another rule than declared.
        if VISUDO.exists() and not any(problem.key == "sudo" for problem in found):
            for admin in present:
                found += self.rule_problems(admin)
        if found:
            raise InputError(found)
        undeclared = {path.name.removeprefix("inference-") for path in SUDOERS.glob("inference-*")}
        for name in sorted(undeclared - {admin.name for admin in self.admins}):
            self.module.warn(
                f"{name} was an admin and is not in common_admins any more: declare it with state: absent to remove it."
            )

    def service_problems(self) -> list[Problem]:
        """Problems with the name of the service's user."""
        name = self.module.params["service_user"]
        if not self.module.params["make_service_user"]:
            return []
        if not declared_admins.NAME.fullmatch(name):
            message = "must be 1 to 32 of a-z, 0-9, _ and -, and begin with a letter or _"
            return [Problem("common_user", message, "name", name)]
        if name == "root":
            message = "must not be root, whose home and shell stay: choose another, or set common_user_enabled to false"
            return [Problem("common_user", message, "name", name)]
        return []

    def shell_problems(self, number: int, admin: Admin) -> list[Problem]:
        """Problems with an admin's shell."""
        if admin.shell is None or (os.access(admin.shell, os.X_OK) and Path(admin.shell).is_file()):
            return []
        message = "must be a program on the node: correct it, or install the shell first"
        return [Problem(f"common_admins[{number}] {admin.name}", message, "shell", admin.shell)]

    def rule_problems(self, admin: Admin) -> list[Problem]:
        """Problems that visudo finds in a new or changed rule."""
        if in_place(rule_file(admin.name), admin.sudo_text):
            return []
        code, output = run(str(VISUDO), "-c", "-f", "-", text=admin.sudo_text)
        if code == 0:
            return []
        return [Problem(f"common_admins {admin.name}", f"visudo refuses it: {output}", "sudo", list(admin.sudo))]

    # --- Change

    def apply(self) -> dict[str, Any]:
        """The module's result. Raises AccountError, TrialError and OSError."""
        if self.module.params["make_service_user"]:
            self.have_service_user(self.module.params["service_user"])
        for admin in self.admins:
            if admin.present:
                self.have(admin)
            else:
                self.remove(admin)
        # Without sudo, the rules have no effect.
        more = ["sudo is not installed"] if self.admins and not VISUDO.exists() else []
        more += [] if self.applies else self.trial.left
        result = {
            "changed": bool(self.differs),
            "differs": self.differs + more,
            "sudo_installed": VISUDO.exists(),
            "trial": self.on_trial,
            "user": self.login.user,
        }
        if self.module._diff:
            result["diff"] = self.diff
        return result

    def have_service_user(self, name: str) -> None:
        """Create or correct the user that a service runs as, with a group of the same name."""
        try:
            # Looked up by name: a directory service need not list its users and groups.
            number: int | None = grp.getgrnam(name).gr_gid
        except KeyError:
            number = None
            self.do(f"make the group {name}", "groupadd", "--system", name)
            self.groups[name] = -1
        account = self.account(name)
        if account is None:
            words = ("--system", "--no-create-home", "--home-dir", NO_HOME, "--shell", NO_SHELL, "--gid", name)
            self.do(f"make the user {name}", "useradd", *words, name)
        elif (account.pw_gid, account.pw_dir, account.pw_shell) != (number, NO_HOME, NO_SHELL):
            self.do(
                f"remove home directory and shell of the user {name}", "usermod",
                "--home", NO_HOME, "--shell", NO_SHELL, "--gid", name, name,
            )  # fmt: skip

    def have(self, admin: Admin) -> None:
        """Set up one admin. The sudo rule comes last, because it needs the account."""
        account = self.accounts.get(admin.name)
        if account and admin.name == self.login.user and self.applies and self.module.params["phase"] == TRIAL:
            self.begin(admin, account)
        self.have_groups(admin)
        if account is None:
            self.create(admin)
        else:
            self.adjust(admin, account)
        self.have_keys(admin)
        self.have_rule(admin)

    def begin(self, admin: Admin, account: pwd.struct_passwd) -> None:
        """Start the timer that undoes changes of the connection's user, if there are any. Raises TrialError."""
        before = self.keys_of(account)
        rule = rule_file(admin.name)
        groups = self.groups_of(admin.name)
        steps = []
        if before != {KEY_FILE: admin.keys_text}:
            home = shlex.quote(account.pw_dir)
            user = shlex.quote(admin.name)
            for name in KEY_FILES:
                path = f"{home}/.ssh/{name}"
                if name in before:
                    kept = shlex.quote(str(self.trial.keep(name, before[name])))
                    script = f"cat > {path}.new && chmod 600 {path}.new && mv {path}.new {path}"
                    steps.append(f"runuser -u {user} -- sh -c {shlex.quote(script)} < {kept}")
                else:
                    steps.append(f"runuser -u {user} -- rm -f {path}")
        if not in_place(rule, admin.sudo_text):
            if rule.exists():
                kept = shlex.quote(str(self.trial.keep("rule", files.text(rule) or "")))
                steps.append(f"install -m 0440 {kept} {shlex.quote(str(rule))}")
            else:
                steps.append(f"rm -f {shlex.quote(str(rule))}")
        if admin.groups is not None and set(admin.groups) != groups:
            steps.append(f"usermod --groups {shlex.quote(','.join(sorted(groups)))} {shlex.quote(admin.name)}")
        if admin.shell and admin.shell != account.pw_shell:
            steps.append(f"usermod --shell {shlex.quote(account.pw_shell)} {shlex.quote(admin.name)}")
        if steps:
            self.trial.begin(steps, self.module.params["seconds"])
            self.on_trial = True

    def have_groups(self, admin: Admin) -> None:
        """Create the missing groups. A package that is installed later uses the existing group."""
        for group in admin.groups or ():
            if group not in self.groups:
                self.do(f"make the group {group}", "groupadd", "--system", group)
                self.groups[group] = -1

    def create(self, admin: Admin) -> None:
        """Create an account. An existing group of this name becomes the user's own."""
        own = ["--gid", admin.name] if admin.name in self.groups else []
        groups = ["--groups", ",".join(admin.groups)] if admin.groups else []
        self.do(
            f"make the user {admin.name}", "useradd", "--create-home", "--shell", admin.shell or SHELL,
            "--password", NO_PASSWORD, *own, *groups, admin.name,
        )  # fmt: skip

    def adjust(self, admin: Admin, account: pwd.struct_passwd) -> None:
        """Correct the shell and the groups of an account. Enable an account again whose removal was cut off."""
        if expiry(admin.name) == REMOVED:
            words = ("--expiredate", "", "--password", NO_PASSWORD)
            self.do(f"open the account of {admin.name} again", "usermod", *words, admin.name)
        if admin.shell and admin.shell != account.pw_shell:
            self.do(f"give {admin.name} the shell {admin.shell}", "usermod", "--shell", admin.shell, admin.name)
        if admin.groups is not None and set(admin.groups) != self.groups_of(admin.name):
            names = ",".join(admin.groups)
            self.do(f"put {admin.name} into the groups {names or '(none)'}", "usermod", "--groups", names, admin.name)

    def groups_of(self, name: str) -> set[str]:
        """The groups of a user other than its own group."""
        return {group.gr_name for group in grp.getgrall() if name in group.gr_mem}

    def keys_of(self, account: pwd.struct_passwd) -> dict[str, str]:
        """The texts of the existing key files by name, read with the user's rights. Raises AccountError."""
        directory = Path(account.pw_dir, ".ssh")
        try:
            with acting_as(account):
                places = [directory / name for name in KEY_FILES]
                return {place.name: files.text(place) or "" for place in places if place.exists()}
        except OSError as error:
            raise AccountError(
                f"{account.pw_name}: cannot read its keys: {error}. The user must be able to read its files in .ssh."
            ) from error

    def have_keys(self, admin: Admin) -> None:
        """Write exactly the declared keys. Raises AccountError."""
        account = self.account(admin.name)
        before = self.keys_of(account) if account else {}
        if before == {KEY_FILE: admin.keys_text}:
            return
        # The difference may be only the comment of a key.
        old = "".join(before.values())
        self.note(f"replace the keys of {admin.name}")
        self.diff.append(
            {
                **dict.fromkeys(("before_header", "after_header"), f"keys of {admin.name}"),
                **declared_admins.changed_lines(old, admin.keys_text),
            }
        )
        if not self.applies or account is None:
            return
        directory = Path(account.pw_dir, ".ssh")
        try:
            with acting_as(account):
                directory.mkdir(mode=0o700, exist_ok=True)
                # sshd ignores keys in a directory that others may write to.
                directory.chmod(directory.stat().st_mode & 0o755)
                files.write(directory / KEY_FILE, admin.keys_text, 0o600)
                for name in KEY_FILES:
                    if name != KEY_FILE:
                        directory.joinpath(name).unlink(missing_ok=True)
        except OSError as error:
            raise AccountError(
                f"{admin.name}: cannot write its keys: {error}. {account.pw_dir} must be the user's own"
                f" (chown -R {admin.name}: {shlex.quote(account.pw_dir)})."
            ) from error

    def account(self, name: str) -> pwd.struct_passwd | None:
        """An account as it is now; None if it does not exist, as in check mode for a new user."""
        try:
            return pwd.getpwnam(name)
        except KeyError:
            return None

    def have_rule(self, admin: Admin) -> None:
        """Write or remove the sudo rule. Raises AccountError."""
        path = rule_file(admin.name)
        if in_place(path, admin.sudo_text):
            return
        self.note(
            f"write the sudo rule of {admin.name}" if admin.sudo_text else f"remove the sudo rule of {admin.name}"
        )
        self.diff.append(
            {
                **dict.fromkeys(("before_header", "after_header"), str(path)),
                "before": files.text(path) or "",
                "after": admin.sudo_text,
            }
        )
        if not self.applies:
            return
        if not admin.sudo_text:
            path.unlink()
        elif not VISUDO.exists():
            raise AccountError(
                f"{admin.name}: sudo is not installed, so its rule cannot be checked. Install the package sudo first."
            )
        else:
            files.write(path, admin.sudo_text, 0o440)

    def remove(self, admin: Admin) -> None:
        """Remove an admin: first sudo rule and keys, then sessions, then the account. Raises AccountError."""
        account = self.accounts.get(admin.name)
        rule = rule_file(admin.name)
        if rule.exists():
            self.note(f"remove the sudo rule of {admin.name}")
            if self.applies:
                rule.unlink()
        if account is None:
            return
        self.note(f"end the sessions of {admin.name}, and remove its keys and its account")
        if not self.applies:
            return
        must("usermod", "--lock", "--expiredate", REMOVED, admin.name)
        try:
            # A home that is no directory has no keys.
            with suppress(NotADirectoryError), acting_as(account):
                for name in KEY_FILES:
                    Path(account.pw_dir, ".ssh", name).unlink(missing_ok=True)
        except OSError as error:
            self.module.warn(
                f"{admin.name}: its keys could not be removed: {error}. The home directory stays: delete"
                f" {account.pw_dir}/.ssh before you create this user again."
            )
        self.end_sessions(account)
        must("userdel", admin.name)

    def end_sessions(self, account: pwd.struct_passwd) -> None:
        """End a user's processes outside of containers, so that none keeps the user's number. Raises AccountError."""
        # loginctl also ends shells that sudo has started. Without loginctl, the user has no sessions.
        with suppress(FileNotFoundError):
            code, output = run("loginctl", "terminate-user", account.pw_name)
            # logind also refuses a user without sessions.
            if code and LOGINS.joinpath(str(account.pw_uid)).exists():
                raise AccountError(
                    f"{account.pw_name}: loginctl cannot end the sessions ({code}): {output}. The account is locked,"
                    " and stays. Correct the cause or reboot the machine, then run again."
                )
        deadline = time.monotonic() + END
        while processes := [path for path in PROC.glob("[0-9]*") if owner(path) == account.pw_uid and is_ours(path)]:
            if time.monotonic() > deadline:
                raise AccountError(
                    f"{account.pw_name}: process {processes[0].name} cannot be killed, so the account stays. It is"
                    " locked. End the process or reboot the machine, then run again."
                )
            for path in processes:
                with suppress(ProcessLookupError):
                    os.kill(int(path.name), signal.SIGKILL)
            time.sleep(0.1)

    def note(self, action: str) -> None:
        self.differs.append(action)

    def do(self, action: str, *command: str) -> None:
        """Record one change, and outside check mode run its command. Raises AccountError."""
        self.note(action)
        if self.applies:
            must(*command)


def is_ours(path: Path) -> bool:
    """Whether a process runs outside of containers. In a container, the same number may be another user."""
    try:
        return os.readlink(path / "ns/pid") == os.readlink(PROC / "1/ns/pid")
    except FileNotFoundError:
        return False


def expiry(name: str) -> str:
    """The expiry date of an account, in days since 1970; empty for none. Source: shadow(5)."""
    fields = next(
        (line.split(":") for line in (files.text(SHADOW) or "").splitlines() if line.startswith(f"{name}:")), []
    )
    return fields[7] if len(fields) > 7 else ""


def owner(path: Path) -> int:
    """The number of a process's user; -1 if the process has ended."""
    try:
        return path.stat().st_uid
    except FileNotFoundError:
        return -1


def main() -> None:
    admins = {
        "type": "list",
        "elements": "dict",
        "options": {
            "name": {"type": "str", "required": True},
            # no_log, because a private key may be pasted here by mistake.
            "keys": {"type": "list", "elements": "str", "default": [], "no_log": True},
            "sudo": {"type": "list", "elements": "str"},
            "groups": {"type": "list", "elements": "str"},
            "shell": {"type": "path"},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
    }
    module = QuietModule(
        argument_spec={
            "admins": admins,
            "service_user": {"type": "str", "default": ""},
            "make_service_user": {"type": "bool", "default": False},
            "phase": {"type": "str", "choices": PHASES, "default": APPLY},
            "seconds": {"type": "int", "default": 60},
        },
        required_if=[("phase", APPLY, ["admins"]), ("phase", TRIAL, ["admins"])],
        supports_check_mode=True,
    )
    phase = module.params["phase"]
    if phase in ENDINGS:
        try:
            module.exit_json(changed=Trial(TRIAL_NAME).end(phase, module.check_mode))
        except (TrialError, OSError) as error:
            module.fail_json(msg=str(error))
    manager = Manager(module)
    try:
        manager.inspect()
        result = manager.apply()
    except InputError as error:
        module.fail_json(msg="\n- ".join(["The users were not changed.", *map(str, error.problems)]))
    except (AccountError, TrialError, OSError) as error:
        done = f" Done or begun: {'; '.join(manager.differs)}." if manager.differs and manager.applies else ""
        module.fail_json(msg=f"{error}{done}")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
