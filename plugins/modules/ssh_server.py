#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: ssh_server
short_description: Set values of the SSH server in a way that cannot lock the operator out
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Owns C(/etc/ssh/sshd_config.d/10-inference.conf), and leaves every other file of the server alone.
  - sshd itself judges the whole configuration as it would be, before anything is written, and says which values would
    be in effect, for everybody and for each user that matters. A value that another file overrides is refused with the
    name and the line of that file.
  - Refuses what would shut out the user of the very connection that the module came by, or an admin.
  - The server is reloaded, never restarted, so that sessions stay. When it does not reload, the old file is put back.
  - With O(phase=trial) a timer of systemd brings the old file back after O(seconds), whatever becomes of Ansible,
    unless O(phase=confirm) makes the change permanent before. O(phase=rollback) brings the old file back at once.
extends_documentation_fragment:
  - baremetal.inference.attributes
  - baremetal.inference.trial
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  base:
    description:
      - The values to set, by keyword. A list makes several lines.
      - Required with O(phase=apply) and O(phase=trial).
    type: dict
  config:
    description: Values in place of those of O(base), and more of them.
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
        description: Groups that it will be in, beside those that it is in.
        type: list
        elements: str
        default: []
"""

EXAMPLES = r"""
- name: Let keys in only
  baremetal.inference.ssh_server:
    base:
      PasswordAuthentication: false
      KbdInteractiveAuthentication: false
    phase: trial
  register: result

- name: Come by a new connection
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
  description: Whether log-ins by password work before this change, and no longer after it.
  returned: with O(phase=apply) and O(phase=trial)
  type: bool
differs:
  description: What differed from what is declared, for people.
  returned: with O(phase=apply) and O(phase=trial)
  type: list
  elements: str
trial:
  description: Whether a change is on trial and waits for its confirmation.
  returned: with O(phase=apply) and O(phase=trial)
  type: bool
user:
  description: Who has logged in for this run; empty where it was not by SSH.
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
from contextlib import contextmanager
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
"""Before 50-cloud-init.conf, which lets passwords in."""

DEFAULTS = Path("/etc/default/ssh")
"""Debian's options for sshd's command line."""

SSHD = Path("/usr/sbin/sshd")
RUN_SSHD = Path("/run/sshd")
"""What sshd wants to exist. Debian's units make it when they start, and remove it when they stop."""

KEY_FILES = frozenset({".ssh/authorized_keys", "%h/.ssh/authorized_keys"})
"""Where admins' keys are written, as AuthorizedKeysFile may call it."""

TRIAL_NAME = "ssh"

RELOAD = """\
if systemctl is-active --quiet ssh.socket; then systemctl stop ssh.service
elif systemctl is-active --quiet ssh.service; then systemctl reload ssh.service; fi"""
"""Server.reload for a shell. What ssh.socket has started cannot bind its addresses again when it is told to reload
("Cannot bind any address", OpenSSH 10.0 on Debian 13); it may stop, since the next connection starts it anew."""

QUICK = 30
"""Seconds for a command."""

RESTART = 1.0
"""Seconds for sshd to start over once it was told to reload; until then, it takes connections as before."""


class Server:
    """The node's SSH server."""

    def __init__(self) -> None:
        self.options = self._options()

    def _options(self) -> list[str]:
        """What Debian's unit puts on sshd's command line. Raises SshdError."""
        text = files.text(DEFAULTS) or ""
        options: list[str] = []
        for line in text.splitlines():
            name, _equals, value = line.strip().partition("=")
            if name == "SSHD_OPTS":
                options = shlex.split(" ".join(shlex.split(value)))
        if any(option.startswith("-f") for option in options):
            raise SshdError(f"SSHD_OPTS in {DEFAULTS} makes sshd read another file than {MAIN}. Nothing was changed.")
        return options

    def run(self, *command: str) -> tuple[int, str]:
        """Exit code and output of a command. Raises SshdError where it hangs."""
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
        """Let sshd judge a configuration (-t), or tell what it makes of it (-T)."""
        # Not removed afterwards: without the directory, a server that has started meanwhile would refuse all log-ins.
        RUN_SSHD.mkdir(mode=0o755, exist_ok=True)
        code, output = self.run(str(SSHD), *self.options, "-f", path, *arguments)
        return code == 0, output

    def active(self, unit: str) -> bool:
        """Whether a unit runs."""
        return self.run("systemctl", "is-active", "--quiet", unit)[0] == 0

    def reload(self) -> None:
        """Bring the files into effect. Sessions stay. Raises SshdError."""
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
    """The files that a pattern of Include means, `extra` among them if it fits, in sshd's order."""
    found = set(glob.glob(pattern))
    # glob leaves a file out that begins with a dot, and so does the comparison of whole names here.
    if extra and Path(extra).match(pattern) and Path(pattern).parent == Path(extra).parent:
        found.add(extra)
    return sorted(found)


def groups_of(user: str) -> list[str]:
    """The groups that a user is in, none where it does not exist."""
    try:
        account = pwd.getpwnam(user)
        return [grp.getgrgid(number).gr_name for number in os.getgrouplist(user, account.pw_gid)]
    except KeyError:
        return []


class Manager:
    """One run: look, and (outside check mode) act."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.trial = Trial(TRIAL_NAME)
        self.login = ssh_session.login() or ssh_session.Login("", "")
        self.admins: dict[str, list[str]] = {item["name"]: item["groups"] for item in module.params["admins"]}

    def inspect(self) -> None:
        """Read everything, and refuse what cannot be right. Raises SshdError, TrialError and InputError."""
        if not SSHD.exists():
            raise SshdError(
                f"There is no {SSHD}: install openssh-server, or set common_ssh_enabled to false. Nothing was changed."
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
                raise SshdError(f"sshd refuses the whole configuration: {self.renamed(words)}. Nothing was changed.")
            after = self.values(path)
        self.refuse(wanted, after)
        # Where it cannot be told, passwords are taken to work.
        self.closes = not before or any(map(sshd.passwords_work, before.values()))
        self.closes = self.closes and not any(map(sshd.passwords_work, after.values()))
        self.after = after

    @contextmanager
    def candidate(self) -> Iterator[str]:
        """A copy of the whole configuration as it would be; the name of its main file."""
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
        """A file's text as it would be."""
        return self.new if path == str(OURS) else files.text(Path(path)) or ""

    def listed(self, pattern: str) -> list[str]:
        """The files of a pattern as they would be."""
        return listed(pattern, str(OURS))

    def renamed(self, words: str) -> str:
        """sshd's words with the files' own names."""
        for copy, path in sorted(self.names.items(), reverse=True):
            words = words.replace(copy, path)
        return words

    def judge(self) -> dict[str, set[str]]:
        """What sshd makes of our file alone. Raises SshdError."""
        accepted, words = self.server.ask(self.alone, "-T")
        if not accepted:
            raise SshdError(
                f"sshd refuses what common_ssh_config makes of {OURS}: {self.renamed(words)}\n"
                "Correct those values; sshd_config(5) on the node lists what its version knows. Nothing was changed."
            )
        return sshd.effective(words)

    def values(self, path: str) -> dict[str, dict[str, set[str]]]:
        """What is in effect for everybody (the empty name) and for each user, none where sshd refuses to tell."""
        found = {}
        for user in ["", *sorted({self.login.user, "root", *self.admins} - {""})]:
            address = self.login.address or "127.0.0.1"
            match = ["-C", f"user={user},host={address},addr={address}"] if user else []
            accepted, words = self.server.ask(path, "-T", *match)
            if accepted:
                found[user] = sshd.effective(words)
        return found

    def refuse(self, wanted: dict[str, set[str]], after: dict[str, dict[str, set[str]]]) -> None:
        """Everything that speaks against the new configuration. Raises InputError."""
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
        # The empty name stands for everybody, and for a connection that did not come by SSH.
        for user, name in {
            self.login.user: "the user of this very connection",
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
        """The module's result. Raises SshdError, TrialError and OSError, with the old file back in place."""
        changed = self.new != self.old
        on_trial = changed and self.module.params["phase"] == TRIAL and not self.module.check_mode
        if changed and not self.module.check_mode:
            if on_trial:
                self.begin()
            try:
                self.change()
            except (SshdError, OSError) as error:
                if not self.trial.rollback():
                    files.write(OURS, self.old)
                    self.server.reload()
                raise SshdError(f"{OURS}: {error}\nThe old state is back and in use.") from error
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
        """Have the old file brought back, unless the change is confirmed in time. Raises TrialError."""
        if self.old is None:
            back = f"rm -f {shlex.quote(str(OURS))}"
        else:
            back = f"cp {shlex.quote(str(self.trial.keep('old.conf', self.old)))} {shlex.quote(str(OURS))}"
        self.trial.begin([back, RELOAD], self.module.params["seconds"])

    def change(self) -> None:
        """Write, look at the values that are in effect now, and reload. Raises SshdError."""
        files.write(OURS, self.new)
        if self.values(str(MAIN)) != self.after:
            raise SshdError("sshd does not make of it what it said it would; something else changes its files as well.")
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
