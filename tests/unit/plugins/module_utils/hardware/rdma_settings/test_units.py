# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The units of the rails."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings import units


def test_the_units_start_the_command_at_boot_and_for_each_device_that_is_added(tmp_path: Path) -> None:
    texts = units.texts(Paths(tmp_path))
    service = texts["/etc/systemd/system/inference-rdma.service"]
    assert "ExecStart=/usr/local/bin/inferctl rdma apply --wait=60\n" in service
    assert "ConditionPathExists=/etc/inference/rdma.json\n" in service and "RemainAfterExit=yes\n" in service
    # Otherwise, a node whose driver has no DCB would report a failed unit after each boot.
    template = texts["/etc/systemd/system/inference-rdma@.service"]
    assert all("SuccessExitStatus=4\n" in text for text in (service, template))
    # Before Docker, no engine runs: MTU and PFC need not wait.
    assert "Before=docker.service inference.target\n" in service
    # Without RemainAfterExit, systemd starts the unit again when the device comes back.
    assert "RemainAfterExit" not in template and "[Install]" not in template
    assert 'ENV{SYSTEMD_WANTS}+="inference-rdma@%k.service"' in texts[units.RULES]
