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
  - The daemon itself judges the new file before it replaces the old one. Nothing is touched when it refuses.
  - A change that the daemon takes over while it runs is reloaded. One that needs a restart is made at once when no
    container runs. It is never made under a running container, unless O(restart_allowed=true);
    RV(restart_required) says so instead, on every run until the daemon was restarted.
  - When the daemon does not come up, or does not reload, the old file is put back and the daemon's words are reported.
  - Starts and enables the service. While the service is down, containers that live on without it are counted by their
    shims, and a start that would end them, because C(live-restore) is off, is refused unless O(restart_allowed=true).
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - Where the engine is not installed yet, the daemon cannot judge the file; RV(validated_by) is then empty.
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
  description: How the daemon judged the file; empty when there was nothing to judge, or no daemon yet in check mode.
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

from ansible_collections.baremetal.inference.plugins.module_utils.debian import docker_daemon as dd

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
"""The user that judges a file: even a daemon without a check mode can neither start nor write as this one."""

QUICK = 30
"""Seconds for a question to the daemon."""

SLOW = 300
"""Seconds for the daemon's start or stop."""

RELOAD = 10
"""Seconds for the daemon to say that it has reloaded."""


class Host:
    """The node: its commands and files."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module

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
        """A file's text, or None where there is none. Raises DaemonConfigError."""
        try:
            return path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise dd.DaemonConfigError(f"{path}: cannot be read: {error}. Nothing was changed.") from error

    def write(self, path: Path, text: str | None, mode: int, keep: bool = False) -> None:
        """Replace a file in one step, or remove it for None; ``keep`` the owner and mode of an older one.

        Not by AnsibleModule.atomic_move: that gives a new file the mode of the umask, and secrets are written here.
        """
        if text is None:
            path.unlink(missing_ok=True)
            return
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
        new = path.with_name(f".{path.name}.new")
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
            if keep and path.exists():
                old = path.stat()
                os.fchown(stream.fileno(), old.st_uid, old.st_gid)
                mode = stat.S_IMODE(old.st_mode)
            os.fchmod(stream.fileno(), mode)
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        new.replace(path)

    def service(self) -> dict[str, str]:
        """The properties of the daemon's unit. Raises DaemonConfigError where no systemd answers."""
        names = "LoadState,ActiveState,UnitFileState,InvocationID,ExecStart,EnvironmentFiles"
        code, output = self.run("systemctl", "show", SERVICE, f"--property={names}")
        if code:
            raise dd.DaemonConfigError(f"systemctl show {SERVICE} failed: {output.strip()}")
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

    def judge(self, dockerd: str, text: str, flags: list[str]) -> tuple[bool, str, str]:
        """Let the daemon judge a configuration: accepted, its words, and how it was asked.

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

    def systemctl(self, *words: str) -> tuple[bool, str]:
        """Run systemctl; its success and its words."""
        code, output = self.run("systemctl", *words, timeout=SLOW)
        return code == 0, output.strip()

    def bring_up(self, verb: str) -> tuple[bool, str]:
        """Start or restart the daemon, whatever was tried before: manual starts count for its start limit too."""
        self.systemctl("reset-failed", SERVICE, "docker.socket")
        return self.systemctl(verb, SERVICE)

    def reload(self) -> tuple[bool, str]:
        """Reload the daemon and wait until it says that it has: systemctl returns as soon as the signal is sent."""
        since = f"{time.time():.6f}"
        done, words = self.systemctl("reload", SERVICE)
        deadline = time.monotonic() + RELOAD
        while done and time.monotonic() < deadline:
            code, output = self.run(
                "docker", "--host", SOCKET, "events", "--since", since, "--until", f"{time.time():.6f}",
                "--filter", "type=daemon", "--filter", "event=reload",
            )  # fmt: skip
            if code == 0 and output.strip():
                return True, ""
            time.sleep(0.2)
        return False, words or f"it did not say within {RELOAD} s that it has reloaded"

    def last_words(self, since: float) -> str:
        """What the daemon wrote to the journal since a time (seconds since the epoch)."""
        _code, output = self.run(
            "journalctl",
            "--unit",
            SERVICE,
            "--identifier",
            "dockerd",
            f"--since=@{since:.3f}",
            "--output=cat",
            "--lines=40",
            "--no-pager",
        )
        lines = [line for line in output.splitlines() if "level=info" not in line and "level=debug" not in line]
        return "\n".join(lines[-6:])


class Manager:
    """One run: look, decide, and (outside check mode) act."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.host = Host(module)
        self.path = Path(module.params["path"])
        self.state_path = Path(module.params["state_path"])
        self.began = time.time()

    def look(self) -> None:
        """Read everything, and refuse what cannot be right. Raises DaemonConfigError."""
        declared: dict[str, Any] = self.module.params["config"]
        self.old_text = self.host.read(self.path)
        self.old_state_text = self.host.read(self.state_path)
        self.old_environment = self.host.read(ENVIRONMENT_FILE)
        self.old_drop_in = self.host.read(DROP_IN)
        old = dd.parse(self.old_text or "", str(self.path))
        self.state = dd.load_state(self.old_state_text or "", str(self.state_path))
        merged = dd.merge(old, declared, self.state.owned)
        self.config, self.owned = merged.config, merged.owned
        self.text = self.old_text if dd.same(old, self.config) else dd.render(self.config)
        text = dd.environment_text({key: str(value) for key, value in self.module.params["environment"].items()})
        self.environment = text or None
        self.drop_in = DROP_IN_TEXT if text else None
        self.service = self.host.service()
        self.active = self.service.get("ActiveState") in ("active", "reloading")
        self.enabled = self.service.get("UnitFileState") == "enabled"
        self.containers = self.host.containers() if self.active else self.host.shims()
        self.invocation = self.service.get("InvocationID", "")
        remembered = self.state.loaded if self.state.invocation == self.invocation else None
        self.loaded = remembered or dd.Snapshot(old, dd.digest(self.old_environment or ""))
        if not (remembered and self.active):
            self.state = dd.State(self.state.owned)
        self.refuse_bad_values()
        self.refuse_lost_containers(old)
        self.refuse_ended_containers()
        self.validated_by = self.validate()

    def refuse_bad_values(self) -> None:
        found = dd.problems(self.config)
        if found:
            raise dd.DaemonConfigError("\n- ".join([f"{self.path} would not be usable. Nothing was changed.", *found]))

    def refuse_lost_containers(self, old: dict[str, Any]) -> None:
        """The daemon would come up without the containers of its old data root, and nobody would find them."""
        before, after = dd.data_root(old), dd.data_root(self.config)
        containers = Path(before, "containers")
        count = len(list(containers.iterdir())) if before != after and containers.is_dir() else 0
        if count:
            raise dd.DaemonConfigError(
                f"data-root: would change from {before} to {after}, but {count} container(s) exist below {before}. "
                "Remove them first (docker ps --all), or keep the old data-root. Nothing was changed."
            )

    def refuse_ended_containers(self) -> None:
        """A daemon that starts without live-restore ends the containers that have lived on without it."""
        lives_on = self.active or self.config.get("live-restore") is True or self.module.params["restart_allowed"]
        if self.containers and not lives_on:
            raise dd.DaemonConfigError(
                f"{SERVICE} does not run, but {self.containers} container(s) do, and its start would end them, since "
                f"live-restore would not be true in {self.path}. Declare it as true, or drain the node and allow the "
                "restart. Nothing was changed."
            )

    def validate(self) -> str:
        """Let the daemon judge a changed file; returns how. Raises DaemonConfigError."""
        if self.text == self.old_text:
            return ""
        dockerd = self.module.get_bin_path("dockerd", opt_dirs=["/usr/sbin"])
        if dockerd is None:
            if self.module.check_mode:
                return ""
            raise dd.DaemonConfigError("dockerd is not installed: install the engine first. Nothing was changed.")
        flags = dd.daemon_flags(self.service.get("ExecStart", ""), self.host.unit_variables(self.service))
        accepted, words, how = self.host.judge(dockerd, str(self.text), flags)
        if not accepted:
            raise dd.DaemonConfigError(
                f"{self.path}: the daemon refuses the new configuration: {words}\n"
                "Correct the declared keys, or the foreign ones in the file. The file was not changed."
            )
        return how

    def decide(self) -> dict[str, Any]:
        """What is to be done, as the module's result."""
        pending = dd.Pending()
        if self.active:
            pending = dd.pending(self.loaded, self.config, dd.digest(self.environment or ""))
        quiet = self.containers == 0 or self.module.params["restart_allowed"]
        restart = bool(pending.restart) and quiet
        result: dict[str, Any] = {
            "config": self.config,
            "reload_keys": list(pending.reload),
            "restart_keys": list(pending.restart),
            "started": not self.active,
            "restarted": restart,
            "reloaded": bool(pending.reload) and not restart,
            "restart_required": bool(pending.restart) and not restart,
            "containers_running": self.containers,
            "validated_by": self.validated_by,
        }
        result["restart_reasons"] = self.reasons(pending.restart) if result["restart_required"] else []
        self.files_change = self.text != self.old_text or self.owned != self.state.owned
        self.environment_changes = (self.environment, self.drop_in) != (self.old_environment, self.old_drop_in)
        result["changed"] = (
            self.files_change
            or self.environment_changes
            or not self.enabled
            or any(result[key] for key in ("started", "restarted", "reloaded"))
        )
        if self.module._diff:
            result["diff"] = self.diff()
        return result

    def diff(self) -> list[dict[str, str]]:
        """Both files before and after, without the values of the environment."""
        changes = self.environment_changes
        texts = {
            self.path: (self.old_text or "", self.text or ""),
            ENVIRONMENT_FILE: (_shown(self.old_environment, changes, "old"), _shown(self.environment, changes, "new")),
        }
        return [
            {"before_header": str(path), "after_header": str(path), "before": before, "after": after}
            for path, (before, after) in texts.items()
        ]

    def reasons(self, keys: tuple[str, ...]) -> list[str]:
        who = f"{self.containers} container(s) run"
        if self.containers < 0:
            who = "the daemon did not say whether containers run"
        names = ["its proxy environment" if key == dd.ENVIRONMENT else key for key in keys]
        return [f"the running daemon does not have yet: {', '.join(names)} ({who})"]

    def act(self, result: dict[str, Any]) -> None:
        """Write and bring into effect. Raises DaemonConfigError, with the old files back in place."""
        if self.service.get("LoadState") != "loaded":
            state = self.service.get("LoadState")
            raise dd.DaemonConfigError(
                f"{SERVICE} is {state}: install the engine, or unmask its unit. Nothing was changed."
            )
        if self.files_change or self.environment_changes:
            result.update(self.write_files())
        if result["started"]:
            self.or_back(self.host.bring_up("start"), "start")
        elif result["restarted"]:
            self.or_back(self.host.bring_up("restart"), "restart")
        elif result["reloaded"]:
            self.or_back(self.host.reload(), "reload")
        if not self.enabled:
            done, words = self.host.systemctl("enable", SERVICE)
            if not done:
                raise dd.DaemonConfigError(f"systemctl enable {SERVICE} failed: {words}")
        self.remember(result)

    def write_files(self) -> dict[str, str]:
        """The state first: should this run be cut off, the next one knows what the daemon has not loaded yet."""
        backup: dict[str, str] = {}
        self.write_state(dd.State(self.owned, self.invocation, self.loaded if self.active else None))
        if self.text != self.old_text:
            if self.old_text is not None:
                backup = {"backup_file": self.module.backup_local(str(self.path))}
            self.host.write(self.path, self.text, 0o644, keep=True)
        if self.environment_changes:
            self.host.write(ENVIRONMENT_FILE, self.environment, 0o600)
            self.host.write(DROP_IN, self.drop_in, 0o644)
            self.host.systemctl("daemon-reload")
        return backup

    def write_state(self, state: dd.State) -> None:
        if state != self.state or self.old_state_text is None:
            self.host.write(self.state_path, state.dump(), 0o600)
            self.state = state

    def remember(self, result: dict[str, Any]) -> None:
        """Keep what the daemon has loaded only as long as it differs from the file."""
        loaded: dd.Snapshot | None = None
        if result["restart_required"]:
            loaded = dd.after_reload(self.loaded, self.config, result["reload_keys"])
        self.write_state(dd.State(self.owned, self.invocation if loaded else "", loaded))

    def or_back(self, outcome: tuple[bool, str], verb: str) -> None:
        """Go on after success; else bring the daemon up with the old files, and raise DaemonConfigError."""
        done, words = outcome
        if done:
            return
        said = self.host.last_words(self.began) or words
        if not (self.files_change or self.environment_changes):
            raise dd.DaemonConfigError(
                f"{SERVICE} did not {verb}; its configuration was not changed in this run. It said:\n{said}"
            )
        self.host.write(self.path, self.old_text, 0o644, keep=True)
        self.host.write(self.state_path, self.old_state_text, 0o600)
        self.host.write(ENVIRONMENT_FILE, self.old_environment, 0o600)
        self.host.write(DROP_IN, self.old_drop_in, 0o644)
        self.host.systemctl("daemon-reload")
        back = True
        if verb == "reload":
            back, _words = self.host.reload()
        elif self.active:
            back, _words = self.host.bring_up("restart")
        end = "The old configuration is back in place" + (
            " and in use." if self.active and back else f", but the daemon does not run: see journalctl -u {SERVICE}."
        )
        raise dd.DaemonConfigError(f"{SERVICE} did not {verb} with the new configuration. {end} It said:\n{said}")


def _shown(text: str | None, changes: bool, which: str) -> str:
    """The names in an environment file; values may hold a password."""
    if text is None:
        return ""
    names = [line.partition("=")[0] for line in text.splitlines()]
    return "".join(f"{name}=({which if changes else 'same'} value, not shown)\n" for name in names)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "config": {"type": "dict", "default": {}},
            "environment": {"type": "dict", "default": {}, "no_log": True},
            "restart_allowed": {"type": "bool", "default": False},
            "path": {"type": "path", "default": "/etc/docker/daemon.json"},
            "state_path": {"type": "path", "default": "/var/lib/inference/docker-daemon.json"},
        },
        supports_check_mode=True,
    )
    manager = Manager(module)
    try:
        manager.look()
        result = manager.decide()
        if not module.check_mode:
            manager.act(result)
    except (dd.DaemonConfigError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
