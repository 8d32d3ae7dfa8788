# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of GPUs, branches and Debian's drivers."""

from __future__ import annotations

import json

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver import compatibility as cp

KNOWN = cp.load()


def test_every_entry_has_a_source() -> None:
    data = json.loads(cp.DATA.read_text())
    entries = [*data["architectures"], *data["branches"], *data["debian"]]
    entries += [*data["rules"].values(), *data["container_toolkit"].values()]
    assert all(entry["source"] for entry in entries)


def test_the_table_uses_only_known_words_for_modules_and_flavours() -> None:
    assert {entry.open_module for entry in KNOWN.architectures.values()} == {cp.IMPOSSIBLE, cp.SUPPORTED, cp.REQUIRED}
    assert {flavor for driver in KNOWN.debian for flavor in driver.flavors} == {"open", "proprietary"}


def test_every_architecture_has_a_known_branch() -> None:
    for entry in KNOWN.architectures.values():
        able = [one for one in KNOWN.branches if (entry.first_branch or 0) <= one <= (entry.last_branch or 999)]
        assert able, entry.name
        assert entry.open_module != cp.IMPOSSIBLE or min(able) < KNOWN.rules.open_only_from


def test_debians_drivers_are_known() -> None:
    for driver in KNOWN.debian:
        assert driver.branch in KNOWN.branches
        assert driver.version.startswith(f"{driver.branch}.")
    # The main driver comes first.
    assert [driver.series for driver in KNOWN.debian_drivers(13)] == ["", "tesla-535"]
    assert KNOWN.debian_drivers(7) == []


def test_each_compute_capability_belongs_to_one_architecture() -> None:
    capabilities = [one for entry in KNOWN.architectures.values() for one in entry.compute_capabilities]
    assert len(capabilities) == len(set(capabilities))
