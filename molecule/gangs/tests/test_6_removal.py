# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A removal of the gang, and its set-up after that."""

from __future__ import annotations

import pytest
from gang import NAME, Gang
from node import playbook

pytestmark = pytest.mark.full

REMOVE = "baremetal.inference.decommission"

FILES = f"/var/lib/inference/*/{NAME} /var/lib/inference/*/{NAME}.*"


def test_a_removal_removes_the_instance_from_all_members(serving: Gang) -> None:
    epoch = serving.epoch()
    said = playbook("all", check=False, name=REMOVE, instance=NAME)
    assert "allow_downtime" in said, said[-3000:]
    assert serving.epoch() == epoch and serving.serves()
    playbook("all", name=REMOVE, instance=NAME, allow_downtime=True)
    for node in serving.nodes:
        assert not node.run("docker ps --all --quiet")
        assert node.unit("LoadState", NAME) == "not-found"
        assert not node.run(f"ls --directory {FILES} 2>/dev/null", check=False)
        assert "5110" not in node.run("nft list table inet inference")
    playbook("inference")
    serving.wait_serving()
