#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: docker_daemon
short_description: Merge keys into Docker's daemon.json and bring them into effect without harm
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Sets keys of C(daemon.json), keeps what others set there, and removes what this module set earlier and is no longer
    declared.
  - The daemon itself checks the new file before it replaces the old one. Nothing is touched when the daemon refuses it.
  - A change that the daemon takes over while it runs is reloaded. One that needs a restart is made at once when no
    container runs. It is never made under a running container, unless O(restart_allowed=true);
    RV(restart_required) says so instead, on every run until the daemon was restarted.
  - When the daemon does not come up, or does not reload, the module puts the old file back and reports the last words
    of the daemon.
  - Starts and enables the service. While the service is down, containers that live on without it are counted by their
    shims, and a start that would end them, because C(live-restore) is off, is refused unless O(restart_allowed=true).
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - Where the engine is not installed yet, the daemon cannot check the file; RV(validated_by) is then empty.
  diff_mode:
    support: full
    details:
      - Of O(environment), only the names are shown.
options:
  config:
    description:
      - The keys to set, as in C(daemon.json). Objects are merged key by key, a list is one value.
    type: dict
    default: {}
  environment:
    description:
      - Environment of the daemon, for its proxies. Kept in a file of mode 0600, since proxies often hold a password.
      - Every variable that is not declared is removed from that file; other drop-ins of the unit stay.
    type: dict
    default: {}
  restart_allowed:
    description: Restart the daemon when needed, also while containers run.
    type: bool
    default: false
  path:
    description: The configuration file.
    type: path
    default: /etc/docker/daemon.json
  state_path:
    description: Where the module remembers which keys it has set, and what the running daemon has really loaded.
    type: path
    default: /var/lib/inference/docker-daemon.json
"""

EXAMPLES = r"""
- name: Keep containers alive while the daemon restarts, and limit their logs
  baremetal.inference.docker_daemon:
    config:
      live-restore: true
      log-driver: json-file
      log-opts:
        max-size: 50m
        max-file: "3"
  register: result

- name: Say that a restart is due
  ansible.builtin.debug:
    msg: "{{ result.restart_reasons | join('; ') }}"
  when: result.restart_required
"""

RETURN = r"""
config:
  description: The whole content of the configuration file.
  returned: success
  type: dict
reload_keys:
  description: Keys that a reload brings, or would bring, into effect.
  returned: success
  type: list
  elements: str
restart_keys:
  description: Keys that only a restart brings into effect; V(environment) stands for O(environment).
  returned: success
  type: list
  elements: str
started:
  description: Whether the daemon was started. In check mode, whether it would be.
  returned: success
  type: bool
reloaded:
  description: Whether the daemon was reloaded. In check mode, whether it would be.
  returned: success
  type: bool
restarted:
  description: Whether the daemon was restarted. In check mode, whether it would be.
  returned: success
  type: bool
restart_required:
  description: Whether a restart is due that was not made, because containers run.
  returned: success
  type: bool
restart_reasons:
  description: Why a restart is due, for people. Empty when it is not.
  returned: success
  type: list
  elements: str
containers_running:
  description:
    - How many containers run, V(-1) when the daemon did not say. While the daemon is down, how many have lived on
      without it.
  returned: success
  type: int
validated_by:
  description: How the daemon checked the file; empty when there was nothing to check, or no daemon yet in check mode.
  returned: success
  type: str
  sample: dockerd --validate
backup_file:
  description: The copy of the replaced file.
  returned: when a file was replaced
  type: str
"""

import os
import re
import shlex
import stat
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.debian import docker_daemon as dd
from ansible_collections.baremetal.inference.plugins.module_utils.debian.service_files import ServiceError, ServiceFiles

SERVICE = "docker.service"
SOCKET = "unix:///run/docker.sock"
ENVIRONMENT_FILE = Path("/etc/docker/daemon.env")
DROP_IN = Path("/etc/systemd/system/docker.service.d/50-environment.conf")
DROP_IN_TEXT = f"# Managed by the role baremetal.inference.docker\n[Service]\nEnvironmentFile={ENVIRONMENT_FILE}\n"

PROCESSES = Path("/proc")

SHIM = "containerd-shim"
"""What the kernel calls the process that keeps a container without its daemon: the first 15 characters of
containerd-shim-runc-v2, and of its like for other runtimes."""

NOBODY = 65534
"""The user that checks a file: even a daemon without a check mode can neither start nor write as this one."""

QUICK = 30
"""Seconds for a question to the daemon."""

SLOW = 300
"""Seconds for the daemon's start or stop."""

RELOAD = 10
"""Seconds for the daemon to say that it has reloaded."""


class Host:
    """The machine: its commands and files."""

    def run(self, *command: str, timeout: int = QUICK, **options: Any) -> tuple[int, str]:
        """Exit code and both outputs of a command; 124 when it took too long, 127 when it is not there."""
        environment = {
            "PATH": os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin",
            "LC_ALL": "C.UTF-8",
            "HOME": "/nonexistent",
        }
        try:
            result = subprocess.run(
                command,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout,
                env=environment,
                cwd="/",
                check=False,
                **options,
            )
        except subprocess.TimeoutExpired:
            return 124, f"{shlex.join(command)} did not end within {timeout} s"
        except FileNotFoundError:
            return 127, f"{command[0]} is not installed"
        return result.returncode, result.stdout + result.stderr

    def read(self, path: Path) -> str | None:
        """A file's text, or None where there is none. Raises ServiceError."""
        try:
            return path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise ServiceError(f"{path}: cannot be read: {error}. Nothing was changed.") from error

    def service(self) -> dict[str, str]:
        """The properties of the daemon's unit. Raises ServiceError where no systemd answers."""
        names = "LoadState,ActiveState,UnitFileState,InvocationID,ExecStart,EnvironmentFiles"
        code, output = self.run("systemctl", "show", SERVICE, f"--property={names}")
        if code:
            raise ServiceError(f"systemctl show {SERVICE} failed: {output.strip()}")
        return dict(line.split("=", 1) for line in output.splitlines() if "=" in line)

    def containers(self) -> int:
        """How many containers run, -1 when the daemon does not say. Ask an active daemon only: asking starts it."""
        code, output = self.run("docker", "--host", SOCKET, "ps", "--quiet", "--no-trunc")
        return len(re.findall(r"^[0-9a-f]{64}$", output, re.MULTILINE)) if code == 0 else -1

    def shims(self) -> int:
        """How many containers live on while no daemon runs, by their shims; with live-restore, a stop leaves them."""
        count = 0
        for name in PROCESSES.glob("[0-9]*/comm"):
            with suppress(OSError):  # The process has ended meanwhile.
                count += name.read_text(encoding="utf-8", errors="replace").strip() == SHIM
        return count

    def unit_variables(self, service: dict[str, str]) -> dict[str, str]:
        """What the unit's environment files set, for the flags that come from there."""
        variables: dict[str, str] = {}
        for name in service.get("EnvironmentFiles", "").split(" (ignore_errors=yes)"):
            for line in (self.read(Path(name.strip())) or "").splitlines() if name.strip() else []:
                key, separator, value = line.strip().partition("=")
                if separator and not key.startswith("#"):
                    variables[key] = " ".join(shlex.split(value))
        return variables

    def check(self, dockerd: str, text: str, flags: list[str]) -> tuple[bool, str, str]:
        """Have the daemon check a configuration: accepted, its words, and how it was asked.

        Daemons from 23.0 on have --validate. An older one, started without any privilege, checks its configuration
        first and ends because it is not root, before it has written anything.
        The text is handed over in memory: it may hold a secret, and no file is left behind.
        """
        memory = os.memfd_create("daemon.json")
        try:
            with os.fdopen(os.dup(memory), "w", encoding="utf-8") as stream:
                stream.write(text)
            name = f"/proc/self/fd/{memory}"
            how, extra = "dockerd --validate", ["--validate"]
            while True:
                command = [dockerd, *flags, *extra, "--config-file", name]
                code, output = self.run(*command, pass_fds=(memory,), user=NOBODY, group=NOBODY, extra_groups=[])
                if not (extra and "unknown flag: --validate" in output):
                    break
                how, extra = "dockerd without privileges", []
            accepted, words = dd.verdict(code, output)
            return accepted, words.replace(name, "daemon.json"), how
        finally:
            os.close(memory)

    def reloaded_since(self, moment: float) -> bool:
        """Whether the daemon says that it has reloaded since a time (seconds since the epoch)."""
        code, output = self.run(
            "docker", "--host", SOCKET, "events", "--since", f"{moment:.6f}", "--until", f"{time.time():.6f}",
            "--filter", "type=daemon", "--filter", "event=reload",
        )  # fmt: skip
        return code == 0 and bool(output.strip())


class DockerDaemon(ServiceFiles):
    """Docker's daemon on this machine, with its configuration and its environment."""

    units = (SERVICE,)
    start_limits = ("docker.socket",)
    identifier = "dockerd"

    def __init__(self, module: AnsibleModule) -> None:
        super().__init__(module)
        self.host = Host()
        self.path = Path(self.params["path"])
        self.state_path = Path(self.params["state_path"])
        self.drop_ins = frozenset({DROP_IN})

    def command(self, *words: str) -> tuple[int, str, str]:
        code, output = self.host.run(*words, timeout=SLOW)
        return code, output, ""

    def read(self, path: Path) -> str | None:
        return self.host.read(path)

    def inspect(self) -> None:
        self.old_text = self.read(self.path)
        self.old_state_text = self.read(self.state_path)
        old = dd.parse(self.old_text or "", str(self.path))
        self.state = dd.load_state(self.old_state_text or "", str(self.state_path))
        merged = dd.merge(old, self.params["config"], self.state.owned)
        self.config, self.owned = merged.config, merged.owned
        text = self.old_text if dd.same(old, self.config) else dd.render(self.config)
        environment = dd.environment_text({key: str(value) for key, value in self.params["environment"].items()})
        drop_in = DROP_IN_TEXT if environment else None
        self.compare({self.path: text, ENVIRONMENT_FILE: environment or None, DROP_IN: drop_in})
        self.environment = dd.digest(environment)
        self.service = self.host.service()
        running = self.service.get("ActiveState") in ("active", "reloading")
        self.active = {SERVICE: running}
        self.enabled = {SERVICE: self.service.get("UnitFileState") == "enabled"}
        self.containers = self.host.containers() if running else self.host.shims()
        self.invocation = self.service.get("InvocationID", "")
        remembered = self.state.loaded if self.state.invocation == self.invocation else None
        self.loaded = remembered or dd.Snapshot(old, dd.digest(self.before[ENVIRONMENT_FILE] or ""))
        if not (remembered and running):
            self.state = dd.State(self.state.owned)
        self.refuse_bad_values()
        self.refuse_lost_containers(old)
        self.refuse_ended_containers()
        self.validated_by = self.validate()

    def refuse_bad_values(self) -> None:
        found = dd.problems(self.config)
        if found:
            raise ServiceError("\n- ".join([f"{self.path} would not be usable. Nothing was changed.", *found]))

    def refuse_lost_containers(self, old: dict[str, Any]) -> None:
        """The daemon would come up without the containers of its old data root."""
        before, after = dd.data_root(old), dd.data_root(self.config)
        containers = Path(before, "containers")
        count = len(list(containers.iterdir())) if before != after and containers.is_dir() else 0
        if count:
            raise ServiceError(
                f"data-root: would change from {before} to {after}, but {count} container(s) exist below {before}. "
                "Remove them first (docker ps --all), or keep the old data-root. Nothing was changed."
            )

    def refuse_ended_containers(self) -> None:
        """A daemon that starts without live-restore ends the containers that have lived on without it."""
        lives_on = self.config.get("live-restore") is True or self.params["restart_allowed"]
        if self.containers and not self.active[SERVICE] and not lives_on:
            raise ServiceError(
                f"{SERVICE} does not run, but {self.containers} container(s) do, and its start would end them, since "
                f"live-restore would not be true in {self.path}. Declare it as true, or drain the node and allow the "
                "restart. Nothing was changed."
            )

    def validate(self) -> str:
        """Have the daemon check a changed file; returns how. Raises ServiceError."""
        if self.path not in self.altered:
            return ""
        dockerd = self.module.get_bin_path("dockerd", opt_dirs=["/usr/sbin"])
        if dockerd is None:
            if self.module.check_mode:
                return ""
            raise ServiceError("dockerd is not installed: install the engine first. Nothing was changed.")
        flags = dd.daemon_flags(self.service.get("ExecStart", ""), self.host.unit_variables(self.service))
        accepted, words, how = self.host.check(dockerd, str(self.wanted[self.path]), flags)
        if not accepted:
            raise ServiceError(
                f"{self.path}: the daemon refuses the new configuration: {words}\n"
                "Correct the declared keys, or the foreign ones in the file. The file was not changed."
            )
        return how

    def mode(self, path: Path) -> int:
        return 0o600 if path == ENVIRONMENT_FILE else 0o644

    def kept(self, path: Path) -> bool:
        return True

    def write(self, path: Path, text: str | None, place: Path) -> None:
        if path != self.path or text is None or not place.exists():
            super().write(path, text, place)
            return
        old = place.stat()
        files.write(place, text, stat.S_IMODE(old.st_mode))
        os.chown(place, old.st_uid, old.st_gid)

    def decide(self) -> dict[str, Any]:
        running = self.active[SERVICE]
        pending = dd.pending(self.loaded, self.config, self.environment) if running else dd.Pending()
        quiet = self.containers == 0 or self.params["restart_allowed"]
        result: dict[str, Any] = {
            "config": self.config,
            "reload_keys": list(pending.reload),
            "restart_keys": list(pending.restart),
            "started": not running,
            "restarted": bool(pending.restart) and quiet,
            "reloaded": bool(pending.reload) and not (pending.restart and quiet),
            "restart_required": bool(pending.restart) and not quiet,
            "containers_running": self.containers,
            "validated_by": self.validated_by,
        }
        result["restart_reasons"] = self.reasons(pending.restart) if result["restart_required"] else []
        verbs = {"started": "start", "restarted": "restart", "reloaded": "reload"}
        self.actions = {SERVICE: next((verb for key, verb in verbs.items() if result[key]), "none")}
        result["changed"] = self.changes or self.owned != self.state.owned
        if self.module._diff:
            result["diff"] = self.diff([self.path, ENVIRONMENT_FILE])
        return result

    def shown(self, path: Path) -> tuple[str, str]:
        before, after = super().shown(path)
        if path != ENVIRONMENT_FILE:
            return before, after
        changes = path in self.altered
        return _names(before, changes, "old"), _names(after, changes, "new")

    def reasons(self, keys: tuple[str, ...]) -> list[str]:
        why = f"{self.containers} container(s) run"
        if self.containers < 0:
            why = "the daemon did not say whether containers run"
        names = ["its proxy environment" if key == dd.ENVIRONMENT else key for key in keys]
        return [f"the running daemon does not have yet: {', '.join(names)} ({why})"]

    def apply(self, result: dict[str, Any]) -> None:
        if (loaded := self.service.get("LoadState")) != "loaded":
            raise ServiceError(f"{SERVICE} is {loaded}: install the engine, or unmask its unit. Nothing was changed.")
        super().apply(result)

    def back_up(self) -> dict[str, Any]:
        if not self.differing and self.owned == self.state.owned:
            return {}
        # The state first: should this run be cut off, the next one knows what the daemon has not loaded yet.
        self.write_state(dd.State(self.owned, self.invocation, self.loaded if self.active[SERVICE] else None))
        if self.path not in self.altered or self.old_text is None:
            return {}
        return {"backup_file": self.module.backup_local(str(self.path))}

    def write_state(self, state: dd.State) -> None:
        if state != self.state or self.old_state_text is None:
            files.write(self.state_path, state.dump(), 0o600)
            self.state = state

    def record(self, result: dict[str, Any]) -> None:
        # What the daemon has loaded is kept only as long as it differs from the file.
        loaded: dd.Snapshot | None = None
        if result["restart_required"]:
            loaded = dd.after_reload(self.loaded, self.config, result["reload_keys"])
        self.write_state(dd.State(self.owned, self.invocation if loaded else "", loaded))

    def why_not_up(self, unit: str, action: str, began: float) -> str:
        # systemctl returns from a reload as soon as the signal is sent, and from a start when the daemon is up.
        if action != "reload" or self.wait(lambda: self.host.reloaded_since(began) or None, RELOAD):
            return ""
        return f"it did not say within {RELOAD} s that it has reloaded"

    def is_noise(self, line: str) -> bool:
        return "level=info" in line or "level=debug" in line

    def put_back(self) -> str:
        files.write(self.state_path, self.old_state_text, 0o600)
        return super().put_back()


def _names(text: str, changes: bool, which: str) -> str:
    """The names in an environment file; values may hold a password."""
    names = [line.partition("=")[0] for line in text.splitlines()]
    return "".join(f"{name}=({which if changes else 'same'} value, not shown)\n" for name in names)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "config": {"type": "dict", "default": {}},
            "environment": {"type": "dict", "default": {}, "no_log": True},
            "restart_allowed": {"type": "bool", "default": False},
            "path": {"type": "path", "default": "/etc/docker/daemon.json"},
            "state_path": {"type": "path", "default": str(Paths().docker_daemon)},
        },
        supports_check_mode=True,
    )
    try:
        result = DockerDaemon(module).run()
    except (ServiceError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
