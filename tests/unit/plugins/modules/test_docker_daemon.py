# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module docker_daemon against a fake of the node's commands."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import systemd
from ansible_collections.baremetal.inference.plugins.module_utils.debian import (
    apt_pins,
    docker_registries,
    service_files,
)
from ansible_collections.baremetal.inference.plugins.module_utils.debian.service_files import ServiceError
from ansible_collections.baremetal.inference.plugins.modules import docker_daemon as module_under_test

CONTAINER = "c" * 64


class Node:
    """A node: its files below a temporary directory, and a daemon that can refuse commands."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.daemon_json = root / "docker/daemon.json"
        self.state = root / "state/docker-daemon.json"
        self.client = root / "client/config.json"
        self.containers = 0
        self.active = True
        self.enabled = True
        self.invocation = 1
        self.old_engine = False
        self.refuses: set[str] = set()
        self.answers = True
        self.packages = {
            "docker.io": "26.1.5+dfsg1-9",
            "docker-cli": "26.1.5+dfsg1-9",
            "containerd": "1.7",
            "runc": "1.1",
        }
        self.held = set(self.packages)
        self.judged: list[dict[str, Any]] = []
        self.calls: list[str] = []

    def run(self, *command: str) -> tuple[int, str]:
        """Replaces Host.run."""
        words = " ".join(command)
        if "--config-file" in command:
            return self.judge(command)
        if words.startswith("systemctl show"):
            return 0, self.show()
        if words.startswith("dpkg-query"):
            return 1, self.dpkg(*command[3:])
        if " ps " in words:
            return (0, f"WARNING: of the client\n{CONTAINER}\n" * self.containers) if self.answers else (1, "no answer")
        if " events " in words:
            return 0, "reloaded" if "reload" not in self.refuses else ""
        if words.startswith("systemctl"):
            return self.systemctl(command[1])
        return 0, "the daemon's last words"

    def dpkg(self, *names: str) -> str:
        """The lines that dpkg-query prints about these packages, or about all packages."""
        lines = [
            f"{'hold' if name in self.held else 'install'} installed {name} {self.packages[name]}\n"
            for name in self.packages
            if not names or name in names
        ]
        return "".join(lines)

    def run_command(self, command: list[str], **options: Any) -> tuple[int, str, str]:
        """Replaces the module's run_command, which the pins use."""
        lines = self.dpkg(*command[3:]).splitlines()
        return 0, "".join(line.rpartition(" ")[0] + "\n" for line in lines), ""

    def judge(self, command: tuple[str, ...]) -> tuple[int, str]:
        if self.old_engine and "--validate" in command:
            return 1, "Status: unknown flag: --validate\nSee 'dockerd --help'., Code: 125\n"
        config = json.loads(Path(command[-1]).read_text(encoding="utf-8"))
        self.judged.append(config)
        if "no-such-key" in config:
            return 1, f"unable to configure the Docker daemon with file {command[-1]}: no-such-key"
        return (1, "dockerd needs to be started with root privileges") if self.old_engine else (0, "configuration OK")

    def show(self) -> str:
        return (
            f"LoadState=loaded\nActiveState={'active' if self.active else 'inactive'}\n"
            f"InvocationID=id{self.invocation}\nExecStart=\nEnvironmentFiles=\n"
            f"UnitFileState={'enabled' if self.enabled else 'disabled'}\n"
        )

    def systemctl(self, verb: str) -> tuple[int, str]:
        self.calls.append(verb)
        if verb in ("start", "restart"):
            self.active = "bip" not in self.config() or verb not in self.refuses
            self.invocation += 1
            return (0, "") if self.active else (1, "Job failed")
        if verb == "enable":
            self.enabled = True
        return 0, ""

    def config(self) -> dict[str, Any]:
        return json.loads(self.daemon_json.read_text(encoding="utf-8")) if self.daemon_json.exists() else {}

    def write(self, config: dict[str, Any]) -> None:
        self.daemon_json.parent.mkdir(exist_ok=True)
        self.daemon_json.write_text(json.dumps(config), encoding="utf-8")

    def apply(self, config: dict[str, Any], check: bool = False, **params: Any) -> dict[str, Any]:
        """One run of the module."""
        self.calls.clear()
        places = {"path": str(self.daemon_json), "state_path": str(self.state), "client_config": str(self.client)}
        defaults = {name: option.get("default") for name, option in module_under_test.ARGUMENTS.items()}
        module: Any = SimpleNamespace(
            params={**defaults, "config": config, **places, **params},
            check_mode=check,
            run_command=self.run_command,
            _diff=True,
            get_bin_path=lambda name, opt_dirs: f"/usr/sbin/{name}",
            backup_local=lambda path: f"{path}.backup",
        )
        daemon = module_under_test.DockerDaemon(module)
        return daemon.judge(daemon.run())

    def verbs(self) -> list[str]:
        return [call for call in self.calls if call in ("start", "restart", "reload", "enable")]


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    node = Node(tmp_path)

    def run(host: Any, *command: str, **options: Any) -> tuple[int, str]:
        return node.run(*command)

    monkeypatch.setattr(module_under_test.Host, "run", run)
    monkeypatch.setattr(module_under_test, "ENVIRONMENT_FILE", tmp_path / "docker/daemon.env")
    monkeypatch.setattr(module_under_test, "DROP_IN", tmp_path / "unit.d/50-environment.conf")
    monkeypatch.setattr(module_under_test, "PROCESSES", tmp_path / "proc")
    monkeypatch.setattr(module_under_test, "RELEASE", tmp_path / "os-release")
    monkeypatch.setattr(module_under_test, "DRIVER", tmp_path / "dev/nvidiactl")
    monkeypatch.setattr(module_under_test, "TOOLKIT_CONFIG", tmp_path / "runtime/config.toml")
    monkeypatch.setattr(docker_registries, "AUTHORITIES", tmp_path / "docker/certs.d")
    monkeypatch.setattr(apt_pins, "ETC_APT", tmp_path / "apt")
    monkeypatch.setattr(apt_pins, "PREFERENCES", tmp_path / "apt/preferences.d")
    (tmp_path / "os-release").write_text('PRETTY_NAME="Debian"\nID=debian\nVERSION_ID="13"\nVERSION_CODENAME=trixie\n')
    monkeypatch.setattr(module_under_test, "RELOAD", 0.05)
    monkeypatch.setattr(service_files, "POLL_SECONDS", 0.02)
    return node


def test_a_fresh_node_is_configured_before_its_first_start(node: Node) -> None:
    node.active = node.enabled = False
    predicted = node.apply({"debug": True}, check=True)
    assert not node.daemon_json.exists() and not node.state.exists()
    done = node.apply({"debug": True})
    assert node.verbs() == ["start", "enable"]
    assert {**predicted, "diff": None} == {**done, "diff": None}
    assert done["changed"] and done["started"]
    assert not node.apply({"debug": True})["changed"]


@pytest.mark.parametrize("old_engine", [True, False])
def test_dockerd_checks_the_file_before_any_change(node: Node, old_engine: bool) -> None:
    node.old_engine = old_engine
    node.write({"labels": ["x"]})
    before = node.daemon_json.read_text(encoding="utf-8")
    with pytest.raises(ServiceError, match=r"daemon\.json: no-such-key"):
        node.apply({"no-such-key": 1})
    assert node.daemon_json.read_text(encoding="utf-8") == before
    assert not node.state.exists() and node.verbs() == []
    result = node.apply({"debug": True})
    assert node.judged[-1] == {"labels": ["x"], "debug": True}
    assert result["validated_by"] == ("dockerd without privileges" if old_engine else "dockerd --validate")


def test_a_reload_needs_no_end_of_running_containers(node: Node) -> None:
    node.containers = 1
    result = node.apply({"debug": True})
    assert node.verbs() == ["reload"]
    assert result["reloaded"] and not result["restart_required"] and result["containers_running"] == 1
    assert not node.apply({"debug": True})["changed"]


def test_a_restart_waits_for_the_containers_to_end(node: Node) -> None:
    node.containers = 2
    first = node.apply({"bip": "10.0.0.1/24", "debug": True})
    assert node.verbs() == ["reload"], "a reload loads debug"
    assert (
        first["restart_required"]
        and "bip" in first["restart_reasons"][0]
        and "2 container" in first["restart_reasons"][0]
    )
    second = node.apply({"bip": "10.0.0.1/24", "debug": True})
    assert second["restart_required"] and second["restart_keys"] == ["bip"] and not second["changed"]
    back = node.apply({"debug": True})
    assert not back["restart_required"], "the daemon never loaded the key that is removed again"
    node.apply({"bip": "10.0.0.1/24", "debug": True})
    node.containers = 0
    assert node.apply({"bip": "10.0.0.1/24", "debug": True})["restarted"]
    assert not node.apply({"bip": "10.0.0.1/24", "debug": True})["changed"]


def test_no_restart_is_required_after_a_restart_by_hand(node: Node) -> None:
    node.containers = 1
    assert node.apply({"bip": "10.0.0.1/24"})["restart_required"]
    node.invocation += 1
    result = node.apply({"bip": "10.0.0.1/24"})
    assert not result["restart_required"] and not result["changed"]


def test_the_daemon_restarts_if_it_may_or_runs_no_container(node: Node) -> None:
    node.containers = 1
    assert node.apply({"bip": "10.0.0.1/24"}, restart_allowed=True)["restarted"]
    node.containers = 0
    assert node.apply({})["restarted"]
    assert node.config() == {}


def test_a_daemon_that_does_not_answer_counts_as_a_daemon_with_containers(node: Node) -> None:
    node.answers = False
    result = node.apply({"bip": "10.0.0.1/24"})
    assert result["restart_required"] and result["containers_running"] == -1 and node.verbs() == []


def leave_behind(node: Node, shims: int) -> None:
    """Stop the daemon, and leave processes of containers and other processes."""
    node.active = False
    for number, name in enumerate(["systemd", "containerd", *["containerd-shim"] * shims], start=1):
        comm = node.root / f"proc/{number}/comm"
        comm.parent.mkdir(parents=True)
        comm.write_text(f"{name}\n", encoding="utf-8")


def test_containers_are_counted_while_the_daemon_is_down(node: Node) -> None:
    leave_behind(node, shims=2)
    result = node.apply({"live-restore": True}, check=True)
    assert result["containers_running"] == 2 and result["started"]
    node.apply({"live-restore": True})
    assert node.verbs() == ["start"]


def test_a_daemon_that_does_not_run_is_started_if_no_container_runs(node: Node) -> None:
    leave_behind(node, shims=0)
    assert node.apply({"live-restore": False})["containers_running"] == 0
    assert node.verbs() == ["start"]


def test_a_start_that_would_end_containers_is_refused(node: Node) -> None:
    leave_behind(node, shims=1)
    node.write({"live-restore": True})
    for check in (True, False):
        with pytest.raises(ServiceError, match="1 container"):
            node.apply({"live-restore": False}, check=check)
    assert node.config() == {"live-restore": True} and node.verbs() == []
    node.apply({"live-restore": False}, restart_allowed=True)
    assert node.verbs() == ["start"]


def test_a_failed_restart_puts_the_old_file_back(node: Node) -> None:
    node.write({"debug": True})
    node.refuses = {"restart"}
    with pytest.raises(
        ServiceError, match=r"old files are back in place, and docker\.service runs with them"
    ) as caught:
        node.apply({"bip": "bad"})
    assert "last words" in str(caught.value)
    assert node.config() == {"debug": True} and not node.state.exists()
    assert node.verbs() == ["restart", "restart"] and node.active


def test_a_failed_reload_puts_the_old_file_back(node: Node) -> None:
    node.write({"labels": ["x"]})
    node.refuses = {"reload"}
    with pytest.raises(ServiceError, match="did not reload"):
        node.apply({"debug": True})
    assert node.config() == {"labels": ["x"]} and not node.state.exists()


def test_a_record_that_cannot_be_restored_does_not_hide_the_first_error(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.write({"labels": ["x"]})
    node.refuses = {"reload"}
    write = module_under_test.files.write

    def full(path: Path, content: Any, mode: int = 0o644) -> bool:
        if path == node.state and content is None:
            raise OSError(30, "Read-only file system")
        return write(path, content, mode)

    monkeypatch.setattr(module_under_test.files, "write", full)
    with pytest.raises(ServiceError, match="did not reload") as caught:
        node.apply({"debug": True})
    assert f"{node.state} could not be restored: [Errno 30] Read-only file system" in str(caught.value)
    assert node.config() == {"labels": ["x"]}


def test_a_run_that_was_cut_off_is_finished_by_the_next(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(verb: str) -> tuple[int, str]:
        raise KeyboardInterrupt

    node.containers = 1
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(node, "systemctl", interrupted)
        node.apply({"debug": True})
    assert node.config() == {"debug": True}
    result = node.apply({"debug": True})
    assert result["reloaded"] and node.verbs() == ["reload"]
    assert not node.apply({"debug": True})["changed"]


def test_the_setting_data_root_stays_while_containers_exist(node: Node) -> None:
    old = node.root / "old"
    (old / "containers/abc").mkdir(parents=True)
    node.write({"data-root": str(old)})
    with pytest.raises(ServiceError, match="1 container"):
        node.apply({"data-root": "/srv/docker"}, check=True)
    (old / "containers/abc").rmdir()
    assert node.apply({"data-root": "/srv/docker"})["restarted"]


def test_proxies_are_not_shown(node: Node) -> None:
    node.containers = 1
    secret = {"HTTP_PROXY": "http://user:hunter2@proxy:3128"}
    result = node.apply({}, environment=secret)
    assert result["restart_keys"] == ["environment"] and result["restart_required"]
    assert "hunter2" not in json.dumps(result) and "hunter2" not in node.state.read_text(encoding="utf-8")
    files = [module_under_test.ENVIRONMENT_FILE, node.state]
    assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600, 0o600]
    assert node.apply({}, environment=secret)["restart_required"]
    node.containers = 0
    assert node.apply({}, environment={})["changed"]
    assert not module_under_test.ENVIRONMENT_FILE.exists() and not module_under_test.DROP_IN.exists()


def test_the_mode_of_the_file_stays(node: Node) -> None:
    node.write({})
    node.daemon_json.chmod(0o640)
    node.apply({"debug": True})
    assert stat.S_IMODE(node.daemon_json.stat().st_mode) == 0o640


def test_the_formatting_of_an_unchanged_file_stays(node: Node) -> None:
    node.write({"debug": True})
    before = node.daemon_json.read_text(encoding="utf-8")
    assert node.apply({"debug": True})["changed"], "the module manages the key from now on"
    assert node.daemon_json.read_text(encoding="utf-8") == before and node.judged == []
    assert not node.apply({"debug": True})["changed"]


ENGINE: dict[str, Any] = {
    "source": "debian",
    "version": "",
    "repository_key": "",
    "cdi": True,
    "nvidia": "auto",
    "toolkit_version": "1.20.0",
    "toolkit_minimum": "1.18.0",
    "toolkit_excluded": "1.19.0",
    "root": "/no/bus",
}
PEM = "-----BEGIN CERTIFICATE-----\nours\n"
SECRET = "cm9vdDpodW50ZXIy"
DECLARED: dict[str, Any] = {
    "engine": ENGINE,
    "authorities": [{"registry": "registry:5000", "ca": PEM, "state": "present"}],
    "logins": {"registry:5000": SECRET},
}


def settle(node: Node, **params: Any) -> None:
    """Bring the node into the declared state."""
    node.apply({"debug": True}, **{**DECLARED, **params})
    pins = {"name": "docker", "packages": list(node.packages), "pinned": ["docker.io", "docker-cli"], "versions": {}}
    found = apt_pins.Pins(node.run_command, {**pins, "version": "26.1.5*"}, check=True)
    for path, text in found.texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def inspect(node: Node, **params: Any) -> dict[str, Any]:
    """The result of check mode, as in the preflight of the role."""
    return node.apply({"debug": True}, check=True, **{**DECLARED, **params})


def test_a_node_with_nothing_to_change_is_not_due(node: Node) -> None:
    settle(node)
    found = inspect(node)
    assert (found["due"], found["due_reasons"], found["changed"]) == (False, [], False)
    assert (found["engine"]["version"], found["engine"]["codename"]) == ("26.1.5*", "trixie")
    assert (found["engine"]["gpus"], found["engine"]["cdi_problem"]) == (False, "")
    assert node.config()["features"] == {"cdi": True}
    assert SECRET not in json.dumps(found)


def unhold(node: Node) -> None:
    node.held.remove("runc")


def upgrade(node: Node) -> None:
    node.packages["docker.io"] = "26.2.0-1"


def uninstall(node: Node) -> None:
    del node.packages["runc"]


def unpin(node: Node) -> None:
    (node.root / "apt/preferences.d/52-docker").unlink()


def edit(node: Node) -> None:
    node.write({**node.config(), "debug": False})


def stop(node: Node) -> None:
    node.active = False


def disable(node: Node) -> None:
    node.enabled = False


def lose_authority(node: Node) -> None:
    docker_registries.authority("registry:5000").unlink()


def log_in_again(node: Node) -> None:
    node.client.write_text(node.client.read_text().replace(SECRET, "b3RoZXI="))


def publish_logins(node: Node) -> None:
    node.client.chmod(0o644)


SIMPLE = [edit, stop, disable, lose_authority, log_in_again, publish_logins]


@pytest.mark.parametrize("harm", [unhold, upgrade, uninstall, unpin, *SIMPLE])
def test_each_difference_is_due(node: Node, harm: Callable[[Node], None]) -> None:
    settle(node)
    harm(node)
    assert inspect(node)["due"]


@pytest.mark.parametrize("harm", SIMPLE)
def test_a_run_corrects_each_difference_of_its_files_and_its_service(node: Node, harm: Callable[[Node], None]) -> None:
    settle(node)
    harm(node)
    assert node.apply({"debug": True}, **DECLARED)["changed"]
    assert not inspect(node)["due"]


def test_files_of_another_user_are_due_and_are_given_back(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(node)
    number, given = os.geteuid() + 1, []
    monkeypatch.setattr(os, "geteuid", lambda: number)
    monkeypatch.setattr(os, "chown", lambda path, user, _group: given.append((path, user)))
    assert inspect(node)["due"] and given == []
    node.apply({"debug": True}, **DECLARED)
    assert set(given) == {(docker_registries.authority("registry:5000"), number), (node.client, number)}


def test_a_postponed_restart_is_due_only_once_it_is_possible(node: Node) -> None:
    settle(node)
    node.containers = 1
    node.apply({"debug": True, "bip": "10.0.0.1/24"}, **DECLARED)
    found = node.apply({"debug": True, "bip": "10.0.0.1/24"}, check=True, **DECLARED)
    assert (found["changed"], found["restart_required"], found["due"]) == (False, True, False)
    assert "bip" in str(found["restart_reasons"])
    allowed = node.apply({"debug": True, "bip": "10.0.0.1/24"}, check=True, restart_allowed=True, **DECLARED)
    assert (allowed["restart_required"], allowed["due"]) == (False, True)
    node.containers = 0
    found = node.apply({"debug": True, "bip": "10.0.0.1/24"}, check=True, **DECLARED)
    assert (found["restart_required"], found["due"]) == (False, True)


def test_a_postponed_version_is_in_the_reasons_of_the_restart(node: Node) -> None:
    settle(node)
    node.containers, node.packages["docker.io"] = 1, "20.10.24"
    found = inspect(node)
    assert found["restart_required"] and found["engine"]["postponed"] and found["engine"]["gpu_request"] == "runtime"
    assert "docker.io 20.10.24 is installed, 26.1.5* is wanted" in found["restart_reasons"]
    assert "another version" not in str(found["due_reasons"])
    allowed = inspect(node, restart_allowed=True)
    assert not allowed["restart_required"] and "another version" in str(allowed["due_reasons"])


def test_a_file_that_other_tasks_write_is_due_if_it_differs(node: Node) -> None:
    settle(node)
    (node.root / "sources").write_text("Suites: trixie\n")
    (node.root / "sources").chmod(0o644)
    good = {"path": str(node.root / "sources"), "text": "Suites: $(CODENAME)\n"}
    assert not inspect(node, files=[good])["due"]
    assert inspect(node, files=[{**good, "text": "Suites: other\n"}])["due"]


def test_the_files_and_units_for_gpus_count_only_with_gpus(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(node, engine={**ENGINE, "nvidia": "always"})
    states = {"ActiveState": "active", "UnitFileState": "enabled"}
    monkeypatch.setattr(systemd, "show", lambda units, _names: dict.fromkeys(units, states))
    gone: dict[str, Any] = {"gpu_files": [{"path": "/no/file", "text": None}]}
    down: dict[str, Any] = {"gpu_units": [{"name": "nvidia-cdi-refresh.path"}]}
    always = {"engine": {**ENGINE, "nvidia": "always"}}
    assert not inspect(node, **gone)["due"]
    assert not inspect(node, **down, **always)["due"]
    assert inspect(node, **gone, **always)["due"]
    states["ActiveState"] = "inactive"
    assert inspect(node, **down, **always)["due"]


def test_a_gpu_on_the_bus_is_found_unless_a_virtual_machine_has_it(node: Node) -> None:
    settle(node)
    for address, driver in (("0000:1b:00.0", "vfio-pci"), ("0000:1c:00.0", "nvidia")):
        device = node.root / "sys/bus/pci/devices" / address
        device.mkdir(parents=True)
        for name, text in (("vendor", "0x10de"), ("device", "0x2330"), ("class", "0x030200")):
            (device / name).write_text(text)
        (device / "driver").symlink_to(f"../../drivers/{driver}")
        found = inspect(node, engine={**ENGINE, "root": str(node.root)})["engine"]["gpus"]
        assert found is (driver == "nvidia"), "a GPU that a virtual machine has does not count"
    assert not inspect(node, engine={**ENGINE, "root": str(node.root), "nvidia": "never"})["engine"]["gpus"]


def test_an_old_docker_needs_a_runtime_that_uses_the_cdi_specification(node: Node) -> None:
    (node.root / "os-release").write_text('ID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\n')
    node.packages = {"docker.io": "20.10.24+dfsg1-1", "containerd": "1.6", "runc": "1.1"}
    always = {"engine": {**ENGINE, "nvidia": "always"}}
    settle(node, **always)
    assert node.config()["runtimes"] and "features" not in node.config()
    words = "does not set the runtime to use the CDI specification"
    assert any(words in reason for reason in inspect(node, **always)["due_reasons"])
    module_under_test.TOOLKIT_CONFIG.parent.mkdir()
    module_under_test.TOOLKIT_CONFIG.write_text('[nvidia-container-runtime]\nmode = "cdi"\n')
    assert not any(words in reason for reason in inspect(node, **always)["due_reasons"])


def test_mistakes_are_refused_all_at_once_and_show_no_secret(node: Node) -> None:
    wrong = {
        "engine": {**ENGINE, "version": "latest", "toolkit_version": "1.19.0"},
        "authorities": [{"registry": "..", "ca": "", "state": "absent"}],
        "logins": {"a": "", "b": SECRET},
        "client_config": "config.json",
    }
    for check in (True, False):
        with pytest.raises(ServiceError) as caught:
            node.apply({}, check=check, **wrong)
        said = str(caught.value)
        variables = ("docker_version", "docker_nvidia_toolkit_version", "docker_registry_cas", "docker_client_config")
        assert all(name in said for name in (*variables, "docker_registry_credentials: a must"))
        assert SECRET not in said and node.verbs() == [] and not node.daemon_json.exists()


def test_docker_of_the_other_source_is_refused(node: Node) -> None:
    node.packages["containerd.io"] = "1.7"
    with pytest.raises(ServiceError, match=r"containerd\.io of the other source is installed"):
        inspect(node)


def test_an_untested_release_of_debian_is_refused(node: Node) -> None:
    (node.root / "os-release").write_text('PRETTY_NAME="Debian 11"\nID=debian\nVERSION_ID="11"\n')
    with pytest.raises(ServiceError, match="supports Debian 12 and 13, found Debian 11"):
        inspect(node)


def test_an_absent_authority_is_removed_with_its_directory(node: Node) -> None:
    settle(node)
    directory = docker_registries.authority("registry:5000").parent
    (directory / "client.key").touch()
    gone = {"authorities": [{"registry": "registry:5000", "ca": "", "state": "absent"}]}
    predicted = inspect(node, **gone)
    assert predicted["changed"] and directory.exists() and str(directory) in json.dumps(predicted["diff"])
    assert node.apply({"debug": True}, **{**DECLARED, **gone})["changed"] and not directory.exists()
    assert not inspect(node, **gone)["due"]


def test_logins_are_not_shown(node: Node) -> None:
    found = node.apply({}, **DECLARED)
    assert stat.S_IMODE(node.client.stat().st_mode) == 0o600
    assert SECRET not in json.dumps(found) and str(node.client) in json.dumps(found["diff"])


# --- the daemon's flags


def test_variables_come_from_every_environment_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """systemd prints a line for each file: Debian's file, which may be missing, and the file of the proxies."""
    options, proxies = tmp_path / "docker", tmp_path / "daemon.env"
    options.write_text("# DOCKER_OPTS=--icc\nDOCKER_OPTS=\"--debug --label 'a b'\"\n")
    proxies.write_text("HTTPS_PROXY=http://proxy:3128\n")
    shown = f"EnvironmentFiles={options} (ignore_errors=yes)\nEnvironmentFiles={proxies} (ignore_errors=no)\n"
    monkeypatch.setattr(module_under_test.Host, "run", lambda *_words: (0, f"LoadState=loaded\n{shown}"))
    host = module_under_test.Host()
    found = host.unit_variables(host.service())
    assert found == {"DOCKER_OPTS": "--debug --label 'a b'", "HTTPS_PROXY": "http://proxy:3128"}
    assert host.unit_variables({"EnvironmentFiles": f"{tmp_path}/none (ignore_errors=yes)"}) == {}


def test_a_quote_without_an_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "docker").write_text('DOCKER_OPTS="--debug\n')
    with pytest.raises(ServiceError, match="the value of DOCKER_OPTS has a quote without an end"):
        module_under_test.Host().unit_variables({"EnvironmentFiles": f"{tmp_path}/docker (ignore_errors=yes)"})
