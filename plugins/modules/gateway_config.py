#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: gateway_config
short_description: Bring HAProxy's files into effect without dropping a connection
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Writes HAProxy's configuration and the files that it names, after HAProxy itself has judged all of them together in
    a directory of their own. Nothing is touched when it refuses.
  - Where only maps differ, they are replaced in the running process. Anything else is reloaded, by which no connection
    is lost; the states of servers survive it. It waits up to 120 s while requests are held.
    HAProxy is started and enabled if it was not.
  - When the new process does not come up, the old files are put back, the old process serves on, and HAProxy's words
    are reported.
  - Refuses to replace a configuration that somebody else wrote, unless O(replace=true).
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - Where HAProxy is not installed yet, it cannot judge the files; RV(validated) is then false.
  diff_mode:
    support: full
    details:
      - Of O(maps), only the names are shown.
options:
  config:
    description: The text of C(haproxy.cfg). Files are named in it without a directory.
    type: str
    required: true
  maps:
    description: The text of each map by its file name. They are kept with mode 0600, and never shown.
    type: dict
    default: {}
  files:
    description: The text of every other file that the configuration names, by file name.
    type: dict
    default: {}
  certificate:
    description: The path of the TLS certificate, with its chain behind it. Linked to as C(tls.pem). Empty for no TLS.
    type: str
    default: ""
  certificate_key:
    description: The path of the certificate's key, if that is not in O(certificate).
    type: str
    default: ""
  memory_max:
    description: The memory that HAProxy may take, as systemd writes it.
    type: str
    default: 50%
  settings:
    description:
      - What the files were made from, but for engines and keys. Kept in C(/var/lib/inference/gateway.json), so that a
        run that has changed what the engines serve makes new files from what is in effect, and not from what the
        inventory has come to say meanwhile.
    type: dict
    default: {}
  replace:
    description: Replace a configuration that somebody else wrote. A copy of it is kept.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Bring the gateway's files into effect
  baremetal.inference.gateway_config:
    config: "{{ plan.config }}"
    maps: "{{ plan.maps }}"
    files: "{{ plan.files }}"
"""

RETURN = r"""
action:
  description:
    - How the change was, or would be, brought into effect. V(none), V(maps) for a change of the running process,
      V(reload), or V(start).
  returned: success
  type: str
validated:
  description: Whether HAProxy judged the files. False in check mode where it is not installed.
  returned: success
  type: bool
backup_file:
  description: The copy of a replaced configuration of somebody else.
  returned: when there is one
  type: str
"""

import hashlib
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.debian.conffiles import pristine
from ansible_collections.baremetal.inference.plugins.module_utils.gateway import runtime
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.config import CONFIG, CONTROL_SOCKET, HEADER
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.keys import KEYS_MAP
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.places import (
    DIRECTORY,
    DROP_IN,
    HAPROXY,
    LINKS,
    STATE,
)
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.unit import drop_in

RELOAD_SECONDS = 30.0
"""For the new process to serve."""

HELD_SECONDS = 120.0
"""For an engine to come back to requests that are held."""
HELD_POLL_SECONDS = 0.5


class GatewayError(Exception):
    """What the operator has to put right; the text is for them."""


def digest(texts: dict[str, str]) -> str:
    """One checksum of some files."""
    whole = hashlib.sha256()
    for name in sorted(texts):
        whole.update(f"{name}\0{texts[name]}\0".encode())
    return whole.hexdigest()


class Manager:
    """HAProxy on this machine."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        params = module.params
        self.maps: dict[str, str] = params["maps"]
        self.loaded_at_start = {CONFIG: params["config"], **params["files"]}
        self.wanted = {**self.loaded_at_start, **self.maps}
        # An empty target of the key means that it is in the certificate's file.
        pairs = zip(LINKS, (params["certificate"], params["certificate_key"]), strict=True)
        self.links = {name: target for name, target in pairs if target}
        self.drop_in = drop_in(params["memory_max"])
        self.ask = runtime.ask(Path(CONTROL_SOCKET))

    # --- looking

    def look(self) -> None:
        """Read everything. Raises GatewayError."""
        self.haproxy = self.module.get_bin_path("haproxy", opt_dirs=["/usr/sbin"])
        if self.haproxy is None and not self.module.check_mode:
            raise GatewayError("HAProxy is not installed. Nothing was changed.")
        self.state = files.read_json(STATE) or {}
        names = {*self.wanted, *self.state.get("files", ())}
        self.before = {name: files.text(DIRECTORY / name) for name in names}
        self.foreign = self.is_foreign(self.before[CONFIG])
        if self.foreign and not self.module.params["replace"]:
            raise GatewayError(
                f"{DIRECTORY / CONFIG} was written by somebody else. Take over what it serves, and set gateway_replace"
                " to true to replace it: a copy of it is kept beside it. Nothing was changed."
            )
        self.active = self.systemctl("is-active", "--quiet", HAPROXY)[0]
        self.enabled = self.systemctl("is-enabled", "--quiet", HAPROXY)[0]
        self.validated = self.validate()

    def is_foreign(self, text: str | None) -> bool:
        """Whether a configuration is neither ours nor the package's own."""
        if text is None or text.startswith(HEADER):
            return False
        return not pristine(self.module.run_command, "haproxy", DIRECTORY / CONFIG)

    def validate(self) -> bool:
        """Let HAProxy judge all files together; false where it is not there. Raises GatewayError with its words."""
        missing = [path for path in self.links.values() if not Path(path).is_file()]
        if missing:
            raise GatewayError(f"{', '.join(missing)}: there is no such file on the gateway. Nothing was changed.")
        if self.haproxy is None:
            return False
        with tempfile.TemporaryDirectory(prefix="gateway-") as name:
            stage = Path(name)
            for file, text in self.wanted.items():
                files.write(stage / file, text, 0o600)
            for link, target in self.links.items():
                os.symlink(target, stage / link)
            code, output, words = self.module.run_command([self.haproxy, "-c", "-q", "-f", str(stage / CONFIG)])
        if code:
            said = (words or output).replace(name, str(DIRECTORY)).strip()
            raise GatewayError(f"HAProxy refuses the new configuration. Nothing was changed. It said:\n{said}")
        return True

    # --- deciding

    def decide(self) -> dict[str, Any]:
        """What is to be done, as the module's result."""
        static = {**self.loaded_at_start, **self.links}
        self.digests = {"static": digest(static), "maps": digest(self.maps)}
        self.differing = sorted(
            name
            for name, before in self.before.items()
            if before != self.wanted.get(name) or (before is not None and not self.private(name))
        )
        self.stale_links = [name for name in LINKS if _link_target(DIRECTORY / name) != self.links.get(name)]
        self.drop_in_differs = not files.same(DROP_IN, self.drop_in)
        action = "none"
        if not self.active:
            action = "start"
        elif (
            self.state.get("static") != self.digests["static"]
            or set(self.differing) - set(self.maps)
            or self.stale_links
        ):
            action = "reload"
        elif self.state.get("maps") != self.digests["maps"] or self.differing:
            action = "maps"
        changed = action != "none" or self.drop_in_differs or not self.enabled
        return {"changed": changed, "action": action, "validated": self.validated, "diff": self.diff()}

    def private(self, name: str) -> bool:
        return name not in self.maps or (DIRECTORY / name).stat().st_mode & 0o077 == 0

    def diff(self) -> list[dict[str, str]]:
        """Before and after of what differs; of maps, only that they differ."""
        shown = [
            ("(not shown)\n", "(not shown, changed)\n")
            if name.endswith(".map")
            else (self.before[name] or "", self.wanted.get(name, ""))
            for name in self.differing
        ]
        found = [(str(DIRECTORY / name), *texts) for name, texts in zip(self.differing, shown, strict=True)]
        if self.drop_in_differs:
            found.append((str(DROP_IN), files.text(DROP_IN) or "", self.drop_in))
        return [
            {"before_header": path, "after_header": path, "before": before, "after": after}
            for path, before, after in found
        ]

    # --- acting

    def act(self, result: dict[str, Any]) -> None:
        """Write, and bring into effect. Raises GatewayError, with the old files back in place."""
        if self.foreign:
            result["backup_file"] = self.module.backup_local(str(DIRECTORY / CONFIG))
        if self.drop_in_differs:
            files.write(DROP_IN, self.drop_in)
            self.do("daemon-reload")
        before_links = {name: _link_target(DIRECTORY / name) for name in self.stale_links}
        self.put({name: self.wanted.get(name) for name in self.differing}, self.links, self.stale_links)
        try:
            result["action"] = self.bring(result["action"])
        except GatewayError as error:
            self.put({name: self.before[name] for name in self.differing}, before_links, self.stale_links)
            back = "The old files are back in place"
            if self.active:
                self.systemctl("reload", HAPROXY)
                back += ", and the old configuration serves on"
            raise GatewayError(f"{error}\n{back}.") from error
        if not self.enabled:
            self.do("enable", HAPROXY)

    def record(self) -> None:
        """Keep what is in effect. Settings may differ where the files are the same."""
        settings = self.module.params["settings"]
        state = {"schema": 1, "files": sorted(self.wanted), **self.digests, "settings": settings}
        if state != self.state:
            files.write_json(STATE, state)

    def put(self, texts: dict[str, str | None], links: dict[str, Any], names: list[str]) -> None:
        for name, text in texts.items():
            files.write(DIRECTORY / name, text, 0o600 if name.endswith(".map") else 0o644)
        for name in names:
            if links.get(name):
                files.link(DIRECTORY / name, links[name])
            else:
                (DIRECTORY / name).unlink(missing_ok=True)

    def bring(self, action: str) -> str:
        """Bring what was written into effect; returns how. Raises GatewayError."""
        if action == "maps":
            try:
                # Last, who is known: a new key has its rights and limits from its first moment on.
                for name in sorted(self.maps, key=lambda name: (name == KEYS_MAP, name)):
                    runtime.replace_map(self.ask, name, self.maps[name])
                return action
            except (OSError, runtime.RuntimeRefusal) as error:
                self.module.warn(f"The maps were not taken while running ({error}): HAProxy is reloaded.")
                action = "reload"
        if action in ("start", "reload"):
            if action == "reload":
                self.let_go()
            began = time.time()
            old = runtime.worker(self.ask) if action == "reload" else None
            self.systemctl("reset-failed", HAPROXY)
            done, words = self.systemctl(action, HAPROXY)
            if not (done and self.serves(old)):
                raise GatewayError(f"HAProxy did not {action}. It said:\n{self.last_words(began) or words}")
        return action

    def let_go(self) -> None:
        """Wait while requests are held: the old process checks no engine any more, and would refuse them all."""
        deadline = time.monotonic() + HELD_SECONDS
        try:
            while found := runtime.waiting(self.ask):
                if time.monotonic() >= deadline:
                    self.module.warn(f"{found} requests that wait for an engine will fail: HAProxy is reloaded.")
                    return
                time.sleep(HELD_POLL_SECONDS)
        except OSError:
            # Who does not answer holds nobody back.
            return

    def serves(self, old: int | None) -> bool:
        """Wait until another process than the old one serves."""
        deadline = time.monotonic() + RELOAD_SECONDS
        while time.monotonic() < deadline:
            found = runtime.worker(self.ask)
            if found not in (None, old):
                return True
            time.sleep(0.2)
        return False

    def last_words(self, since: float) -> str:
        """What HAProxy wrote to the journal, without the log of requests."""
        _code, output, _words = self.module.run_command(
            ["journalctl", f"--unit={HAPROXY}", f"--since=@{since:.0f}", "--output=cat", "--lines=200", "--no-pager"]
        )
        return "\n".join([line for line in output.splitlines() if not line.startswith("{")][-20:])

    def systemctl(self, *words: str) -> tuple[bool, str]:
        code, output, error = self.module.run_command(["systemctl", *words])
        return code == 0, (error or output).strip()

    def do(self, *words: str) -> None:
        """What must work. Raises GatewayError."""
        done, said = self.systemctl(*words)
        if not done:
            raise GatewayError(f"systemctl {' '.join(words)} failed: {said}")


def _link_target(path: Path) -> str | None:
    """Where a link points; None where there is none."""
    return os.readlink(path) if path.is_symlink() else None


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "config": {"type": "str", "required": True},
            "maps": {"type": "dict", "default": {}, "no_log": True},
            "files": {"type": "dict", "default": {}},
            "certificate": {"type": "str", "default": ""},
            "certificate_key": {"type": "str", "default": "", "no_log": False},
            "memory_max": {"type": "str", "default": "50%"},
            "settings": {"type": "dict", "default": {}},
            "replace": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    manager = Manager(module)
    try:
        manager.look()
        result = manager.decide()
        if not module.check_mode:
            if result["changed"]:
                manager.act(result)
            manager.record()
    except (GatewayError, OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
