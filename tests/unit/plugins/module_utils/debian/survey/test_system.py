# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts of a machine's system."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.debian.survey import system

ADDRESSES = [
    {"ifname": "lo", "addr_info": [{"local": "127.0.0.1", "prefixlen": 8, "scope": "host"}]},
    {"ifname": "eno1", "addr_info": [{"local": "10.0.0.11", "prefixlen": 24, "scope": "global"}]},
]


def run(command: list[str]) -> Outcome:
    answers = {
        "dpkg-query": "installed 8.4.0",
        "systemd-detect-virt": "none\n",
        "ip": json.dumps(ADDRESSES if command[2:] == ["address"] else [{"dst": "default", "dev": "eno1"}]),
    }
    return Outcome(0, answers[command[0]])


def test_the_facts_of_a_machine_are_read_from_its_files_and_commands(tmp_path: Path) -> None:
    for path, content in {
        "etc/os-release": 'ID=debian\nVERSION_ID="12"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n',
        "etc/machine-id": "abc\n",
        "proc/meminfo": "MemTotal:       2097152 kB\n",
        "proc/cmdline": "quiet iommu=pt\n",
        "proc/sys/kernel/hostname": "gpu-01\n",
        "sys/devices/system/node/node0/x": "",
        "sys/devices/system/node/node1/x": "",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content)
    found = system.read(tmp_path, run)
    assert (found["hostname"], found["debian"], found["memory_mib"], found["numa_nodes"]) == ("gpu-01", 12, 2048, 2)
    assert (found["proxmox"], found["virtualization"], found["machine_id"]) == ("8.4.0", "", "abc")
    assert found["addresses"] == [{"device": "eno1", "address": "10.0.0.11", "prefix": 24}]
    assert found["default_device"] == "eno1"


def test_without_files_and_commands_release_and_addresses_are_unknown(tmp_path: Path) -> None:
    def nothing(command: list[str]) -> Outcome:
        return Outcome(None, failure="not_installed")

    found = system.read(tmp_path, nothing)
    assert found["debian"] is None and found["addresses"] == [] and found["default_device"] is None


def test_repositories_of_both_formats_are_listed_without_logins(tmp_path: Path) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list").write_text(
        "# deb http://off/ x main\ndeb [arch=amd64] http://deb.debian.org/debian bookworm main\n"
    )
    (tmp_path / "sources.list.d/pve.sources").write_text(
        "Types: deb\nURIs: https://me:secret@enterprise.proxmox.com/debian/pve\nSuites: trixie\n\n"
        "Enabled: no\nTypes: deb\nURIs: http://off.example.com/\n"
    )
    assert system.repositories(tmp_path) == [
        "http://deb.debian.org/debian",
        "https://enterprise.proxmox.com/debian/pve",
    ]


def listed(etc: Path, text: str) -> list[str]:
    (etc / "sources.list.d").mkdir()
    (etc / "sources.list.d/site.sources").write_text(text)
    return system.repositories(etc)


def test_addresses_over_several_lines_and_fields_in_any_case_are_read(tmp_path: Path) -> None:
    text = (
        "types: deb\nUris: https://a.example/\n# URIs: https://off.example/\n https://b.example/ https://c.example/\n"
        "Suites: trixie\nEnabled: yes\n \nURIs:\n https://d.example/\nSigned-By: https://key.example/\n"
    )
    assert listed(tmp_path, text) == [f"https://{name}.example/" for name in "abcd"]


@pytest.mark.parametrize("value", ["no", "No", "false", "off", "without", "disable", "0"])
def test_a_stanza_that_is_disabled_by_any_word_that_apt_accepts_is_left_out(tmp_path: Path, value: str) -> None:
    assert listed(tmp_path, f"URIs: https://a.example/\nenabled: {value}\n") == []
