# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What journalctl's vacuum removes, and which logs logrotate rotates."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.maintenance import logs

DAY = 86400


def journal(name: str, mib: int, days: float, archived: bool = True) -> logs.Journal:
    return logs.Journal(name, mib << 20, days * DAY, archived)


FILES = [journal("new", 10, 0, archived=False), journal("b", 20, 5), journal("a", 30, 40)]


@pytest.mark.parametrize(
    ("mib", "days", "going"),
    [
        (0, 0, []),
        (0, 30, ["a"]),
        (0, 3, ["a", "b"]),
        (50, 0, []),
        (49, 0, ["a"]),
        (20, 0, ["a"]),
        (19, 0, ["a", "b"]),
        (1, 0, ["a", "b"]),
        (60, 40, []),
    ],
)
def test_a_vacuum_removes_the_oldest_archived_files(mib: int, days: int, going: list[str]) -> None:
    assert [file.path for file in logs.vacuum(FILES, mib << 20, days * DAY)] == going


def test_the_name_of_an_archived_file_has_the_time_of_its_first_entry() -> None:
    name = "system@0123456789abcdef0123456789abcdef-0000000000000001-0006000000000000.journal"
    assert logs.began(name) == 0x6000000000000 / 1e6
    assert logs.began("user-1000@0006000000000000-0123456789abcdef.journal~") == 0x6000000000000 / 1e6
    assert logs.began("system.journal") is None


def test_the_freed_bytes_are_read_from_the_output_of_journalctl() -> None:
    said = (
        "Deleted archived journal /var/log/journal/x/system@1.journal (8.0M).\n"
        "Vacuuming done, freed 8.0M of archived journals from /var/log/journal/x.\n"
        "Vacuuming done, freed 0B of archived journals from /run/log/journal.\n"
        "Vacuuming done, freed 1.5G of archived journals from /var/log/journal.\n"
    )
    assert logs.freed(said) == (8 << 20) + (3 << 29)
    assert logs.freed("") == 0


def test_rotated_logs_are_read_from_the_state_of_logrotate() -> None:
    before = 'logrotate state -- version 2\n"/var/log/a.log" 2026-11-1-0:0:0\n"/var/log/b.log" 2026-11-1-0:0:0\n'
    after = before.replace('b.log" 2026-11-1', 'b.log" 2026-11-21') + '"/var/log/c.log" 2026-11-21-0:0:0\n'
    assert logs.rotated(before, after) == ["/var/log/b.log"]
    assert logs.rotated("", after) == []


def test_due_logs_are_read_from_the_output_of_logrotate() -> None:
    said = (
        "considering log /var/log/a.log\n  Now: 2026\n  log does not need rotating (log has been rotated already)\n"
        "considering log /var/log/b.log\n  log needs rotating\n"
    )
    assert logs.due(said) == ["/var/log/b.log"]
