#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: ssh_server
short_description: Configure the SSH server without locking the operator out
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Manages C(/etc/ssh/sshd_config.d/10-inference.conf), and changes no other file of the server.
  - Before anything is written, sshd checks the whole new configuration. The module reads from sshd the values that
    would be in effect, for all users, for root, for admins and for the connection's user. If another file overrides a
    value, the module fails with the name and the line of the other file.
  - Refuses a configuration that would shut out an admin, or the user of Ansible's current connection.
  - Reloads the server. If C(ssh.socket) starts the server, stops it until the next connection. Sessions stay. If this
    fails, the old file is put back.
  - With O(phase=trial), a timer of systemd puts the old file back after O(seconds), also if Ansible is cut off.
    O(phase=confirm) makes the change permanent before that, O(phase=rollback) puts the old file back at once.
extends_documentation_fragment:
  - baremetal.inference.attributes
  - baremetal.inference.trial
attributes:
  check_mode:
    support: full
    details:
      - Check mode creates C(/run/sshd) if it is missing, because sshd checks no configuration without this directory.
  diff_mode:
    support: full
options:
  base:
    description:
      - The values to set, by keyword. A list becomes several lines.
      - Required with O(phase=apply) and O(phase=trial).
    type: dict
  config:
    description: Further values, which override those of O(base).
    type: dict
    default: {}
  admins:
    description: Users that must be able to log in with a key.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: The user's name. It need not exist yet.
        type: str
        required: true
      groups:
        description: Groups that the user will be added to.
        type: list
        elements: str
        default: []
"""

EXAMPLES = r"""
- name: Allow only keys
  baremetal.inference.ssh_server:
    base:
      PasswordAuthentication: false
      KbdInteractiveAuthentication: false
    phase: trial
  register: result

- name: Try a new connection
  ansible.builtin.wait_for_connection:
    timeout: 30
  vars:
    ansible_control_path: none

- name: Keep the change
  baremetal.inference.ssh_server:
    phase: confirm
  when: result.trial
"""

RETURN = r"""
closes:
  description: Whether this change stops log-ins by password that worked before.
  returned: with O(phase=apply) and O(phase=trial)
  type: bool
differs:
  description: The differences between node and input, one phrase each.
  returned: with O(phase=apply) and O(phase=trial)
  type: list
  elements: str
trial:
  description: Whether a change waits for O(phase=confirm).
  returned: with O(phase=apply) and O(phase=trial)
  type: bool
user:
  description: The user that has logged in for this run; empty without SSH.
  returned: with O(phase=apply) and O(phase=trial)
  type: str
"""

import glob
import grp
import os
import pwd
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError, Problem
from ansible_collections.baremetal.inference.plugins.module_utils.debian import ssh_session, sshd
from ansible_collections.baremetal.inference.plugins.module_utils.debian.sshd import SshdError
from ansible_collections.baremetal.inference.plugins.module_utils.debian.trial import (
    APPLY,
    ENDINGS,
    PHASES,
    TRIAL,
    Trial,
    TrialError,
)

MAIN = Path("/etc/ssh/sshd_config")
OURS = Path("/etc/ssh/sshd_config.d/10-inference.conf")
"""The file of this module. It sorts before 50-cloud-init.conf, which allows passwords: the first value counts."""

DEFAULTS = Path("/etc/default/ssh")
"""The file with options for sshd's command line in Debian."""

SSHD = Path("/usr/sbin/sshd")
RUN_SSHD = Path("/run/sshd")
"""The directory that sshd needs. Debian's units create it at their start, and remove it at their stop."""

KEY_FILES = frozenset({".ssh/authorized_keys", "%h/.ssh/authorized_keys"})
"""The values of AuthorizedKeysFile for the file to which admins' keys are written."""

TRIAL_NAME = "ssh"

RELOAD = """\
if systemctl is-active --quiet ssh.socket; then systemctl stop ssh.service
elif systemctl is-active --quiet ssh.service; then systemctl reload ssh.service; fi"""
"""Server.reload for a shell. A service started by ssh.socket cannot reload: it cannot bind its addresses again ("Cannot
bind any address", OpenSSH 10.0 on Debian 13). It may stop instead, because the next connection starts it again."""

QUICK = 30
"""Time limit of a command, in seconds."""

RESTART = 1.0
"""How long to wait for sshd's reload, in seconds. Until then, it accepts connections with the old configuration."""


class Server:
    """The node's SSH server."""

    def __init__(self) -> None:
        self.options = self._options()

    def _options(self) -> list[str]:
        """The options that Debian's unit passes to sshd. Raises SshdError."""
        text = files.text(DEFAULTS) or ""
        options: list[str] = []
        for line in text.splitlines():
            name, _equals, value = line.strip().partition("=")
            if name != "SSHD_OPTS":
                continue
            try:
                options = shlex.split(" ".join(shlex.split(value)))
            except ValueError as error:
                raise SshdError(
                    f"SSHD_OPTS in {DEFAULTS} has a quote without an end. Correct the file. Nothing was changed."
                ) from error
        if any(option.startswith("-f") for option in options):
            raise SshdError(
                f"SSHD_OPTS in {DEFAULTS} sets another file than {MAIN}. Remove the option -f. Nothing was changed."
            )
        return options

    def run(self, *command: str) -> tuple[int, str]:
        """Exit code and output of a command. Raises SshdError if the command hangs."""
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
        try:
            result = subprocess.run(
                command,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=QUICK,
                env=environment,
                cwd="/",
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise SshdError(f"{shlex.join(command)} did not end within {QUICK} s") from error
        return result.returncode, (result.stdout + result.stderr).strip()

    def ask(self, path: str, *arguments: str) -> tuple[bool, str]:
        """Let sshd check a configuration (-t), or print its effective values (-T). Returns success, and the output."""
        # Not removed afterwards: a server that has started meanwhile would refuse all log-ins without the directory.
        RUN_SSHD.mkdir(mode=0o755, exist_ok=True)
        code, output = self.run(str(SSHD), *self.options, "-f", path, *arguments)
        return code == 0, output

    def active(self, unit: str) -> bool:
        """Whether a unit runs."""
        return self.run("systemctl", "is-active", "--quiet", unit)[0] == 0

    def reload(self) -> None:
        """Apply the files. Sessions stay. Raises SshdError."""
        if self.active("ssh.socket"):
            verb = "stop"
        elif self.active("ssh.service"):
            verb = "reload"
        else:
            return
        code, output = self.run("systemctl", verb, "ssh.service")
        if code:
            raise SshdError(output)
        time.sleep(RESTART)


def listed(pattern: str, extra: str = "") -> list[str]:
    """The files that match a pattern of Include, in sshd's order, with `extra` if it matches."""
    found = set(glob.glob(pattern))
    # Both glob and match ignore names that begin with a dot.
    if extra and Path(extra).match(pattern) and Path(pattern).parent == Path(extra).parent:
        found.add(extra)
    return sorted(found)


def groups_of(user: str) -> list[str]:
    """The groups of a user; empty if the user does not exist. A group without a name is left out, as in sshd."""
    try:
        account = pwd.getpwnam(user)
    except KeyError:
        return []
    names = []
    for number in os.getgrouplist(user, account.pw_gid):
        with suppress(KeyError):
            names.append(grp.getgrgid(number).gr_name)
    return names


class Manager:
    """One run: inspect the node, and (outside check mode) change it."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.trial = Trial(TRIAL_NAME)
        self.login = ssh_session.login() or ssh_session.Login("", "")
        self.admins: dict[str, list[str]] = {item["name"]: item["groups"] for item in module.params["admins"]}

    def inspect(self) -> None:
        """Undo a change that is still on trial, read the node, and check the input.

        Raises SshdError, TrialError and InputError.
        """
        if not SSHD.exists():
            raise SshdError(
                f"{SSHD} is missing: install openssh-server, or set common_ssh_enabled to false. Nothing was changed."
            )
        if not self.module.check_mode:
            self.trial.rollback()
        self.server = Server()
        base, declared = self.module.params["base"], self.module.params["config"]
        passwords = sshd.render({"x": base.get("PasswordAuthentication")}).splitlines()[-1] != "x no"
        found = sshd.problems(declared, passwords)
        if found:
            raise InputError(found)
        self.settings = sshd.merge(base, declared)
        self.old = OURS.read_text(encoding="utf-8", errors="replace") if OURS.exists() else None
        self.new = sshd.render(self.settings)
        before = self.values(str(MAIN))
        with self.candidate() as path:
            wanted = self.judge()
            accepted, words = self.server.ask(path, "-t")
            if not accepted:
                raise SshdError(
                    f"sshd refuses the new configuration as a whole: {self.renamed(words)}. Correct the named file or"
                    " common_ssh_config. Nothing was changed."
                )
            after = self.values(path)
        self.refuse(wanted, after)
        # If the old values are unknown, passwords count as allowed before.
        self.closes = not before or any(map(sshd.passwords_work, before.values()))
        self.closes = self.closes and not any(map(sshd.passwords_work, after.values()))
        self.after = after

    @contextmanager
    def candidate(self) -> Iterator[str]:
        """A temporary copy of the whole new configuration. Yields the path of its main file."""
        with tempfile.TemporaryDirectory() as directory:
            self.names: dict[str, str] = {}

            def keep(path: str, text: str) -> str:
                name = str(Path(directory, f"{len(self.names)}.conf"))
                Path(name).write_text(text, encoding="utf-8")
                self.names[name] = path
                return name

            self.alone = keep(str(OURS), self.new)
            yield sshd.copied(str(MAIN), self.read, self.listed, keep)

    def read(self, path: str) -> str:
        """A file's text in the new configuration."""
        return self.new if path == str(OURS) else files.text(Path(path)) or ""

    def listed(self, pattern: str) -> list[str]:
        """The files of a pattern in the new configuration."""
        return listed(pattern, str(OURS))

    def renamed(self, words: str) -> str:
        """sshd's message, with the real names of the copied files."""
        for copy, path in sorted(self.names.items(), reverse=True):
            words = words.replace(copy, path)
        return words

    def judge(self) -> dict[str, set[str]]:
        """The effective values of this module's file alone. Raises SshdError."""
        accepted, words = self.server.ask(self.alone, "-T")
        if not accepted:
            raise SshdError(
                f"sshd refuses the values of common_ssh_config in {OURS}: {self.renamed(words)}\n"
                "Correct these values; sshd_config(5) on the node lists those of its version. Nothing was changed."
            )
        return sshd.effective(words)

    def values(self, path: str) -> dict[str, dict[str, set[str]]]:
        """The effective values for all users (the empty name) and for each user, except where sshd prints none."""
        found = {}
        for user in ["", *sorted({self.login.user, "root", *self.admins} - {""})]:
            address = self.login.address or "127.0.0.1"
            match = ["-C", f"user={user},host={address},addr={address}"] if user else []
            accepted, words = self.server.ask(path, "-T", *match)
            if accepted:
                found[user] = sshd.effective(words)
        return found

    def refuse(self, wanted: dict[str, set[str]], after: dict[str, dict[str, set[str]]]) -> None:
        """Check the values that would be in effect. Raises InputError with all problems."""
        every = list(sshd.lines(str(MAIN), self.read, self.listed))
        found: list[Problem] = []
        reported: set[tuple[str, str]] = set()
        if not any(line.path == str(OURS) for line in every):
            raise InputError([Problem(str(OURS), sshd.NOT_INCLUDED)])
        for user, values in after.items():
            for keyword, (should, is_now) in sshd.overridden(self.settings, wanted, values).items():
                if (keyword, is_now) in reported:
                    continue
                reported.add((keyword, is_now))
                why = sshd.culprit(keyword, every, str(OURS))
                for_whom = f" for {user}" if user else ""
                found.append(Problem(keyword, f"would be {is_now}{for_whom} instead of {should}, {why}"))
        # The empty name stands for all users, and for a connection without SSH.
        for user, name in {
            self.login.user: "the user of the current connection",
            **dict.fromkeys(self.admins, "an admin"),
        }.items():
            values = after.get(user, {}) if user else {}
            groups = [*(groups_of(user) or [user]), *self.admins.get(user, [])]
            reason = sshd.shut_out(values, user, groups, self.login.address if user == self.login.user else "")
            if reason:
                found.append(Problem(user, f"{name} would be shut out, because {reason}"))
            if user in self.admins and not KEY_FILES & set(" ".join(values.get("authorizedkeysfile", ())).split()):
                names = ", ".join(values.get("authorizedkeysfile", ()))
                found.append(Problem(user, f"AuthorizedKeysFile is {names}: it must name .ssh/authorized_keys too"))
        if found:
            raise InputError(found)

    def apply(self) -> dict[str, Any]:
        """Apply the change, and return the result. Puts the old file back on an error. Raises SshdError, TrialError."""
        changed = self.new != self.old
        on_trial = changed and self.module.params["phase"] == TRIAL and not self.module.check_mode
        if changed and not self.module.check_mode:
            if on_trial:
                self.begin()
            try:
                self.change()
            except (SshdError, OSError) as error:
                raise SshdError(f"{OURS}: {error}\n{self.put_back()}") from error
        result = {
            "changed": changed,
            "differs": [
                *([f"{OURS} differs"] if changed else []),
                *(self.trial.left if self.module.check_mode else []),
            ],
            "closes": self.closes,
            "trial": on_trial,
            "user": self.login.user,
        }
        if self.module._diff:
            result["diff"] = {
                "before_header": str(OURS), "after_header": str(OURS), "before": self.old or "", "after": self.new
            }  # fmt: skip
        return result

    def begin(self) -> None:
        """Start the timer that puts the old file back unless the change is confirmed. Raises TrialError."""
        if self.old is None:
            back = f"rm -f {shlex.quote(str(OURS))}"
        else:
            back = f"cp {shlex.quote(str(self.trial.keep('old.conf', self.old)))} {shlex.quote(str(OURS))}"
        self.trial.begin([back, RELOAD], self.module.params["seconds"])

    def put_back(self) -> str:
        """Put the old file back and reload. Returns the result, with the next step after an error."""
        try:
            if not self.trial.rollback():
                files.write(OURS, self.old)
                self.server.reload()
        except (SshdError, TrialError, OSError) as error:
            if not isinstance(error, OSError) and files.text(OURS) == self.old:
                return (
                    f"The old file was put back, but the server may not have loaded it: {error}\n"
                    "Keep a session open, read `journalctl --unit=ssh.service` on the node, correct the cause, and run"
                    " again."
                )
            # The caller also reports the error of the change, so this error must not replace it.
            return (
                f"The old file could not be put back: {error}\n"
                f"Keep a session open, and correct {OURS}: the next start of the server loads this file."
            )
        return "The old file was put back and is in effect."

    def change(self) -> None:
        """Write the file, compare the effective values with those expected, and reload. Raises SshdError."""
        files.write(OURS, self.new)
        if self.values(str(MAIN)) != self.after:
            raise SshdError(
                "sshd's values differ from those that it printed before: another program changes its files at the same"
                " time. Stop it, then run again."
            )
        self.server.reload()


def main() -> None:
    admins = {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "name": {"type": "str", "required": True},
            "groups": {"type": "list", "elements": "str", "default": []},
        },
    }
    module = AnsibleModule(
        argument_spec={
            "base": {"type": "dict"},
            "config": {"type": "dict", "default": {}},
            "admins": admins,
            "phase": {"type": "str", "choices": PHASES, "default": APPLY},
            "seconds": {"type": "int", "default": 60},
        },
        required_if=[("phase", APPLY, ["base"]), ("phase", TRIAL, ["base"])],
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
        module.fail_json(msg="\n- ".join(["The SSH server was not changed.", *map(str, error.problems)]))
    except (SshdError, TrialError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
