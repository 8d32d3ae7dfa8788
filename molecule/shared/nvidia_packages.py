# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fakes of the driver's packages in NVIDIA's repository, with the real names and relations.

DKMS really builds their kernel module, which does nothing."""

from __future__ import annotations

from collections.abc import Iterator

from node import Node
from repository import Package

OLD, NEW, NEXT = "580.95.05", "580.105.08", "590.48.01"
"""Two versions of a branch, and one version of the next branch."""
BROKEN = "580.999.01"
"""A version whose module does not compile."""

# As in NVIDIA's packages, debhelper's scripts add the module to DKMS and remove it. Here, they do nothing else.
DKMS_SCRIPTS = {
    "postinst": '[ "$1" != configure ] || /usr/lib/dkms/common.postinst nvidia {version} "" "" "$2"',
    "prerm": '[ -z "$(dkms status -m nvidia -v {version})" ] || dkms remove -m nvidia -v {version} --all',
}

MODULE = """
#include <linux/module.h>
static int __init start(void) {{ return 0; }}
static void __exit stop(void) {{ }}
module_init(start);
module_exit(stop);
MODULE_LICENSE("{license}");
MODULE_VERSION("{version}");
"""

DKMS_CONF = """
PACKAGE_NAME="nvidia"
PACKAGE_VERSION="{version}"
AUTOINSTALL="yes"
MAKE[0]="make -C $kernel_source_dir M=$dkms_tree/$PACKAGE_NAME/$PACKAGE_VERSION/build modules"
CLEAN="true"
BUILT_MODULE_NAME[0]="nvidia"
DEST_MODULE_LOCATION[0]="/updates/dkms"
BUILT_MODULE_NAME[1]="nvidia-uvm"
DEST_MODULE_LOCATION[1]="/updates/dkms"
"""

UNIT = """
[Unit]
Description={name}
[Service]
ExecStart=/usr/bin/{name}
[Install]
WantedBy=multi-user.target
"""


def module_package(version: str, flavor: str, source: str = MODULE) -> Package:
    """The package of the kernel module, of either flavour."""
    name, license_name = (
        ("nvidia-kernel-open-dkms", "Dual MIT/GPL") if flavor == "open" else ("nvidia-kernel-dkms", "NVIDIA")
    )
    other = "nvidia-kernel-dkms" if flavor == "open" else "nvidia-kernel-open-dkms"
    directory = f"/usr/src/nvidia-{version}"
    code = source.format(license=license_name, version=version)
    return Package(
        name,
        f"{version}-1",
        {"Depends": "dkms", "Conflicts": other},
        {
            f"{directory}/dkms.conf": DKMS_CONF.format(version=version),
            f"{directory}/Makefile": "obj-m := nvidia.o nvidia-uvm.o\n",
            f"{directory}/nvidia.c": code,
            f"{directory}/nvidia-uvm.c": code,
        },
        {key: text.format(version=version) for key, text in DKMS_SCRIPTS.items()},
    )


def driver(version: str, source: str = MODULE) -> Iterator[Package]:
    """All packages of one version. `source` is the C source of the module."""
    full = f"{version}-1"
    yield module_package(version, "open", source)
    yield module_package(version, "proprietary", source)
    same = f"(= {full})"
    needs = ["libcuda1", "libnvidia-ml1", "nvidia-persistenced", f"nvidia-kernel-open-dkms {same} | nvidia-kernel-dkms"]
    depends = ", ".join(f"{name} {same}" for name in needs)
    yield Package("nvidia-driver-cuda", full, {"Depends": depends}, {"/usr/bin/nvidia-smi": "#!/bin/sh\nexit 9\n"})
    yield Package("libcuda1", full)
    yield Package("libnvidia-ml1", full)
    yield Package("nvidia-modprobe", full, files={"/usr/bin/nvidia-modprobe": "#!/bin/sh\n"})
    for name in ("nvidia-persistenced", "nvidia-fabricmanager"):
        unit = f"/usr/lib/systemd/system/{name}.service"
        files = {f"/usr/bin/{name}": "#!/bin/sh\nsleep infinity\n", unit: UNIT.format(name=name)}
        yield Package(name, full, {"Depends": f"libnvidia-ml1 {same}"} if name.endswith("ager") else {}, files)
    pin = f"Package: *nvidia*\nPin: version {version}*\nPin-Priority: 1000\n"
    yield Package(
        f"nvidia-driver-pinning-{version}", "1", files={f"/etc/apt/preferences.d/nvidia-driver-pinning-{version}": pin}
    )


def drivers() -> Iterator[Package]:
    """All versions that the tests need, and a package that is not part of the driver."""
    for version in (OLD, NEW, NEXT):
        yield from driver(version)
    yield from driver(BROKEN, MODULE.replace("return 0;", "return does_not_compile;"))
    yield Package("inference-other", "1-1")


def installed(node: Node) -> dict[str, str]:
    """The versions of the driver's packages."""
    form, patterns = "${db:Status-Abbrev} ${Package} ${Version}\\n", "'*nvidia*' 'libcuda1*' 'cuda-*'"
    listed = node.run(f"dpkg-query -W -f '{form}' {patterns} || true")
    rows = [line.split() for line in listed.splitlines()]
    return {row[1]: row[2] for row in rows if row[0] in ("ii", "hi")}
