# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module system_settings against a fake of the node's commands."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
from ansible_collections.baremetal.inference.plugins.modules import system_settings as module_under_test

CHRONY = "confdir /etc/chrony/conf.d\npool 2.debian.pool.ntp.org iburst\nsourcedir /etc/chrony/sources.d\n"
CLOCK = {"servers": ["ntp1"], "pools": [], "config": [], "sync_seconds": 1, "max_offset": 0.5}
NAMES = {"hostname": "", "manage_hosts": True, "address": "", "hosts": []}
JOURNAL = {
    "max_use": "4G",
    "keep_free": "4G",
    "max_retention": "3months",
    "rate_limit_interval": "30s",
    "rate_limit_burst": 100000,
}


class Node:
    """A node's files below a temporary directory, and its services."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.started = {
            "chrony.service": 0,
            "logrotate.timer": 0,
            "systemd-journald.service": int(time.time()) - 1000,
        }
        self.enabled: set[str] = set()
        self.calls: list[str] = []
        self.refuses = ""
        self.source = "ntp1"
        self.state = "*"
        self.journal_bytes = 4 * 2**30
        self.limits = {"DefaultLimitNOFILE": "524288"}
        """The limits that systemd gives to a service."""
        self.limits_then = {"DefaultLimitNOFILE": "4096"}
        """These limits after a reload of systemd."""
        self.write("proc/sys/fs/nr_open", "1048576\n")
        self.write("etc/hosts", "127.0.0.1\tlocalhost\n127.0.1.1\tgpu1\n")
        self.write("usr/share/zoneinfo/Europe/Prague", "TZif")
        (root / "etc/localtime").symlink_to("/usr/share/zoneinfo/Etc/UTC")

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def read(self, path: str) -> str:
        return (self.root / path).read_text()

    def run(self, command: list[str], handle_exceptions: bool = True) -> tuple[int, str, str]:
        words = " ".join(command)
        if command[0] == "chronyd":
            refused = self.refuses and self.refuses in Path(command[-1]).read_text()
            return (1, "", "Fatal error : Invalid directive") if refused else (0, "", "")
        if "ActiveState" in words:
            at = self.started[command[-1]]
            if "UnitFileState" in words:
                return 0, f"ActiveState={'active' if at else 'inactive'}\n{self.unit_file(command[-1])}", ""
            return 0, f"ActiveState={'active' if at else 'inactive'}\nActiveEnterTimestamp=@{at}\n", ""
        if "UnitFileState" in words:
            return 0, self.unit_file(command[-1]), ""
        if "--property=DefaultLimitNOFILE" in words:
            return 0, "".join(f"{name}={value}\n" for name, value in self.limits.items()), ""
        if words == "systemctl daemon-reload":
            self.limits = self.limits_then
        if "MainPID" in words:
            return 0, "77", ""
        if command[:2] == ["journalctl", "--boot"]:
            return 0, json.dumps({"JOURNAL_NAME": "System Journal", "MAX_USE": str(self.journal_bytes)}), ""
        if "sources" in command and "-c" in command:
            return 0, f"^,{self.state},{self.source},2,6,377,1,0.0,0.0,0.0\n", ""
        if command[0] == "chronyc" and command[1] == "waitsync":
            return 0, "try: 1, refid: 7F000001", ""
        if command[:2] == ["systemctl", "is-active"]:
            return 0, "active", ""
        self.calls.append(words)
        if command[:2] == ["systemctl", "enable"]:
            self.enabled.add(command[-1])
        if command[:2] == ["systemctl", "restart"] and command[2] in self.started:
            self.started[command[2]] = int(time.time())
        return 0, "", ""

    def unit_file(self, unit: str) -> str:
        return f"UnitFileState={'enabled' if unit in self.enabled else 'disabled'}\n"

    def files(self) -> dict[str, str]:
        return {
            str(path): path.read_text() for path in self.root.rglob("*") if path.is_file() and not path.is_symlink()
        }

    def apply(self, check: bool = False, **params: Any) -> dict[str, Any]:
        wanted = {
            "kernel": None,
            "cmdline": None,
            "reboot_flag": "",
            "clock": None,
            "timezone": "",
            "names": None,
            "journal": None,
            "logrotate": None,
            "services": None,
            **params,
        }
        return module_under_test.apply(wanted, module_under_test.Node(self.run, shutil.which, self.root), check)


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    monkeypatch.setattr(module_under_test.socket, "gethostname", lambda: "gpu1")
    monkeypatch.setattr(module_under_test.Names, "own_address", lambda self, address: address or "192.0.2.7")
    return Node(tmp_path)


ALL: dict[str, Any] = {
    "clock": CLOCK,
    "timezone": "Europe/Prague",
    "names": NAMES,
    "journal": JOURNAL,
    "services": {"memlock": "", "nofile": 4096, "watchdog_seconds": 60, "keep_pstore": True},
    "logrotate": {"max_size": "200M"},
}


def test_check_mode_predicts_the_changes_and_the_second_run_changes_nothing(node: Node) -> None:
    node.write("etc/chrony/chrony.conf", CHRONY)
    before = node.files()
    predicted = node.apply(check=True, **ALL)
    assert node.files() == before and node.calls == []
    done = node.apply(**ALL)
    assert predicted["changed"] and predicted["diff"] == done["diff"]
    assert done["clock"] == ["ntp1: chosen, offset +0.000000 s"]
    assert os.readlink(node.root / "etc/localtime") == "/usr/share/zoneinfo/Europe/Prague"
    assert "\npool" not in node.read("etc/chrony/chrony.conf")
    assert "192.0.2.7\tgpu1" in node.read("etc/hosts")
    node.calls.clear()
    assert not node.apply(**ALL)["changed"]
    assert node.calls == []


def test_all_mistakes_are_reported_at_once_and_nothing_is_changed(node: Node) -> None:
    before = node.files()
    with pytest.raises(InputError) as refusal:
        node.apply(
            clock={**CLOCK, "servers": [""]},
            timezone="Europe/Atlantis",
            names={**NAMES, "hosts": [{"address": "127.0.0.1", "names": ["gpu1"]}]},
            journal={**JOURNAL, "max_use": "lots"},
            logrotate={"max_size": "200 MB"},
        )
    text = str(refusal.value)
    for word in ("clock.servers[0]", "Atlantis", "127.0.0.1", "lots", "200 MB"):
        assert word in text
    assert node.files() == before and node.calls == []


def test_each_part_reports_its_differences_until_a_run(node: Node) -> None:
    """By these differences, the role decides whether a node is due."""
    node.write("etc/chrony/chrony.conf", CHRONY)
    for part, option in ALL.items():
        assert node.apply(check=True, **{part: option})["differs"], part
    node.apply(**ALL)
    assert node.apply(check=True, **ALL)["differs"] == []


@pytest.mark.parametrize(
    ("unit", "option"),
    [
        ("chrony.service", {"clock": CLOCK}),
        ("logrotate.timer", {"logrotate": {"max_size": "200M"}}),
        ("systemd-pstore.service", {"services": ALL["services"]}),
    ],
)
def test_a_disabled_unit_is_enabled_again(node: Node, unit: str, option: dict[str, Any]) -> None:
    node.write("etc/chrony/chrony.conf", CHRONY)
    node.apply(**option)
    node.enabled.remove(unit)
    assert node.apply(check=True, **option)["differs"] and unit not in node.enabled
    assert node.apply(**option)["changed"] and unit in node.enabled
    assert node.apply(**option)["differs"] == []


@pytest.mark.parametrize("unit", ["chrony.service", "logrotate.timer"])
def test_a_unit_that_does_not_run_is_started(node: Node, unit: str) -> None:
    """The package of the unit may have been removed, while the files of the module are still there."""
    option = {"clock": CLOCK} if unit == "chrony.service" else {"logrotate": {"max_size": "200M"}}
    node.write("etc/chrony/chrony.conf", CHRONY)
    node.apply(**option)
    node.started[unit] = 0
    (node.root / "etc/chrony/chrony.conf").unlink()
    assert unit in "".join(node.apply(check=True, **option)["differs"])
    assert node.apply(**option)["changed"] and node.started[unit]


def test_a_clock_that_is_not_synchronized_differs_and_changes_nothing(node: Node) -> None:
    """Outside check mode, the module waits for the clock, and fails if the clock stays wrong."""
    node.write("etc/chrony/chrony.conf", CHRONY)
    node.apply(clock=CLOCK)
    node.state = "?"
    found = node.apply(check=True, clock=CLOCK)
    assert (found["differs"], found["changed"]) == (["the clock is not synchronised"], False)
    assert node.apply(check=True, clock={**CLOCK, "sync_seconds": 0})["differs"] == []


def test_without_chrony_check_mode_predicts_its_files(node: Node) -> None:
    result = node.apply(check=True, clock=CLOCK)
    assert [Path(diff["after_header"]).name for diff in result["diff"]] == ["inference.sources", "inference.conf"]
    assert node.calls == []


def test_a_configuration_that_chronyd_refuses_is_not_written(node: Node) -> None:
    node.write("etc/chrony/chrony.conf", CHRONY)
    node.write("etc/chrony/conf.d/site.conf", "allow 10.0.0.0/8\n")
    before = node.files()
    node.refuses = "makestop"
    with pytest.raises(InputError, match="Fatal error : Invalid directive"):
        node.apply(clock={**CLOCK, "config": ["makestop 1 3"]})
    assert node.files() == before


def test_new_sources_do_not_restart_chronyd(node: Node) -> None:
    node.write("etc/chrony/chrony.conf", CHRONY)
    node.apply(clock=CLOCK)
    node.calls.clear()
    node.source = "ntp2"
    node.apply(clock={**CLOCK, "servers": ["ntp2"]})
    assert node.calls == ["chronyc reload sources"]


def test_a_chronyd_older_than_its_file_is_restarted(node: Node) -> None:
    node.write("etc/chrony/chrony.conf", CHRONY)
    node.apply(clock=CLOCK)
    node.started["chrony.service"] -= 1000
    assert node.apply(clock=CLOCK)["changed"]
    assert not node.apply(clock=CLOCK)["changed"]


def test_a_clock_without_a_source_that_answers_is_an_error(node: Node) -> None:
    node.write("etc/chrony/chrony.conf", CHRONY)
    node.state = "?"
    with pytest.raises(module_under_test.SettingsError, match=r"not synchronised after 1 s.*ntp1: not usable yet"):
        node.apply(clock=CLOCK)
    node.state, node.source = "*", "another"
    with pytest.raises(module_under_test.SettingsError, match="ntp1: chronyd does not have it"):
        node.apply(clock=CLOCK)


def test_a_configuration_that_cannot_be_restored_does_not_hide_the_first_error(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_self: object) -> None:
        raise OSError(30, "Read-only file system")

    node.write("etc/chrony/chrony.conf", CHRONY)
    node.state = "?"
    monkeypatch.setattr(module_under_test.Clock, "undo", full)
    with pytest.raises(module_under_test.SettingsError, match=r"not synchronised after 1 s.*could not be restored"):
        node.apply(clock=CLOCK)


def test_a_journald_with_another_limit_is_an_error(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_under_test, "JOURNAL_SECONDS", 0.1)
    node.journal_bytes = 10**6
    with pytest.raises(module_under_test.SettingsError, match="System Journal, at most 1000000 bytes"):
        node.apply(journal=JOURNAL)


def test_a_later_drop_in_is_refused_unless_a_file_in_etc_hides_it(node: Node) -> None:
    node.write("usr/lib/systemd/journald.conf.d/99-small.conf", "[Journal]\nSystemMaxUse=100M\n")
    with pytest.raises(InputError, match=r"99-small.conf: SystemMaxUse: '100M': is read after"):
        node.apply(journal=JOURNAL)
    node.write("etc/systemd/journald.conf.d/99-small.conf", "")
    assert node.apply(journal=JOURNAL)["changed"]


def test_a_journald_older_than_its_file_is_restarted(node: Node) -> None:
    node.apply(journal=JOURNAL)
    node.started["systemd-journald.service"] -= 1000
    node.calls.clear()
    assert node.apply(journal=JOURNAL)["changed"]
    assert "systemctl restart systemd-journald.service" in node.calls


def test_cloud_init_must_not_write_the_hosts_file(node: Node) -> None:
    node.write("etc/cloud/cloud.cfg", "manage_etc_hosts: false\n")
    node.write("etc/cloud/cloud.cfg.d/50-provider.cfg", "#cloud-config\nmanage_etc_hosts: 'localhost'\n")
    node.apply(names=NAMES)
    assert "manage_etc_hosts: false" in node.read("etc/cloud/cloud.cfg.d/99-inference.cfg")
    node.write("var/lib/cloud/instance/cloud-config.txt", "manage_etc_hosts: True\n")
    result = node.apply(names=NAMES)
    assert not result["changed"] and "user data" in result["notes"][0]


def test_a_hostname_is_set_and_written_to_the_hosts_file(node: Node) -> None:
    node.write("etc/hostname", "gpu1\n")
    node.apply(names={**NAMES, "hostname": "gpu2"})
    assert node.calls == ["hostnamectl set-hostname gpu2"]
    assert "192.0.2.7\tgpu2" in node.read("etc/hosts")
    with pytest.raises(InputError, match="under_score"):
        node.apply(names={**NAMES, "hostname": "under_score"})


def test_the_nodes_name_at_a_loopback_address_in_other_letters_is_a_warning(node: Node) -> None:
    result = node.apply(names={**NAMES, "hosts": [{"address": "127.0.0.1", "names": ["GPU1"]}]})
    assert "127.0.0.1 has this node's name gpu1" in result["notes"][0]


def test_a_hosts_file_that_is_a_mount_point_is_written_in_place(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: Any) -> None:
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(module_under_test.files, "write", busy)
    with pytest.raises(OSError, match="busy"):
        node.apply(names=NAMES)
    monkeypatch.setattr(module_under_test.os.path, "ismount", lambda _: True)
    node.apply(names=NAMES)
    assert "192.0.2.7\tgpu1" in node.read("etc/hosts")


SERVICES: dict[str, Any] = {"memlock": "", "nofile": 4096, "watchdog_seconds": 0, "keep_pstore": False}
SYSTEM = "etc/systemd/system.conf.d/60-inference.conf"
LIMITS = "etc/security/limits.d/60-inference.conf"


def test_limits_are_set_and_a_file_without_limits_is_removed(node: Node) -> None:
    """After the removal of a file, the next run finds no difference."""
    assert node.apply(services=SERVICES)["changed"]
    assert "DefaultLimitNOFILE=4096\n" in node.read(SYSTEM) and node.calls == ["systemctl daemon-reload"]
    assert not node.apply(services=SERVICES)["changed"]
    nothing = {**SERVICES, "nofile": 0}
    predicted = node.apply(check=True, services=nothing)
    assert (node.root / SYSTEM).exists() and predicted["changed"]
    assert node.apply(services=nothing) == predicted
    assert not (node.root / SYSTEM).exists() and not (node.root / LIMITS).exists()
    assert not node.apply(services=nothing)["changed"]


def test_the_mode_of_a_file_is_corrected(node: Node) -> None:
    node.apply(services=SERVICES)
    (node.root / LIMITS).chmod(0o600)
    assert node.apply(services=SERVICES)["changed"]
    assert not node.apply(services=SERVICES)["changed"]


def test_systemd_with_other_values_reads_its_files(node: Node) -> None:
    """A run that was cut off can leave such values."""
    node.apply(services=SERVICES)
    node.limits = {"DefaultLimitNOFILE": "524288"}
    assert node.apply(check=True, services=SERVICES)["changed"] and node.calls == ["systemctl daemon-reload"]
    assert node.apply(services=SERVICES)["changed"] and len(node.calls) == 2


def test_a_later_file_that_overrides_a_limit_is_an_error(node: Node) -> None:
    node.limits_then = node.limits
    with pytest.raises(module_under_test.SettingsError, match="DefaultLimitNOFILE: declared 4096, systemd has 524288"):
        node.apply(services=SERVICES)


def test_invalid_limits_change_nothing(node: Node) -> None:
    before = node.files()
    with pytest.raises(InputError, match="memlock is 'lots'"):
        node.apply(services={**SERVICES, "memlock": "lots"}, timezone="Europe/Prague")
    assert node.files() == before and node.calls == []


def test_a_machine_without_a_watchdog_gets_one_note(node: Node) -> None:
    wanted = {**SERVICES, "watchdog_seconds": 60}
    assert "no watchdog device" in node.apply(services=wanted)["notes"][0]
    assert node.apply(services=wanted)["notes"] == []
    device = node.root / "sys/class/watchdog/watchdog0"
    device.mkdir(parents=True)
    assert node.apply(services={**wanted, "watchdog_seconds": 50})["notes"] == []
