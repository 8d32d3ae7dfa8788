#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: monitoring_server
short_description: Bring the files of Prometheus and Alertmanager into effect, all of them or none
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Writes the configuration of both, rules, targets, consoles and the users of their web pages, after C(promtool) and
    C(amtool) have judged all of them together in a directory of their own, as the user that the services run as.
    Nothing is touched when one of them refuses.
  - Targets, consoles and users are read without a reload. Rules and configuration are reloaded; only other options of a
    service, and another certificate, restart it.
  - When a service does not take the new files, the old ones are put back, and its words are reported.
  - Passwords are kept as bcrypt hashes, and a hash that its password still fits stays as it is. Prometheus itself comes
    in by a password that is made on the machine.
  - Refuses to replace a configuration that somebody else wrote, unless O(replace=true).
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - Where Prometheus is not installed yet, nobody can judge the files; RV(validated) is then false.
  diff_mode:
    support: full
    details:
      - Of O(secrets), the values of keys that hold passwords, keys and addresses are left out, and users altogether.
options:
  files:
    description: The text of every file that everybody may read, by its path below C(/etc/prometheus).
    type: dict
    required: true
  secrets:
    description: The text of every file that may hold a password, in the same way. Only the services may read them.
    type: dict
    required: true
  web:
    description: The text of C(web.yml) without users.
    type: str
    default: ""
  users:
    description: The password of each user of the web pages, by name. Without any, everybody comes in.
    type: dict
    default: {}
  units:
    description: The text of the drop-in of each service, by the service's name.
    type: dict
    required: true
  url:
    description: Where this machine reaches Prometheus.
    type: str
    required: true
  alertmanager_url:
    description: Where it reaches Alertmanager.
    type: str
    required: true
  replace:
    description: Replace a configuration that somebody else wrote. A copy of it is kept.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Bring the files of the monitoring into effect
  baremetal.inference.monitoring_server:
    files: "{{ plan.files }}"
    secrets: "{{ plan.secrets }}"
    web: "{{ plan.web }}"
    users: {operator: "{{ vault_monitoring_password }}"}
    units: "{{ plan.units }}"
    url: "{{ plan.url }}"
    alertmanager_url: "{{ plan.alertmanager_url }}"
"""

RETURN = r"""
actions:
  description:
    - How the change was, or would be, brought into effect, by service. V(none), V(reload), V(restart) or V(start).
  returned: success
  type: dict
written:
  description: The files that were, or would be, written or removed, below C(/etc/prometheus).
  returned: success
  type: list
  elements: str
validated:
  description: Whether the files were judged. False in check mode where Prometheus is not installed.
  returned: success
  type: bool
backup_files:
  description: The copies of replaced configurations of somebody else.
  returned: when there are some
  type: list
  elements: str
"""

import grp
import hashlib
import os
import secrets
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.debian.conffiles import pristine
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe.metrics import samples
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.api import NoAnswer, Server
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.config import PASSWORD, RULES
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.passwords import (
    CryptError,
    basic_auth_users,
)
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.places import (
    ALERTMANAGER,
    DIRECTORY,
    DROP_IN,
    HEADER,
    OWNED,
    PROMETHEUS,
    STATE,
    UNITS,
)
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.redaction import (
    SHOWN,
    redacted,
    without_secrets,
)
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.settings import INTERNAL_USER
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.units import WEB

USER = "prometheus"
"""As whom Debian's units run both."""

LOADED = {PROMETHEUS: ("prometheus.yml", f"{RULES}/"), ALERTMANAGER: ("alertmanager.yml",)}
"""How the names of the files begin that a service takes when it is reloaded."""

TOOLS = ("promtool", "amtool", "prometheus", "prometheus-alertmanager")

RELOAD_SECONDS = 30.0
START_SECONDS = 180.0
"""Prometheus reads what it has not yet written to its blocks when it starts: up to two hours of a large fleet."""

POLL_SECONDS = 0.5


class ServerError(Exception):
    """What the operator has to put right; the text is for them."""


def digest(*texts: str) -> str:
    """One checksum of some texts."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


class Manager:
    """Prometheus and Alertmanager on this machine."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.params = module.params
        self.users: dict[str, str] = {name: str(word) for name, word in self.params["users"].items()}
        self.units: dict[str, str] = self.params["units"]

    # --- looking

    def look(self) -> None:
        """Read everything, and have it judged. Raises ServerError."""
        missing = [tool for tool in TOOLS if self.module.get_bin_path(tool) is None]
        if missing and not self.module.check_mode:
            raise ServerError(f"not installed: {', '.join(missing)}. Nothing was changed.")
        self.installed = not missing
        self.password = (
            ((files.text(DIRECTORY / PASSWORD) or "").strip() or secrets.token_urlsafe(32)) if self.users else ""
        )
        users = {**self.users, INTERNAL_USER: self.password} if self.users else {}
        self.hidden = {
            **self.params["secrets"],
            WEB: self.params["web"] + basic_auth_users(users, files.text(DIRECTORY / WEB) or ""),
            **({PASSWORD: f"{self.password}\n"} if self.users else {}),
        }
        self.wanted: dict[str, str] = {**self.params["files"], **self.hidden}
        self.state = files.read_json(STATE) or {}
        names = {*self.wanted, *self.state.get("files", ())}
        self.before = {name: files.text(DIRECTORY / name) for name in sorted(names)}
        self.foreign = [name for name in OWNED if self.is_foreign(name)]
        if self.foreign and not self.params["replace"]:
            found = ", ".join(str(DIRECTORY / name) for name in self.foreign)
            raise ServerError(
                f"{found}: written by somebody else. Take over what it watches (monitoring_scrape_configs,"
                " monitoring_extra_rules, monitoring_receivers), and set monitoring_replace to true to replace it: a"
                " copy is kept beside it. Or point it at this fleet: docs/monitoring.md. Nothing was changed."
            )
        self.active = {unit: self.systemctl("is-active", "--quiet", unit)[0] for unit in self.units}
        self.enabled = {unit: self.systemctl("is-enabled", "--quiet", unit)[0] for unit in self.units}
        self.validated = self.validate() if self.installed else False

    def is_foreign(self, name: str) -> bool:
        """Whether a configuration is neither ours nor the package's own."""
        text = self.before[name]
        if text is None or text.startswith(HEADER):
            return False
        return not pristine(self.module.run_command, OWNED[name], DIRECTORY / name)

    def validate(self) -> bool:
        """Have all files judged together, by the user of the services. Raises ServerError with everything said."""
        said = []
        with tempfile.TemporaryDirectory(prefix="monitoring-") as name:
            stage = Path(name)
            shutil.chown(stage, group=USER)
            stage.chmod(0o750)
            for file, text in self.wanted.items():
                self.write(stage / file, text, file in self.hidden)
            for command in (
                ("promtool", "check", "config", str(stage / "prometheus.yml")),
                ("promtool", "check", "web-config", str(stage / WEB)),
                ("amtool", "check-config", str(stage / "alertmanager.yml")),
            ):
                code, output, error = self.module.run_command(
                    ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--init-groups", *command], cwd=name
                )
                if code:
                    text = "\n".join(part.strip() for part in (output, error) if part.strip())
                    said.append(f"{' '.join(command[:-1])}:\n{text.replace(name, str(DIRECTORY))}")
        if said:
            words = self.without_secrets("\n".join(said))
            raise ServerError(f"The new files are refused. Nothing was changed, and what runs goes on.\n{words}")
        return True

    # --- deciding

    def decide(self) -> dict[str, Any]:
        """What is to be done, as the module's result."""
        rules = [name + text for name, text in sorted(self.wanted.items()) if name.startswith(f"{RULES}/")]
        configs = {
            PROMETHEUS: (self.wanted["prometheus.yml"], *rules),
            ALERTMANAGER: (self.wanted["alertmanager.yml"],),
        }
        self.loaded = {
            # The certificate is read when a service starts.
            unit: {"config": digest(*configs[unit]), "unit": digest(text, self.params["web"])}
            for unit, text in self.units.items()
        }
        altered = [name for name, before in self.before.items() if before != self.wanted.get(name)]
        self.reloading = {unit for unit, names in LOADED.items() if any(name.startswith(names) for name in altered)}
        self.differing = [
            name
            for name, before in self.before.items()
            if name in altered or (before is not None and not self.kept(name))
        ]
        self.drop_ins = [unit for unit, text in self.units.items() if not files.same(self.drop_in(unit), text)]
        actions = {unit: self.action(unit) for unit in self.units}
        changed = bool(
            self.differing or self.drop_ins or set(actions.values()) != {"none"} or not all(self.enabled.values())
        )
        return {
            "changed": changed,
            "actions": actions,
            "written": self.differing,
            "validated": self.validated,
            "diff": self.diff(),
        }

    def kept(self, name: str) -> bool:
        """Whether a file is readable for just those who may."""
        found = (DIRECTORY / name).stat()
        if name not in self.hidden:
            return found.st_mode & 0o7777 == 0o644
        return found.st_mode & 0o7777 == 0o640 and (not self.installed or found.st_gid == self.group)

    @property
    def group(self) -> int:
        return grp.getgrnam(USER).gr_gid

    def action(self, unit: str) -> str:
        """How the changes of a service come into effect."""
        known = self.state.get("loaded", {}).get(unit, {})
        if not self.active[unit]:
            return "start"
        if known.get("unit") != self.loaded[unit]["unit"] or unit in self.drop_ins:
            return "restart"
        # What somebody has altered by hand, they have perhaps reloaded as well.
        return "reload" if unit in self.reloading or known.get("config") != self.loaded[unit]["config"] else "none"

    def drop_in(self, unit: str) -> Path:
        return UNITS / f"{unit}.d" / DROP_IN

    def diff(self) -> list[dict[str, str]]:
        """Before and after of what differs, without secrets."""
        found = []
        for name in self.differing:
            before, after = self.before[name] or "", self.wanted.get(name, "")
            if name in (WEB, PASSWORD):
                before, after = f"{SHOWN}\n", f"{SHOWN[:-1]}, changed)\n"
            elif name in self.hidden:
                before, after = redacted(before), redacted(after)
            found.append((str(DIRECTORY / name), before, after))
        found += [
            (str(self.drop_in(unit)), files.text(self.drop_in(unit)) or "", self.units[unit]) for unit in self.drop_ins
        ]
        return [
            {"before_header": path, "after_header": path, "before": before, "after": after}
            for path, before, after in found
        ]

    # --- acting

    def act(self, result: dict[str, Any]) -> None:
        """Write, and bring into effect. Raises ServerError, with the old files back in place."""
        if self.foreign:
            result["backup_files"] = [self.module.backup_local(str(DIRECTORY / name)) for name in self.foreign]
        old_units = {unit: files.text(self.drop_in(unit)) for unit in self.drop_ins}
        try:
            self.put({name: self.wanted.get(name) for name in self.differing})
            self.put_units({unit: self.units[unit] for unit in self.drop_ins})
            # First who is told, then who tells.
            for unit in (ALERTMANAGER, PROMETHEUS):
                self.bring(unit, result["actions"][unit])
        except (ServerError, OSError) as error:
            self.put({name: self.before[name] for name in self.differing})
            self.put_units(old_units)
            running = [unit for unit in self.units if self.active[unit]]
            for unit in self.units:
                # What did not run before would try for ever.
                verb = "stop" if unit not in running else "restart" if self.drop_ins else "reload"
                self.systemctl(verb, unit)
            back = "The old files are back in place"
            back += f", and {' and '.join(running)} run by them" if running else ""
            raise ServerError(f"{error}\n{back}.") from error
        for unit in self.units:
            if not self.enabled[unit]:
                self.do("enable", unit)
        files.write_json(STATE, {"schema": 1, "files": sorted(self.wanted), "loaded": self.loaded})

    def put(self, texts: dict[str, str | None]) -> None:
        for name, text in texts.items():
            self.write(DIRECTORY / name, text, name in self.hidden)

    def put_units(self, texts: dict[str, str | None]) -> None:
        for unit, text in texts.items():
            files.write(self.drop_in(unit), text)
        if texts:
            self.do("daemon-reload")

    def write(self, path: Path, text: str | None, hidden: bool) -> None:
        """Write a file for everybody, or for the services alone; None removes it."""
        files.write(path, text, 0o640 if hidden else 0o644)
        if hidden and text is not None:
            os.chown(path, -1, self.group)

    def bring(self, unit: str, action: str) -> None:
        """Have a service take what was written. Raises ServerError."""
        if action == "none":
            return
        began = time.time()
        self.systemctl("reset-failed", unit)
        done, words = self.systemctl(action, unit)
        url = self.params["url" if unit == PROMETHEUS else "alertmanager_url"]
        prefix = "prometheus" if unit == PROMETHEUS else "alertmanager"
        taken = done and self.taken(unit, Server(url, self.password), prefix, began, action)
        if not taken:
            raise ServerError(f"{unit} did not {action}. It said:\n{self.last_words(unit, began) or words}")

    def taken(self, unit: str, server: Server, prefix: str, began: float, action: str) -> bool:
        """Wait until a service runs by its new files."""
        success = f"{prefix}_config_last_reload_success_timestamp_seconds"
        outcome = f"{prefix}_config_last_reload_successful"
        deadline = time.monotonic() + (RELOAD_SECONDS if action == "reload" else START_SECONDS)
        while time.monotonic() < deadline:
            try:
                server.text("/-/ready")
                found = samples(server.text("/metrics"), {success, outcome})
            except NoAnswer:
                found = {}
            # A second is lost where the two are counted differently.
            if found.get(outcome) == 1 and found.get(success, 0) >= began - 1:
                return True
            if found.get(outcome) == 0 and time.time() - began > 2:
                return False
            # It has ended, and systemd has started it again.
            if action != "reload" and self.restarts(unit):
                return False
            time.sleep(POLL_SECONDS)
        return False

    def restarts(self, unit: str) -> bool:
        """Whether systemd had to start a service again since it was last told to."""
        _code, output, _words = self.module.run_command(["systemctl", "show", "--value", "--property=NRestarts", unit])
        return output.strip() not in ("0", "")

    def last_words(self, unit: str, since: float) -> str:
        """What a service wrote to the journal, without secrets."""
        _code, output, _words = self.module.run_command(
            ["journalctl", f"--unit={unit}", f"--since=@{since:.0f}", "--output=cat", "--lines=100", "--no-pager"]
        )
        lines = [line for line in output.splitlines() if "level=info" not in line.lower()][-12:]
        return self.without_secrets("\n".join(lines))

    def without_secrets(self, words: str) -> str:
        """What was said about the files, old or new, without what they keep."""
        for name, text in self.hidden.items():
            words = without_secrets(without_secrets(words, text), self.before[name] or "")
        return words

    def systemctl(self, *words: str) -> tuple[bool, str]:
        code, output, error = self.module.run_command(["systemctl", *words])
        return code == 0, (error or output).strip()

    def do(self, *words: str) -> None:
        """What must work. Raises ServerError."""
        done, said = self.systemctl(*words)
        if not done:
            raise ServerError(f"systemctl {' '.join(words)} failed: {said}")


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "files": {"type": "dict", "required": True},
            "secrets": {"type": "dict", "required": True, "no_log": True},
            "web": {"type": "str", "default": ""},
            "users": {"type": "dict", "default": {}, "no_log": True},
            "units": {"type": "dict", "required": True},
            "url": {"type": "str", "required": True},
            "alertmanager_url": {"type": "str", "required": True},
            "replace": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    # The services read what is written, whatever a hardened login leaves to others.
    os.umask(0o022)
    manager = Manager(module)
    try:
        manager.look()
        result = manager.decide()
        if result["changed"] and not module.check_mode:
            manager.act(result)
    except (ServerError, CryptError, OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
