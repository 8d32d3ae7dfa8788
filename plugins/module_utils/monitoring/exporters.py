# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The units of the exporters, from which Prometheus reads a machine. Private to the collection; pure."""

from __future__ import annotations

import re

from ..core.addresses import in_url
from ..core.paths import Paths
from ..core.problems import Problem
from ..hardware.cdi import gpu_argv
from .places import HEADER
from .settings import PREFIX, WHERE
from .units import command_line

NODE_UNIT, DCGM_UNIT = "prometheus-node-exporter.service", "dcgm-exporter.service"
DCGM_CONTAINER = "dcgm-exporter"

BY_DIGEST = re.compile(r"\S+@sha256:[0-9a-f]{64}")

COLLECTORS = (
    *("conntrack", "cpu", "diskstats", "edac", "filefd", "filesystem", "hwmon", "infiniband", "loadavg", "mdadm"),
    *("meminfo", "netclass", "netdev", "netstat", "nvme", "os", "pressure", "sockstat", "stat", "systemd", "textfile"),
    *("thermal_zone", "time", "timex", "uname", "vmstat"),
)
"""The metrics that operators of such machines need. The versions of Debian 12 and 13 have all of these collectors."""

WATCHED_UNITS = (
    *("vllm@.+", "inference-.+", "docker", "containerd", "haproxy", "keepalived", "nvidia-.+", "dcgm-exporter"),
    *("prometheus.*", "ssh", "nftables", "chrony", "systemd-timesyncd", "unattended-upgrades"),
)
"""The units to watch. Each has five series, one for every state."""

INTERFACES = "^(lo|veth.*|docker.*|br-.*)$"
"""Interfaces to leave out. Those of containers come and go, and each would leave its series behind."""

OPTIONS = (
    # CPU time of guests: two series for each processor, always zero.
    "--no-collector.cpu.guest",
    r"--collector.diskstats.device-exclude=^(z?ram|loop|fd|sr)\d+$",
    "--collector.filesystem.mount-points-exclude=^/(dev|proc|run|sys|var/lib/(containerd|docker)/.+)($|/)",
    f"--collector.netclass.ignored-devices={INTERFACES}",
    f"--collector.netdev.device-exclude={INTERFACES}",
    rf"--collector.systemd.unit-include=({'|'.join(WATCHED_UNITS)})\.(service|timer)",
)


def problems(port: int, dcgm_port: int, dcgm_image: str) -> list[Problem]:
    """Every mistake in the exporters' ports, and in the image of dcgm-exporter."""
    found: list[Problem] = []

    def refuse(name: str, message: str, value: object) -> None:
        found.append(Problem(WHERE, message, PREFIX + name, value))

    for name, value in (("node_exporter_port", port), ("dcgm_exporter_port", dcgm_port)):
        if not 1 <= value <= 65535:
            refuse(name, "must be from 1 to 65535", value)
    if port == dcgm_port:
        refuse("dcgm_exporter_port", "is also the port of node_exporter: choose another port", dcgm_port)
    if dcgm_image and not BY_DIGEST.fullmatch(dcgm_image):
        refuse("dcgm_exporter_image", "must be empty, or name an image by its digest (NAME@sha256:…)", dcgm_image)
    return found


def node_drop_in(address: str, port: int) -> str:
    """The drop-in for Debian's unit of node_exporter. Without an address, node_exporter listens on all."""
    options = [
        f"--web.listen-address={in_url(address)}:{port}",
        "--collector.disable-defaults",
        *(f"--collector.{name}" for name in COLLECTORS),
        f"--collector.textfile.directory={Paths().textfiles}",
        *OPTIONS,
    ]
    return "\n".join(
        [
            HEADER,
            "[Unit]",
            # The address may come late. Without a limit of starts, systemd starts the exporter until it succeeds.
            "Wants=network-online.target",
            "After=network-online.target",
            "StartLimitIntervalSec=0",
            "[Service]",
            "ExecStart=",
            f"ExecStart={command_line('/usr/bin/prometheus-node-exporter', options)}",
            "Restart=always",
            "RestartSec=5",
            # The exporter gets processor time and memory even if the engines use all of both.
            "CPUWeight=1000",
            "OOMScoreAdjust=-900",
            "MemoryMax=256M",
            "",
        ]
    )


def dcgm_unit(image: str, address: str, port: int, gpu_request: str) -> str:
    """The unit of dcgm-exporter in a container.

    systemd starts the unit after Docker's daemon, and again 10 s after each end. The unit restarts with the driver's
    service nvidia-persistenced. The unit does not have `Wants=docker.service`: each restart of the unit would start a
    Docker that an operator has stopped.
    """
    argv = [
        *("--rm", "--name", DCGM_CONTAINER, "--network", "host"),
        # The driver gives profiling metrics to SYS_ADMIN alone, and on some GPUs the exporter ends without them. NVIDIA
        # recommends these options. Source: dcgm-exporter's docker/Dockerfile and issue 407.
        *("--cap-drop", "ALL", "--cap-add", "SYS_ADMIN"),
        *("--security-opt", "no-new-privileges", "--log-driver", "none", "--memory", "1g"),
        *gpu_argv(["all"], gpu_request),
        *(image, "--address", f"{in_url(address)}:{port}"),
    ]
    return f"""\
{HEADER}
[Unit]
Description=GPU metrics for Prometheus by DCGM
After=docker.service nvidia-persistenced.service nvidia-cdi-refresh.service
PartOf=nvidia-persistenced.service
StartLimitIntervalSec=0
[Service]
ExecStartPre=-/usr/bin/docker rm --force {DCGM_CONTAINER}
ExecStart={command_line("/usr/bin/docker run", argv)}
ExecStop=/usr/bin/docker stop --time 5 {DCGM_CONTAINER}
Restart=always
RestartSec=10
[Install]
WantedBy=multi-user.target
"""
