# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel settings below a root of the test: names, values, and files that set or override them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
def test_the_kernels_notation_of_a_value_is_understood(value: str, found: str, same: bool) -> None:
    assert ks.Setting("x", "x", value).matches(found) is same


def test_the_name_of_a_sysctl_with_dots_or_slashes_gives_its_path() -> None:
    assert ks.sysctl_path("net.ipv4.ip_forward") == "proc/sys/net/ipv4/ip_forward"
    assert ks.sysctl_path("net.ipv4.conf.eth0/7.rp_filter") == "proc/sys/net/ipv4/conf/eth0.7/rp_filter"
    assert ks.sysctl_path("net/ipv4/conf/eth0.7/rp_filter") == "proc/sys/net/ipv4/conf/eth0.7/rp_filter"


@pytest.mark.parametrize("key", ["net.*.x", "a b", "kernel//x", "kernel/../x", ""])
def test_a_text_that_is_not_the_name_of_a_sysctl_is_a_problem(key: str) -> None:
    assert "is not the name of a sysctl" in ks.key_problem(key, 1)


@pytest.mark.parametrize(("value", "good"), [(1, True), ("1 2", True), (True, False), ("", False), ("1\n2", False)])
def test_a_value_of_a_sysctl_is_a_number_or_one_line_of_text(value: object, good: bool) -> None:
    assert (ks.key_problem("kernel.panic", value) == "") is good


def test_the_error_about_a_missing_sysctl_has_a_hint(tmp_path: Path) -> None:
    (tmp_path / "proc/sys/kernel").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/panic").touch()
    assert ks.absent(tmp_path, "kernel.panik") == " Did you mean kernel.panic?"
    assert ks.absent(tmp_path, "zzz") == ""
    assert "modprobe br_netfilter" in ks.absent(tmp_path, "net.bridge.bridge-nf-call-iptables")


def test_a_later_file_that_overrides_a_value_is_a_problem(tmp_path: Path) -> None:
    """A file in /etc hides files of the same name elsewhere. A file that sorts before ours overrides nothing."""
    for directory in ("etc/sysctl.d", "usr/lib/sysctl.d"):
        (tmp_path / directory).mkdir(parents=True)
    (tmp_path / "usr/lib/sysctl.d/90-x.conf").write_text("kernel.panic = 1\n")
    (tmp_path / "etc/sysctl.d/90-x.conf").write_text("# kernel.panic = 2\n-kernel/panic = 3\nvm.swappiness=30\n")
    (tmp_path / "etc/sysctl.d/10-x.conf").write_text("kernel.panic = 4\n")
    (tmp_path / "etc/sysctl.d/99-gone.conf").symlink_to("/nowhere/at/all")
    (found,) = ks.overriding(tmp_path, "60-inference.conf", {"kernel.panic": "30", "vm.swappiness": "30"})
    assert found.startswith("kernel.panic: /etc/sysctl.d/90-x.conf sets '3' at boot, and overrides '30'.")


def test_the_files_set_all_values_at_boot() -> None:
    assert ks.sysctl_file({"b": "2", "a": "1"}) == f"# {ks.HEADER}\na = 1\nb = 2\n"
    cpus = [ks.Setting(f"cpu{n}", f"sys/devices/system/cpu/cpu{n}/x", "performance") for n in (0, 1)]
    assert ks.tmpfiles_file(cpus) == f"# {ks.HEADER}\nw- /sys/devices/system/cpu/cpu*/x - - - - performance\n"


NOTHING: dict[str, Any] = {
    "sysctl": {},
    "sysctl_where_present": {},
    "hugepages": {},
    "transparent_hugepage": "",
    "cpu_governor": "",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {
        "proc/sys/vm/swappiness": "60\n",
        "proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456\n",
        "proc/sys/net/ipv4/conf/eth0.7/rp_filter": "1\n",
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
        "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "0\n",
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    return tmp_path


def kernel(root: Path, **params: Any) -> ks.Kernel:
    return ks.Kernel(root, *ks.settings_of({**NOTHING, **params}, root))


def names(settings: list[ks.Setting]) -> list[str]:
    return [setting.name for setting in settings]


def test_values_are_compared_by_meaning(root: Path) -> None:
    wanted = {"net.ipv4.tcp_rmem": "4096 131072 6291456", "net/ipv4/conf/eth0.7/rp_filter": 1}
    assert kernel(root, sysctl=wanted, transparent_hugepage="madvise").differing() == []
    assert names(kernel(root, sysctl={"vm.swappiness": 10}, transparent_hugepage="never").differing()) == [
        "vm.swappiness",
        "transparent_hugepage",
    ]


def test_every_value_is_set_now_and_at_boot(root: Path) -> None:
    params = {"sysctl": {"vm.swappiness": 10}, "hugepages": {"2M": 16}, "cpu_governor": "performance"}
    kernel(root, **params).apply()
    assert (root / "proc/sys/vm/swappiness").read_text() == "10"
    assert (root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").read_text() == "performance"
    assert "vm.swappiness = 10\n" in (root / "etc/sysctl.d/60-inference.conf").read_text()
    tmpfiles = (root / "etc/tmpfiles.d/inference.conf").read_text()
    assert "w- /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages - - - - 16\n" in tmpfiles
    again = kernel(root, **params)
    assert (again.differing(), again.stale_files()) == ([], [])
    kernel(root).apply()
    assert not (root / "etc/sysctl.d/60-inference.conf").exists()


def test_a_sysctl_in_sysctl_where_present_is_left_out_if_the_kernel_lacks_it(root: Path) -> None:
    found = kernel(root, sysctl={"vm.swappiness": 1}, sysctl_where_present={"net.ipv6.x": 1, "vm.swappiness": 10})
    assert [(setting.name, setting.value) for setting in found.sysctls] == [("vm.swappiness", "1")]
    assert found.problems() == []


def test_every_mistake_is_found(root: Path) -> None:
    (root / "etc/sysctl.d").mkdir(parents=True)
    (root / "etc/sysctl.d/99-site.conf").write_text("# vm.swappiness=1\n-vm/swappiness = 30\n")
    problems = kernel(root, sysctl={"vm.swapiness": 10, "vm.swappiness": 10}, hugepages={"1G": 2}).problems()
    assert problems[0].endswith("Did you mean vm.swappiness?")
    assert problems[1].startswith("hugepages of 1G: this kernel has no /sys/kernel/mm/hugepages")
    assert "/etc/sysctl.d/99-site.conf sets '30' at boot" in problems[2]
    assert len(problems) == 3


def test_a_value_that_is_not_text_is_a_problem(root: Path) -> None:
    (root / "proc/sys/vm/swappiness").write_bytes(b"\xff\n")
    (problem,) = kernel(root, sysctl={"vm.swappiness": 10}).problems()
    assert problem.startswith("vm.swappiness: cannot be read back")


def test_a_file_that_comes_before_ours_overrides_nothing(root: Path) -> None:
    (root / "usr/lib/sysctl.d").mkdir(parents=True)
    (root / "usr/lib/sysctl.d/50-default.conf").write_text("vm.swappiness=30\n")
    assert kernel(root, sysctl={"vm.swappiness": 10}).problems() == []


def test_after_a_refused_value_all_values_are_restored(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(path: Path, value: str) -> str:
        if value == "9":
            return "Invalid argument"
        path.write_text(value)
        return ""

    monkeypatch.setattr(ks, "_set", refusing)
    wanted = {"vm.swappiness": 10, "net.ipv4.tcp_rmem": 9}
    with pytest.raises(ks.KernelError) as caught:
        kernel(root, sysctl=wanted).apply()
    assert "net.ipv4.tcp_rmem: wanted '9', but the kernel has '4096 131072 6291456' (Invalid argument)" in str(
        caught.value
    )
    assert (root / "proc/sys/vm/swappiness").read_text() == "60"
    assert not (root / "etc/sysctl.d").exists()


def test_values_that_undo_each_other_are_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def undoing(path: Path, value: str) -> str:
        path.write_text(value)
        if path.name == "tcp_rmem":
            (root / "proc/sys/vm/swappiness").write_text("0")
        return ""

    monkeypatch.setattr(ks, "_set", undoing)
    with pytest.raises(ks.KernelError, match=r"vm.swappiness: wanted '10', but the kernel has '0'"):
        kernel(root, sysctl={"vm.swappiness": 10, "net.ipv4.tcp_rmem": "1 2 3"}).apply()


def test_the_error_names_values_that_cannot_be_restored(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ks, "_set", lambda path, value: path.write_text("1") and "")
    with pytest.raises(ks.KernelError, match=r"All values are as before, except .*/proc/sys/vm/swappiness"):
        kernel(root, sysctl={"vm.swappiness": 10}).apply()


def test_values_that_no_kernel_accepts_are_mistakes() -> None:
    wrong = {"sysctl": {"vm.a b": 1, "../etc/x": 1, "net.*.x": 1, "vm.b": True, "vm.c": "", "vm.d": "1\nvm.e=1"}}
    pages = {"hugepages": {"4K": 1, "2M": -1, "1G": "2"}}
    found = ks.mistakes({**NOTHING, **wrong, **pages})
    assert [problem.split(":")[0] for problem in found] == [
        "'vm.a b' is not the name of a sysctl",
        "'../etc/x' is not the name of a sysctl",
        "'net.*.x' is not the name of a sysctl",
        "vm.b",
        "vm.c",
        "vm.d",
        "hugepages of 4K",
        "hugepages of 2M",
    ]
    assert ks.mistakes({**NOTHING, "sysctl": {"vm.swappiness": None, "net/ipv4/conf/eth0.7/rp_filter": 2}}) == []


def test_a_sysctl_that_is_null_keeps_the_value_of_the_system(root: Path) -> None:
    assert kernel(root, sysctl={"vm.swappiness": None}, sysctl_where_present={"vm.swappiness": 10}).sysctls == []


def test_two_spellings_of_a_sysctl_are_one_setting(root: Path) -> None:
    found = kernel(root, sysctl={"vm/swappiness": 1}, sysctl_where_present={"vm.swappiness": 10})
    assert [(setting.name, setting.value) for setting in found.sysctls] == [("vm/swappiness", "1")]


def test_a_kernel_module_that_is_not_loaded_is_named(root: Path) -> None:
    (problem,) = kernel(root, sysctl={"net.netfilter.nf_conntrack_max": 1}).problems()
    assert "The module nf_conntrack" in problem


def test_a_governor_that_the_machine_lacks_is_a_problem(root: Path) -> None:
    cpu = root / "sys/devices/system/cpu"
    for number in (0, 1):
        (cpu / f"cpu{number}/cpufreq").mkdir(parents=True, exist_ok=True)
        (cpu / f"cpu{number}/cpufreq/scaling_governor").write_text("powersave\n")
        (cpu / f"cpu{number}/cpufreq/scaling_available_governors").write_text("performance powersave\n")
    problems = kernel(root, cpu_governor="ondemand").problems()
    assert problems == ["cpu_governor: 'ondemand' is not available: use one of performance, powersave"]
    kernel(root, cpu_governor="performance").apply()
    tmpfiles = (root / "etc/tmpfiles.d/inference.conf").read_text()
    assert tmpfiles.count("\nw-") == 1
    assert "w- /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor - - - - performance\n" in tmpfiles


def test_more_hugepages_than_free_memory_are_a_problem(root: Path) -> None:
    (root / "proc/meminfo").write_text("MemTotal: 2097152 kB\nMemAvailable:  1048576 kB\n")
    problems = kernel(root, hugepages={"2M": 512}).problems()
    assert problems == ["hugepages: 1024 MiB more are wanted, but only 1024 MiB of memory are free: set fewer pages"]
    assert kernel(root, hugepages={"2M": 511}).problems() == []


def test_fewer_hugepages_than_wanted_are_an_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = root / "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
    monkeypatch.setattr(ks, "_set", lambda path, value: path.write_text(str(min(int(value), 7))) and "")
    with pytest.raises(ks.KernelError, match=r"wanted '16', but the kernel has '7'.*with common_kernel_cmdline"):
        kernel(root, hugepages={"2M": 16}).apply()
    assert pages.read_text() == "0"


def test_a_broken_link_overrides_nothing(root: Path) -> None:
    (root / "etc/sysctl.d").mkdir(parents=True)
    (root / "etc/sysctl.d/99-sysctl.conf").symlink_to("../sysctl.conf")
    assert kernel(root, sysctl={"vm.swappiness": 10}).problems() == []
