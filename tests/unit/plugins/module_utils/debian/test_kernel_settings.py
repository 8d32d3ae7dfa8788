# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel settings: their files, their names, and what other files would set."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian import kernel_settings as ks


@pytest.mark.parametrize(
    ("value", "found", "same"),
    [
        ("30", "30\n", True),
        ("30", "31\n", False),
        ("4096  87380 6291456", "4096\t87380\t6291456\n", True),
        ("madvise", "always [madvise] never\n", True),
        ("never", "always [madvise] never\n", False),
    ],
)
def test_the_kernels_own_words_are_understood(value: str, found: str, same: bool) -> None:
    assert ks.Setting("x", "x", value).matches(found) is same


def test_dots_and_slashes_change_places() -> None:
    assert ks.sysctl_path("net.ipv4.ip_forward") == "proc/sys/net/ipv4/ip_forward"
    assert ks.sysctl_path("net.ipv4.conf.eth0/7.rp_filter") == "proc/sys/net/ipv4/conf/eth0.7/rp_filter"
    assert ks.sysctl_path("net/ipv4/conf/eth0.7/rp_filter") == "proc/sys/net/ipv4/conf/eth0.7/rp_filter"


@pytest.mark.parametrize("key", ["net.*.x", "a b", "kernel//x", "kernel/../x", ""])
def test_names_that_are_none(key: str) -> None:
    assert "this is no name of a sysctl" in ks.key_problem(key, 1)


@pytest.mark.parametrize(("value", "good"), [(1, True), ("1 2", True), (True, False), ("", False), ("1\n2", False)])
def test_values(value: object, good: bool) -> None:
    assert (ks.key_problem("kernel.panic", value) == "") is good


def test_a_sysctl_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "proc/sys/kernel").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/panic").touch()
    assert ks.absent(tmp_path, "kernel.panik") == " Did you mean kernel.panic?"
    assert ks.absent(tmp_path, "zzz") == ""
    assert "modprobe br_netfilter" in ks.absent(tmp_path, "net.bridge.bridge-nf-call-iptables")


def test_a_later_file_that_says_otherwise(tmp_path: Path) -> None:
    """One in /etc hides those of its name elsewhere, and what sorts before ours loses."""
    for directory in ("etc/sysctl.d", "usr/lib/sysctl.d"):
        (tmp_path / directory).mkdir(parents=True)
    (tmp_path / "usr/lib/sysctl.d/90-x.conf").write_text("kernel.panic = 1\n")
    (tmp_path / "etc/sysctl.d/90-x.conf").write_text("# kernel.panic = 2\n-kernel/panic = 3\nvm.swappiness=30\n")
    (tmp_path / "etc/sysctl.d/10-x.conf").write_text("kernel.panic = 4\n")
    (tmp_path / "etc/sysctl.d/99-gone.conf").symlink_to("/nowhere/at/all")
    (found,) = ks.overriding(tmp_path, "60-inference.conf", {"kernel.panic": "30", "vm.swappiness": "30"})
    assert found.startswith("kernel.panic: /etc/sysctl.d/90-x.conf sets '3' at boot, after ours ('30').")


def test_what_the_files_say() -> None:
    assert ks.sysctl_file({"b": "2", "a": "1"}) == f"# {ks.HEADER}\na = 1\nb = 2\n"
    cpus = [ks.Setting(f"cpu{n}", f"sys/devices/system/cpu/cpu{n}/x", "performance") for n in (0, 1)]
    assert ks.tmpfiles_file(cpus) == f"# {ks.HEADER}\nw- /sys/devices/system/cpu/cpu*/x - - - - performance\n"
