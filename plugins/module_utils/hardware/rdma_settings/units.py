# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The units that make the rails' settings again: at boot, and when a device is added. Private to the collection."""

from __future__ import annotations

from ...core.paths import Paths
from .files import HEADER

SERVICE = "inference-rdma.service"
TEMPLATE = "inference-rdma@.service"

WAIT_SECONDS = 60
"""How long the unit waits for devices that the kernel has not found yet."""

CANNOT_BE_SET = 4
"""Exit code of the command if the machine does not offer a setting. The boot is not at fault: the role has warned."""

RULES = "/etc/udev/rules.d/61-inference-rdma.rules"
"""After the rules of rdma-core (60-rdma-persistent-naming.rules), which give the devices their names."""

LINK = f"/etc/systemd/system/multi-user.target.wants/{SERVICE}"


def texts(paths: Paths) -> dict[str, str]:
    """The text of each file, by its path on the node."""
    command = f"/{paths.command.relative_to(paths.root)} rdma apply --wait={WAIT_SECONDS}"
    start = f"ExecStart={command}\nSuccessExitStatus={CANNOT_BE_SET}\nTimeoutStartSec=300\n"
    condition = f"ConditionPathExists=/{paths.rdma_settings.relative_to(paths.root)}\n"
    return {
        f"/etc/systemd/system/{SERVICE}": (
            f"{HEADER}[Unit]\nDescription=Settings of the RDMA rails, which are lost at a reboot\n{condition}"
            "After=network.target rdma-hw.target\nBefore=docker.service inference.target\n\n"
            f"[Service]\nType=oneshot\nRemainAfterExit=yes\n{start}\n"
            "[Install]\nWantedBy=multi-user.target\n"
        ),
        # Not the unit of the boot: systemd starts a unit for a device only if the unit does not run.
        f"/etc/systemd/system/{TEMPLATE}": (
            f"{HEADER}[Unit]\nDescription=Settings of the RDMA rails, after the device %i was added\n{condition}"
            "After=rdma-hw.target\n\n"
            f"[Service]\nType=oneshot\n{start}"
        ),
        RULES: (
            f"{HEADER}# After a reload of the driver or a reset of a NIC, its settings are those of the kernel.\n"
            'ACTION=="add", SUBSYSTEM=="infiniband", TAG+="systemd", '
            'ENV{SYSTEMD_WANTS}+="inference-rdma@%k.service"\n'
        ),
    }
