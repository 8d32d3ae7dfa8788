# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module host_facts: its readers."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.baremetal.inference.plugins.modules import host_facts


def test_every_subset_has_a_reader_and_files_may_be_missing(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    found = host_facts.readers(tmp_path, 10)
    assert tuple(found) == host_facts.PARTS
    assert found["services"]() == []
    assert found["disks"]() == []
    assert found["secure_boot"]() == {"efi": False, "enabled": False, "setup_mode": None}
    assert set(found["system"]()) >= {"hostname", "debian", "addresses", "boot_id"}
