# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which packages have newer versions, and which of them may be installed."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian.apt_packages import Installed
from ansible_collections.baremetal.inference.plugins.module_utils.maintenance import updates

SIMULATED = """\
Reading package lists...
The following packages will be upgraded:
  curl libcurl4 tzdata
Remv old-thing [1.0]
Inst libcurl4 [7.88.1-10] (7.88.1-11 Debian:12.9/stable, Debian-Security:12/stable-security [amd64]) []
Inst curl:amd64 [7.88.1-10] (7.88.1-11 Debian-Security:12/stable-security [amd64])
Inst tzdata [2024a-0] (2024b-0 Debian:12.9/stable [all])
Inst linux-image-6.1.0-51-amd64 (6.1.150-1 Debian-Security:12/stable-security [amd64])
Inst plain [1] (2 localhost [amd64])
Inst nowhere [1] (2)
Conf curl (7.88.1-11 Debian-Security:12/stable-security [amd64])
"""


def test_updates_and_removals_are_read_from_a_simulation_of_apt() -> None:
    found = {update.name: update for update in updates.parse(SIMULATED)}
    assert list(found) == ["libcurl4", "curl", "tzdata", "linux-image-6.1.0-51-amd64", "plain", "nowhere"]
    assert found["libcurl4"].labels == ("Debian", "Debian-Security")
    assert str(found["curl"]) == "curl 7.88.1-10 -> 7.88.1-11"
    assert str(found["linux-image-6.1.0-51-amd64"]) == "linux-image-6.1.0-51-amd64 (new) -> 6.1.150-1"
    assert found["nowhere"].labels == () and found["plain"].labels == ("localhost",)
    assert updates.removals(SIMULATED) == ["old-thing"]


@pytest.mark.parametrize(
    ("mode", "names"),
    [
        ("security", ["libcurl4", "curl"]),
        ("all", ["libcurl4", "curl", "tzdata", "plain", "nowhere"]),
        ("none", []),
    ],
)
def test_the_mode_selects_the_updates(mode: str, names: list[str]) -> None:
    found = updates.wanted(updates.parse(SIMULATED), mode, ["Debian-Security"])
    assert [update.name for update in found] == names


def test_removals_and_changes_of_held_packages_are_objections() -> None:
    planned = updates.parse(SIMULATED)
    assert updates.objections(planned, ["x"], ["curl"]) == [
        "it would remove x",
        "it would change curl, which is on hold",
    ]
    assert updates.objections(planned, [], ["docker.io"]) == []


def test_held_packages_can_be_released_and_half_installed_packages_are_found() -> None:
    installed = {
        "docker.io": Installed("1", held=True),
        "containerd": Installed("1"),
        "linux-image-6.1": Installed("1", held=True),
        "broken": Installed("1", whole=False),
    }
    assert updates.released(installed, ["docker.io", "containerd"]) == ["docker.io"]
    assert updates.released(installed, ["linux-image-*"]) == ["linux-image-6.1"]
    assert updates.half(installed) == ["broken"]
