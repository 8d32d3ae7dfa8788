#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: docker_daemon
short_description: Merge keys into Docker's daemon.json, and apply them without ending containers
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Sets the declared keys of C(daemon.json). Removes keys that this module has set earlier and that are no longer
    declared. All other keys stay.
  - The daemon checks the new file before it replaces the old file. If the daemon refuses the file, nothing changes.
  - Reloads the daemon if a reload is enough. A change that needs a restart is applied at once if no container runs. If
    containers run, the module does not restart the daemon, unless O(restart_allowed=true). It returns
    RV(restart_required) on every run until the daemon was restarted.
  - If the daemon does not start or reload, the module puts the old file back and reports the daemon's last messages.
  - Writes the authorities of image registries and the logins of Docker's client. Neither needs a reload or a restart.
  - With O(engine), reads Docker's packages and the PCI bus, and sets the keys of C(daemon.json) that give containers
    their GPUs. Reports all mistakes in the input of the role C(docker) at once.
  - Installs no packages. With O(engine), RV(due) is true if a package is missing, has another version than declared,
    or is not pinned and held.
  - Starts and enables the service. While the service is down, containers may still run without it. If C(live-restore)
    is off, a start would end these containers, so the module refuses it unless O(restart_allowed=true).
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - If Docker is not installed yet, the file cannot be checked, and RV(validated_by) is empty.
  diff_mode:
    support: full
    details:
      - Shows only the names in O(environment), and nothing of O(client_config).
options:
  config:
    description:
      - The keys to set, as in C(daemon.json). Objects are merged key by key. A list is replaced as a whole.
    type: dict
    default: {}
  environment:
    description:
      - The environment of the daemon, for its proxies. Its file has mode 0600, because a proxy's address often
        contains a password.
      - Variables that are not declared are removed from this file. Other drop-ins of the unit stay.
    type: dict
    default: {}
  restart_allowed:
    description: Restart the daemon if needed, also while containers run.
    type: bool
    default: false
  authorities:
    description:
      - The certificate authorities of image registries. Each has its own directory below C(/etc/docker/certs.d), which
        the daemon reads at every pull.
    type: list
    elements: dict
    default: []
    suboptions:
      registry:
        description: The image registry, as HOST or HOST:PORT.
        type: str
        required: true
      ca:
        description: The certificate in PEM.
        type: str
        default: ""
      state:
        description: V(absent) removes the registry's directory with all its files.
        type: str
        choices: [present, absent]
        default: present
  logins:
    description:
      - The logins in O(client_config) by image registry, as USER:PASSWORD in Base64, like those of C(docker login).
        Other logins stay. An empty value is refused as an incomplete login.
    type: dict
    default: {}
  logins_gone:
    description: The image registries whose logins are removed from O(client_config).
    type: list
    elements: str
    default: []
  client_config:
    description: >-
      The configuration file of Docker's client, with mode 0600. It stays unchanged if O(logins) and O(logins_gone) are
      empty.
    type: path
    default: /root/.docker/config.json
  engine:
    description: The declared Docker version and GPU access. If omitted, the module does not read packages and GPUs.
    type: dict
    suboptions:
      source:
        description: The source of the packages, Debian's archive or Docker's repository.
        type: str
        choices: [debian, docker]
        default: debian
      version:
        description: The version, with C(*) as a wildcard. Empty for the tested version of the Debian release.
        type: str
        default: ""
      repository_key:
        description: The repository's key, as an address or as ASCII armoured text.
        type: str
        default: ""
      cdi:
        description: Whether to set C(features.cdi) for Docker 25 and later, which support CDI.
        type: bool
        default: true
      nvidia:
        description: Whether containers get GPUs. With V(auto), they do if the PCI bus has an NVIDIA GPU.
        type: str
        choices: [auto, always, never]
        default: auto
      toolkit_version:
        description: The declared version of NVIDIA's container toolkit.
        type: str
        default: ""
      toolkit_minimum:
        description: The oldest supported version of the toolkit.
        type: str
        default: 0.0.0
      toolkit_excluded:
        description: A newer version of the toolkit that is not supported.
        type: str
        default: ""
      root:
        description: The root directory below which C(sys) is read for the PCI bus.
        type: path
        default: /
  files:
    description:
      - Files that other tasks write. The module only compares them, for RV(due). With O(engine), C($(CODENAME\)) in a
        text stands for the name of the node's Debian release.
    type: list
    elements: dict
    default: []
    suboptions: &files
      path:
        description: The file.
        type: path
        required: true
      text:
        description: The expected text, with mode 0644. If omitted, any text is accepted.
        type: str
      checksum:
        description: The expected checksum, as ALGORITHM:DIGEST.
        type: str
        default: ""
      state:
        description: The expected state. V(directory) is a directory with mode 0755.
        type: str
        choices: [present, absent, directory]
        default: present
  gpu_files:
    description: Further files like those of O(files), compared only if containers get GPUs.
    type: list
    elements: dict
    default: []
    suboptions: *files
  gpu_units:
    description: Units that other tasks enable and start. The module compares them for RV(due) if containers get GPUs.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: The unit.
        type: str
        required: true
      enabled:
        description: Whether the unit must be enabled.
        type: bool
        default: true
      active:
        description: Whether the unit must run.
        type: bool
        default: true
  path:
    description: The configuration file of the daemon.
    type: path
    default: /etc/docker/daemon.json
  state_path:
    description: The file in which the module records the keys that it has set, and what the running daemon has loaded.
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

- name: Report that a restart is due
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
  description: Keys that a reload applies, or would apply.
  returned: success
  type: list
  elements: str
restart_keys:
  description: Keys that only a restart applies; V(environment) stands for O(environment).
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
  description: Whether a restart is due that was not made because containers run, or may run.
  returned: success
  type: bool
restart_reasons:
  description: Why a restart is due, one sentence each. Empty if none is due.
  returned: success
  type: list
  elements: str
containers_running:
  description:
    - The number of running containers, V(-1) if the daemon did not answer. While the daemon is down, the number of
      containers that still run without it.
  returned: success
  type: int
validated_by:
  description: >-
    How the daemon checked the file. Empty if the file did not change, or in check mode if Docker is not installed.
  returned: success
  type: str
  sample: dockerd --validate
due:
  description:
    - Whether anything differs from the input and can be changed now, with packages, pins and O(files). A pending
      restart does not count.
  returned: success
  type: bool
due_reasons:
  description: The differences other than RV(config), one sentence each.
  returned: success
  type: list
  elements: str
engine:
  description: The facts about Docker's packages and GPU access.
  returned: if O(engine) is set
  type: dict
  contains:
    present:
      description: Whether all packages are installed.
      type: bool
    moving:
      description: The packages whose installed version differs from the declared version.
      type: list
      elements: str
    postponed:
      description:
        - Whether the change of the version waits because containers run, or may run. RV(restart_required) is then true.
      type: bool
    version:
      description: The version after the run of the role, with C(*) as a wildcard.
      type: str
    install:
      description: The packages, as arguments for apt-get.
      type: list
      elements: str
    pins:
      description: The pins and holds of the packages, as an option for M(baremetal.inference.apt_packages).
      type: dict
    codename:
      description: The name of the node's Debian release.
      type: str
    gpus:
      description: Whether containers get GPUs.
      type: bool
    gpu_request:
      description: How containers get GPUs, V(cdi) from Docker itself, V(runtime) from NVIDIA's runtime.
      type: str
    cdi_problem:
      description:
        - Why containers cannot get GPUs by CDI name, from Docker or from NVIDIA's runtime, and what to do. Empty if
          they can.
      type: str
    driver_loaded:
      description: Whether an NVIDIA driver is loaded.
      type: bool
backup_file:
  description: The copy of the old O(path).
  returned: when O(path) was replaced
  type: str
"""

import os
import re
import shlex
import shutil
import stat
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import differences, files
from ansible_collections.baremetal.inference.plugins.module_utils.core.defaults import DOCKER_CLIENT_CONFIG
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.core.systemd import SystemdError
from ansible_collections.baremetal.inference.plugins.module_utils.debian import (
    apt_packages,
    apt_pins,
    docker_engine,
    docker_input,
    docker_registries,
)
from ansible_collections.baremetal.inference.plugins.module_utils.debian import docker_daemon as dd
from ansible_collections.baremetal.inference.plugins.module_utils.debian.apt_sources import CODENAME
from ansible_collections.baremetal.inference.plugins.module_utils.debian.service_files import (
    HIDDEN,
    ServiceError,
    ServiceFiles,
)
from ansible_collections.baremetal.inference.plugins.module_utils.hardware import pci
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu import driver

SERVICE = "docker.service"
SOCKET = "unix:///run/docker.sock"
ENVIRONMENT_FILE = Path("/etc/docker/daemon.env")
DROP_IN = Path("/etc/systemd/system/docker.service.d/50-environment.conf")
DROP_IN_TEXT = f"# Managed by the role baremetal.inference.docker\n[Service]\nEnvironmentFile={ENVIRONMENT_FILE}\n"

PROCESSES = Path("/proc")
RELEASE = Path("/etc/os-release")
DRIVER = Path("/dev/nvidiactl")
TOOLKIT_CONFIG = Path("/etc/nvidia-container-runtime/config.toml")

ARGUMENTS: dict[str, Any] = {
    "config": {"type": "dict", "default": {}},
    "environment": {"type": "dict", "default": {}, "no_log": True},
    "restart_allowed": {"type": "bool", "default": False},
    "authorities": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "registry": {"type": "str", "required": True},
            "ca": {"type": "str", "default": ""},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
    },
    "logins": {"type": "dict", "default": {}, "no_log": True},
    "logins_gone": {"type": "list", "elements": "str", "default": []},
    "client_config": {"type": "path", "default": DOCKER_CLIENT_CONFIG},
    "engine": {
        "type": "dict",
        "options": {
            "source": {"type": "str", "choices": list(docker_engine.FOREIGN), "default": docker_engine.DEBIAN},
            "version": {"type": "str", "default": ""},
            "repository_key": {"type": "str", "default": "", "no_log": False},
            "cdi": {"type": "bool", "default": True},
            "nvidia": {"type": "str", "choices": ["auto", "always", "never"], "default": "auto"},
            "toolkit_version": {"type": "str", "default": ""},
            "toolkit_minimum": {"type": "str", "default": "0.0.0"},
            "toolkit_excluded": {"type": "str", "default": ""},
            "root": {"type": "path", "default": "/"},
        },
    },
    "files": differences.FILE_OPTIONS,
    "gpu_files": differences.FILE_OPTIONS,
    "gpu_units": differences.UNIT_OPTIONS,
    "path": {"type": "path", "default": "/etc/docker/daemon.json"},
    "state_path": {"type": "path", "default": str(Paths().docker_daemon)},
}

SHIM = "containerd-shim"
"""The kernel's name of the process that keeps a container running without the daemon: the first 15 characters of
containerd-shim-runc-v2, and of the shims of other runtimes."""

NOBODY = 65534
"""The user ID for checks of a file: as this user, even a daemon without a check mode can neither start nor write."""

QUICK = 30
"""Time limit of a query to the daemon, in seconds."""

SLOW = 300
"""Time limit of the daemon's start or stop, in seconds."""

RELOAD = 10
"""How long to wait for the daemon's event of its reload, in seconds."""


class Host:
    """The machine: its commands, files and GPUs."""

    def run(self, *command: str, timeout: int = QUICK, **options: Any) -> tuple[int, str]:
        """Exit code and both outputs of a command; 124 after its time limit, 127 if the program is missing."""
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
        """A file's text, or None if the file does not exist. Raises ServiceError."""
        try:
            return path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise ServiceError(f"{path}: cannot be read: {error}. Correct the file. Nothing was changed.") from error

    def release(self) -> dict[str, str]:
        """The keys of /etc/os-release. Raises ServiceError."""
        lines = (self.read(RELEASE) or "").splitlines()
        return {key: value.strip('"') for key, _sign, value in (line.partition("=") for line in lines)}

    def packages(self, names: Sequence[str]) -> dict[str, apt_packages.Installed]:
        """The installed packages of some names. Raises ServiceError."""
        code, output = self.run("dpkg-query", "--show", f"--showformat={apt_packages.FORM}", *names)
        # 1: dpkg does not know one of the packages.
        if code not in (0, 1):
            raise ServiceError(f"dpkg-query failed ({code}): {output.strip()}. Nothing was changed.")
        return apt_packages.read_installed(output)

    def has_gpu(self, root: Path) -> bool:
        """Whether the PCI bus has an NVIDIA GPU that is neither excluded nor given to a virtual machine."""
        return any(not driver.left_alone(root, gpu.driver, gpu.address) for gpu in pci.nvidia_gpus(root))

    def service(self) -> dict[str, str]:
        """The properties of the daemon's unit. Raises ServiceError if systemd does not answer."""
        names = "LoadState,ActiveState,UnitFileState,InvocationID,ExecStart,EnvironmentFiles"
        code, output = self.run("systemctl", "show", SERVICE, f"--property={names}")
        if code:
            raise ServiceError(f"systemctl show {SERVICE} failed: {output.strip()}")
        found: dict[str, str] = {}
        for line in output.splitlines():
            key, separator, value = line.partition("=")
            # systemd prints a line for each file in EnvironmentFiles.
            if separator:
                found[key] = f"{found[key]}\n{value}" if key in found else value
        return found

    def containers(self) -> int:
        """The number of running containers, -1 without an answer. The query starts a daemon that does not run."""
        code, output = self.run("docker", "--host", SOCKET, "ps", "--quiet", "--no-trunc")
        return len(re.findall(r"^[0-9a-f]{64}$", output, re.MULTILINE)) if code == 0 else -1

    def shims(self) -> int:
        """The number of containers that run without a daemon, by their shims. live-restore leaves them at a stop."""
        count = 0
        for name in PROCESSES.glob("[0-9]*/comm"):
            with suppress(OSError):  # The process has ended meanwhile.
                count += name.read_text(encoding="utf-8", errors="replace").strip() == SHIM
        return count

    def unit_variables(self, service: dict[str, str]) -> dict[str, str]:
        """The variables of the unit's environment files, from which the daemon may get flags. Raises ServiceError."""
        variables: dict[str, str] = {}
        for listed in service.get("EnvironmentFiles", "").splitlines():
            name = re.sub(r" \(ignore_errors=(yes|no)\)$", "", listed.strip())
            for line in (self.read(Path(name)) or "").splitlines() if name else []:
                key, separator, value = line.strip().partition("=")
                if not separator or key.startswith("#"):
                    continue
                try:
                    variables[key] = " ".join(shlex.split(value))
                except ValueError as error:
                    raise ServiceError(
                        f"{name}: the value of {key} has a quote without an end. Correct the file. Nothing was changed."
                    ) from error
        return variables

    def check(self, dockerd: str, text: str, flags: list[str]) -> tuple[bool, str, str]:
        """Let the daemon check a configuration. Returns whether it is accepted, the daemon's messages, and the method.

        Docker 23.0 and later have --validate. An older daemon without privileges checks its configuration first, and
        then ends because it is not root, before it has written anything.
        The text is passed by a file in memory: it may contain a secret, and no file stays behind.
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
            accepted, words = dd.validation_result(code, output)
            return accepted, words.replace(name, "daemon.json"), how
        finally:
            os.close(memory)

    def reloaded_since(self, moment: float) -> bool:
        """Whether the daemon has reloaded since a time (seconds since the epoch), by its events."""
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
        self.client_config = Path(self.params["client_config"])
        self.secret = (ENVIRONMENT_FILE, self.client_config)
        # The owner and the mode of these files are no difference, because an operator may change them.
        self.operators = (self.path, ENVIRONMENT_FILE, DROP_IN)

    def command(self, *words: str) -> tuple[int, str, str]:
        code, output = self.host.run(*words, timeout=SLOW)
        return code, output, ""

    def read(self, path: Path) -> str | None:
        return self.host.read(path)

    def inspect(self) -> None:
        self.service = self.host.service()
        running = self.service.get("ActiveState") in ("active", "reloading")
        self.active = {SERVICE: running}
        self.enabled = {SERVICE: self.service.get("UnitFileState") == "enabled"}
        self.containers = self.host.containers() if running else self.host.shims()
        self.invocation = self.service.get("InvocationID", "")
        self.refuse_bad_input()
        self.read_engine()
        self.old_text = self.read(self.path)
        self.old_state_text = self.read(self.state_path)
        old = dd.parse(self.old_text or "", str(self.path))
        self.state = dd.load_state(self.old_state_text or "", str(self.state_path))
        merged = dd.merge(old, self.declared(), self.state.owned)
        self.config, self.owned = merged.config, merged.owned
        text = self.old_text if dd.same(old, self.config) else dd.render(self.config)
        environment = dd.environment_text({key: str(value) for key, value in self.params["environment"].items()})
        drop_in = DROP_IN_TEXT if environment else None
        own = {self.path: text, ENVIRONMENT_FILE: environment or None, DROP_IN: drop_in}
        self.compare(own | self.authorities() | self.client())
        self.environment = dd.digest(environment)
        remembered = self.state.loaded if self.state.invocation == self.invocation else None
        self.loaded = remembered or dd.Snapshot(old, dd.digest(self.before[ENVIRONMENT_FILE] or ""))
        if not (remembered and running):
            self.state = dd.State(self.state.owned)
        self.refuse_bad_values()
        self.refuse_lost_containers(old)
        self.refuse_ended_containers()
        self.validated_by = self.validate()

    def refuse_bad_input(self) -> None:
        """Check the input of the role docker. Raises ServiceError with all mistakes."""
        params = self.params
        found = docker_registries.authority_problems(params["authorities"])
        found += docker_registries.login_problems(params["logins"])
        if params["engine"]:
            found += docker_input.problems(params["engine"])
            found += docker_input.path_problems(str(params["config"].get("data-root", "")), params["client_config"])
        if found:
            raise ServiceError("\n- ".join(["The input of role docker has mistakes. Nothing was changed.", *found]))

    def read_engine(self) -> None:
        """Read packages and GPUs. Raises ServiceError if the node does not allow the declared Docker."""
        self.engine: docker_engine.Engine | None = None
        wish = self.params["engine"]
        if not wish:
            return
        self.release = self.host.release()
        number, source = self.release.get("VERSION_ID", ""), wish["source"]
        if self.release.get("ID") != "debian" or number not in docker_engine.PACKAGES:
            raise ServiceError(
                f"role docker supports Debian {' and '.join(docker_engine.PACKAGES)}, found "
                f"{self.release.get('PRETTY_NAME', 'an unknown system')}. Install a supported release on the node, or "
                "remove the node from the inventory group. Nothing was changed."
            )
        quiet = self.containers == 0 or self.params["restart_allowed"]
        installed = self.host.packages(docker_engine.names(source, number))
        packages = docker_engine.PACKAGES[number][source]
        self.engine = docker_engine.Engine(source, packages, installed, wish["version"], quiet)
        if foreign := self.engine.foreign:
            raise ServiceError(
                f'docker_source is "{source}", but {", ".join(foreign)} of the other source is installed. A node can '
                "have only one of them. Set docker_source to the installed one, or drain the node, run `apt-get remove "
                f"--allow-change-held-packages {' '.join(foreign)}`, and try again. Nothing was changed."
            )
        nvidia = wish["nvidia"]
        self.gpus = nvidia == "always" or (nvidia == "auto" and self.host.has_gpu(Path(wish["root"])))

    def declared(self) -> dict[str, Any]:
        """The declared keys, with the keys that give containers their GPUs."""
        config: dict[str, Any] = self.params["config"]
        if not self.engine:
            return config
        return dd.merge(self.engine.keys(self.params["engine"]["cdi"], self.gpus), config).config

    def authorities(self) -> dict[Path, str | None]:
        """The files of the registries' authorities. Sets `surplus`, the directories to remove."""
        declared = self.params["authorities"]
        directories = [
            docker_registries.authority(one["registry"]).parent for one in declared if one["state"] == "absent"
        ]
        self.surplus = [path for path in directories if path.exists()]
        return {
            docker_registries.authority(one["registry"]): one["ca"] for one in declared if one["state"] == "present"
        }

    def client(self) -> dict[Path, str | None]:
        """The client's configuration, if logins are declared or to be removed. Raises ServiceError."""
        logins, gone = self.params["logins"], self.params["logins_gone"]
        if not (logins or gone):
            return {}
        old = self.read(self.client_config)
        return {self.client_config: docker_registries.client_config(old, str(self.client_config), logins, gone)}

    def refuse_bad_values(self) -> None:
        found = dd.problems(self.config)
        if found:
            raise ServiceError("\n- ".join([f"{self.path} would have mistakes. Nothing was changed.", *found]))

    def refuse_lost_containers(self, old: dict[str, Any]) -> None:
        """Refuse a new data root: the daemon would start without the containers of the old one. Raises ServiceError."""
        before, after = dd.data_root(old), dd.data_root(self.config)
        containers = Path(before, "containers")
        count = len(list(containers.iterdir())) if before != after and containers.is_dir() else 0
        if count:
            raise ServiceError(
                f"data-root: would change from {before} to {after}, but {count} container(s) exist below {before}. "
                "Remove them first (docker ps --all), or keep the old data-root. Nothing was changed."
            )

    def refuse_ended_containers(self) -> None:
        """Refuse a start without live-restore that would end running containers. Raises ServiceError."""
        lives_on = self.config.get("live-restore") is True or self.params["restart_allowed"]
        if self.containers and not self.active[SERVICE] and not lives_on:
            raise ServiceError(
                f"{SERVICE} does not run, but {self.containers} container(s) do. Its start would end them, because "
                f"live-restore would not be true in {self.path}. Declare live-restore as true, or drain the node and "
                "allow the restart. Nothing was changed."
            )

    def validate(self) -> str:
        """Let the daemon check a changed file. Returns the method, empty without a check. Raises ServiceError."""
        if self.path not in self.altered:
            return ""
        dockerd = self.module.get_bin_path("dockerd", opt_dirs=["/usr/sbin"])
        if dockerd is None:
            if self.module.check_mode:
                return ""
            raise ServiceError("dockerd is not installed: install Docker's packages first. Nothing was changed.")
        flags = dd.daemon_flags(self.service.get("ExecStart", ""), self.host.unit_variables(self.service))
        accepted, words, how = self.host.check(dockerd, str(self.wanted[self.path]), flags)
        if not accepted:
            raise ServiceError(
                f"{self.path}: the daemon refuses the new configuration: {words}\n"
                "Correct the declared keys, or other keys in the file. The file was not changed."
            )
        return how

    def mode(self, path: Path) -> int:
        return 0o600 if path in self.secret else 0o644

    def kept(self, path: Path) -> bool:
        return path in self.operators or files.own(path, self.mode(path))

    def write(self, path: Path, text: str | None, place: Path) -> None:
        if path != self.path or text is None or not place.exists():
            super().write(path, text, place)
            if text is not None and path not in self.operators:
                os.chown(place, os.geteuid(), os.getegid())
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
        result["changed"] = self.changes or bool(self.surplus) or self.owned != self.state.owned
        if self.module._diff:
            others = [path for path in self.differing if path not in self.operators]
            result["diff"] = self.diff([self.path, ENVIRONMENT_FILE, *others])
            result["diff"] += [{"before": f"{path}\n", "after": ""} for path in self.surplus]
        return result

    def judge(self, result: dict[str, Any]) -> dict[str, Any]:
        """Add `due`, its reasons and the facts about Docker to the result.

        Raises ServiceError, SystemdError, PinError and OSError.
        """
        reasons: list[str] = []
        files_of_others = list(self.params["files"])
        if self.engine:
            not_loaded = result["restart_keys"] if result["restart_required"] else []
            result["engine"] = {
                "present": self.engine.present,
                "moving": self.engine.moving,
                "postponed": self.engine.postponed,
                "version": self.engine.version,
                "install": self.engine.install,
                "pins": self.engine.pins,
                "codename": self.release.get("VERSION_CODENAME", ""),
                "gpus": self.gpus,
                "gpu_request": self.engine.gpu_request,
                "cdi_problem": self.engine.cdi_problem(self.gpus, self.config, not_loaded),
                "driver_loaded": DRIVER.exists(),
            }
            result["restart_reasons"] += filter(None, [self.engine.restart_reason])
            result["restart_required"] = bool(result["restart_reasons"])
            reasons += self.package_reasons(self.engine)
            if self.gpus:
                files_of_others += self.params["gpu_files"]
                reasons += differences.of_units(self.params["gpu_units"])
                reasons += self.runtime_reasons(self.engine)
            files_of_others = [self.with_codename(one) for one in files_of_others]
        reasons += differences.of_files(files_of_others)
        result["due_reasons"] = reasons
        result["due"] = bool(result["changed"] or reasons)
        return result

    def package_reasons(self, engine: docker_engine.Engine) -> list[str]:
        """Which packages are missing, have another version, or are not pinned and held. Raises PinError and OSError."""
        reasons = [] if engine.present else [f"not all of {' '.join(engine.install)} are installed"]
        if not engine.postponed:
            reasons += [f"{name} has another version than {engine.wanted}" for name in engine.moving]
        return reasons + apt_pins.Pins(self.module.run_command, engine.pins, check=True).reasons()

    def runtime_reasons(self, engine: docker_engine.Engine) -> list[str]:
        """Why NVIDIA's runtime would not use the CDI specification. Raises ServiceError."""
        if engine.gpu_request == "cdi" or docker_engine.runtime_uses_cdi(self.read(TOOLKIT_CONFIG)):
            return []
        return [f"{TOOLKIT_CONFIG} does not set the runtime to use the CDI specification"]

    def with_codename(self, declared: dict[str, Any]) -> dict[str, Any]:
        """A declared file, with the name of the node's Debian release in its text."""
        text, codename = declared["text"], self.release.get("VERSION_CODENAME", "")
        return declared if text is None else {**declared, "text": text.replace(CODENAME, codename)}

    def shown(self, path: Path) -> tuple[str, str]:
        if path == self.client_config:
            return HIDDEN
        before, after = super().shown(path)
        if path != ENVIRONMENT_FILE:
            return before, after
        changes = path in self.altered
        return _names(before, changes, "old"), _names(after, changes, "new")

    def reasons(self, keys: tuple[str, ...]) -> list[str]:
        why = f"{self.containers} container(s) run"
        if self.containers < 0:
            why = "the daemon did not answer whether containers run"
        names = ["its proxy environment" if key == dd.ENVIRONMENT else key for key in keys]
        return [f"the running daemon has not loaded yet: {', '.join(names)} ({why})"]

    def apply(self, result: dict[str, Any]) -> None:
        if (loaded := self.service.get("LoadState")) != "loaded":
            raise ServiceError(f"{SERVICE} is {loaded}: install Docker, or unmask its unit. Nothing was changed.")
        super().apply(result)
        for directory in self.surplus:
            shutil.rmtree(directory)

    def back_up(self) -> dict[str, Any]:
        if not self.differing and self.owned == self.state.owned:
            return {}
        # The state first: if this run is cut off, the next run still knows what the daemon has not loaded yet.
        self.write_state(dd.State(self.owned, self.invocation, self.loaded if self.active[SERVICE] else None))
        if self.path not in self.altered or self.old_text is None:
            return {}
        return {"backup_file": self.module.backup_local(str(self.path))}

    def write_state(self, state: dd.State) -> None:
        if state != self.state or self.old_state_text is None:
            files.write(self.state_path, state.dump(), 0o600)
            self.state = state

    def record(self, result: dict[str, Any]) -> None:
        # The state has the loaded configuration only as long as it differs from the file.
        loaded: dd.Snapshot | None = None
        if result["restart_required"]:
            loaded = dd.after_reload(self.loaded, self.config, result["reload_keys"])
        self.write_state(dd.State(self.owned, self.invocation if loaded else "", loaded))

    def why_not_up(self, unit: str, action: str, began: float) -> str:
        # systemctl returns from a reload when the signal is sent, but from a start only when the daemon is up.
        if action != "reload" or self.wait(lambda: self.host.reloaded_since(began) or None, RELOAD):
            return ""
        return f"the daemon did not report its reload within {RELOAD} s"

    def is_noise(self, line: str) -> bool:
        return "level=info" in line or "level=debug" in line

    def put_back(self) -> str:
        try:
            files.write(self.state_path, self.old_state_text, 0o600)
        except OSError as error:
            # The caller also reports the error of the change, so this error must not replace it.
            return f"{super().put_back()} {self.state_path} could not be restored: {error}."
        return super().put_back()


def _names(text: str, changes: bool, which: str) -> str:
    """The names in an environment file, without their values, which may contain a password."""
    names = [line.partition("=")[0] for line in text.splitlines()]
    return "".join(f"{name}=({which if changes else 'same'} value, not shown)\n" for name in names)


def main() -> None:
    module = AnsibleModule(
        argument_spec=ARGUMENTS,
        supports_check_mode=True,
    )
    try:
        daemon = DockerDaemon(module)
        result = daemon.judge(daemon.run())
    except (ServiceError, SystemdError, apt_pins.PinError, OSError, UnicodeDecodeError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
