# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a node's system, which is in every snapshot."""

from __future__ import annotations

import json
import os
import pwd
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.backup import record
from ansible_collections.baremetal.inference.plugins.module_utils.backup.trees import Entry
from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome

PACKAGES = "docker.io 26.1 installed\nold 1 config-files\nodd\n"


def test_the_record_has_names_and_versions(tmp_path: Path) -> None:
    for path, text in {
        "etc/machine-id": "0123456789abcdef\n",
        "etc/debian_version": "12.9\n",
        "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.105.08  Wed\nGCC\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    entries = [Entry("file", 0o600, 0, 0), Entry("file", 0o600, 4000000, 4000000)]
    found = record.collect(tmp_path, "n1", entries, lambda *_given: Outcome(0, PACKAGES))
    assert found == {
        "schema": 1,
        "host": "n1",
        "machine_id": "0123456789abcdef",
        "debian": "12.9",
        "kernel": os.uname().release,
        "nvidia_driver": "580.105.08",
        "packages": {"docker.io": "26.1"},
        "users": {"0": "root"},
        "groups": {"0": "root"},
    }


def test_what_a_bare_machine_does_not_have_is_empty_in_the_record(tmp_path: Path) -> None:
    found = record.collect(tmp_path, "n1", [], lambda *_given: Outcome(None, failure="not_installed"))
    assert (found["machine_id"], found["nvidia_driver"], found["packages"], found["users"]) == ("", "", {}, {})


def test_a_snapshot_without_a_record_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="this collection did not make it"):
        record.read(tmp_path)
    (tmp_path / record.FILE).write_text(json.dumps({"schema": 1, "host": "n1"}))
    assert record.read(tmp_path)["host"] == "n1"


def test_accounts_get_the_numbers_of_this_machine() -> None:
    number = pwd.getpwnam("daemon").pw_uid
    numbers = record.numbers_here({"users": {"4711": "daemon", "5": "no-such-user"}, "groups": {"7": "root"}})
    assert numbers(4711, 7) == (number, 0) and numbers(5, 5) == (5, 5)
    owner = record.owner_here({"users": {"4711": "daemon"}, "groups": {"7": "root"}})
    assert owner(Entry("file", 0o600, 4711, 7)) == (number, 0) and owner(Entry("file", 0o600, 12, 9)) == (12, 9)


def test_the_drivers_version_is_read() -> None:
    text = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build\nGCC version: 12.2.0\n"
    assert record.driver_version(text) == "570.86.15"
    assert record.driver_version("") == ""
