# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role nvidia_driver with Debian's driver, built for real, on nodes without a GPU."""

from __future__ import annotations

import pytest
from node import Node, changes
from nvidia_packages import NEW, driver, installed
from repository import Repository
from simulated_gpus import B200, H100, P100, kernel, plug, refused, unforeseen

# The driver versions of Debian 12 and 13.
BRANCHES = {"12": "535", "13": "550"}
# A newer driver in another repository: an upgrade without holds would install it.
NEWER = """
set -eu
rm -rf /srv/newer; mkdir -p /srv/newer /srv/build; cd /srv/build
for name in nvidia-smi libcuda1 nvidia-persistenced; do
  rm -rf $name; mkdir -p $name/DEBIAN
  printf '%s: %s\\n' Package $name Version 999.1-1 Architecture amd64 Maintainer test Description test \
    >$name/DEBIAN/control
  dpkg-deb --build $name /srv/newer/ >/dev/null
done
cd /srv/newer
for file in *.deb; do
  dpkg-deb --field $file; echo "Filename: ./$file"; echo "Size: $(stat -c %s $file)"; echo
done >Packages
echo 'deb [trusted=yes] file:/srv/newer ./' >/etc/apt/sources.list.d/newer.list
apt-get -qq update
"""


def test_check_mode_predicted_the_converge() -> None:
    assert unforeseen() == set()


def test_the_kernel_has_the_module(node: Node) -> None:
    status = node.run("dkms status")
    assert f"{kernel(node)}, x86_64: installed" in status
    assert f"/{BRANCHES[node.name[-2:]]}." in status
    assert node.run(
        f"modinfo -F license -k {kernel(node)} nvidia-current || modinfo -F license -k {kernel(node)} nvidia"
    )
    assert node.run(f"dpkg-query -W -f '${{db:Status-Status}}' linux-headers-{kernel(node)}") == "installed"


def test_the_driver_is_complete_and_has_no_packages_for_a_display(node: Node) -> None:
    assert "couldn't communicate with the NVIDIA driver" in node.run("nvidia-smi", check=False)
    assert "libcuda.so.1" in node.run("ldconfig -p")
    installed = node.run("dpkg-query -W -f '${Package} ' '*nvidia*' 'xserver*' 2>/dev/null", check=False)
    assert "xserver-xorg-core" not in installed.split() and "nvidia-settings" not in installed.split()


def test_no_upgrade_changes_the_driver(node: Node) -> None:
    """Neither a full-upgrade by hand nor unattended upgrades change the driver, although a source has a newer one."""
    node.run(NEWER)
    try:
        before = node.run("dpkg-query -W '*nvidia*' libcuda1")
        said = node.run("apt-get --simulate full-upgrade")
        assert "999.1" not in said
        node.run("apt-get -qq --yes full-upgrade && apt-get -qq --yes install nvidia-smi")
        unattended = node.run("unattended-upgrade --dry-run --debug 2>&1")
        assert "nvidia" in unattended.partition("Initial blacklist:")[2].splitlines()[0]
        assert node.run("dpkg-query -W '*nvidia*' libcuda1") == before
    finally:
        node.run("rm -rf /etc/apt/sources.list.d/newer.list /srv/newer /srv/build; apt-get -qq update")


def test_a_unit_waits_for_its_device(node: Node) -> None:
    node.run("systemctl start nvidia-persistenced.service")
    assert node.run("systemctl show --value --property=ConditionResult nvidia-persistenced.service") == "no"
    assert node.run("systemctl is-failed nvidia-persistenced.service", check=False) != "failed"
    assert node.run("systemctl is-enabled nvidia-persistenced.service") == "enabled"
    # The unit that creates the device files starts first at every boot, and only with a driver.
    maker = "inference-nvidia-devices.service"
    assert "nvidia-persistenced.service" in node.run(f"systemctl show --value --property=Before {maker}")
    node.run(f"systemctl start {maker}")
    assert node.run(f"systemctl show --value --property=ConditionResult {maker}") == "no"
    assert node.run(f"systemctl is-enabled {maker}") == "enabled"


def test_a_run_that_was_cut_off_leaves_no_nouveau_in_a_ram_disk(node: Node) -> None:
    """A run was cut off after it blocked nouveau, and before it made the RAM disk. The next run makes it, once."""
    disk = f"/boot/initrd.img-{kernel(node)}"
    if node.run(f"test -e {disk} && echo there", check=False) != "there":
        pytest.skip("this kernel has no initial RAM disk")
    assert changes(node.site()) == 0
    node.run(f"touch -d 2020-01-01 {disk}")
    assert changes(node.site()) == 1
    assert node.run(f"stat -c %Y {disk}") > "1600000000"
    assert changes(node.site()) == 0


@pytest.mark.parametrize(
    ("release", "makefile", "words"),
    [("9.9.1-headless", False, "has no headers"), ("9.9.2-broken", True, "is not built")],
)
def test_a_kernel_that_would_boot_without_the_driver_fails_the_play(
    node: Node, release: str, makefile: bool, words: str
) -> None:
    """A kernel without headers, or with headers that break the build: the play fails, and names the kernel."""
    if makefile:
        node.run(f"mkdir -p /lib/modules/{release}/build; echo 'all:; false' >/lib/modules/{release}/build/Makefile")
    node.run(f"touch /boot/vmlinuz-{release}")
    try:
        output = " ".join(node.site(check=False).split())
    finally:
        node.run(f"rm -rf /boot/vmlinuz-{release} /lib/modules/{release}")
    assert release in output and words in output
    assert changes(node.site()) == 0


def test_a_run_without_a_gpu_reports_that_it_cannot_try_the_driver(node: Node) -> None:
    output = node.site()
    assert "the role cannot try the driver" in " ".join(output.split())
    assert changes(output) == 0
    # With `auto`, the role skips a node without a GPU.
    assert "cannot try the driver" not in " ".join(node.site(nvidia_driver_install="auto").split())


def test_a_driver_that_cannot_work_is_refused_with_the_reason(node: Node) -> None:
    output = refused(node, **plug(node, P100), nvidia_driver_flavor="open")
    assert "no driver fits" in output and "P100" in output and "open" in output
    output = refused(node, **plug(node, B200))
    assert "Blackwell" in output and "570" in output
    output = refused(node, **plug(node, H100), nvidia_driver_source="nvidia")
    assert "nvidia_driver_version" in output
    output = refused(node, **plug(node, H100), nvidia_driver_source="nvidia", nvidia_driver_version="580.105.08")
    assert "cannot be installed" in output and "Declare NVIDIA's repository" in output


def test_nothing_is_built_over_a_driver_of_the_installer(deb12: Node) -> None:
    """An installer's driver that cannot be removed stops the run before any change of a package."""
    deb12.run("printf '#!/bin/sh\\nexit 1\\n' >/usr/bin/nvidia-uninstall; chmod 755 /usr/bin/nvidia-uninstall")
    before = deb12.run("dpkg-query -W")
    try:
        output = " ".join(deb12.site(check=False).split())
    finally:
        deb12.run("rm /usr/bin/nvidia-uninstall")
    assert "nvidia-uninstall --silent did not remove the driver" in output
    assert deb12.run("dpkg-query -W") == before


def test_a_driver_in_use_is_left_alone(deb13: Node) -> None:
    """Another flavour would replace the driver while a process has one of its devices open."""
    deb13.run("touch /dev/nvidiactl; systemd-run --unit=holder sh -c 'exec 3</dev/nvidiactl; exec sleep 1000'")
    try:
        output = refused(deb13, nvidia_driver_flavor="open")
    finally:
        deb13.run("systemctl stop holder; rm /dev/nvidiactl")
    assert "it is in use: sleep (pid" in output and "nvidia_driver_swap_allowed" in output


def test_nvidias_driver_replaces_debians_driver_and_back(node: Node) -> None:
    """The role removes Debian's driver completely, and later installs Debian's driver again."""
    repository = Repository(node, "NVIDIA")
    repository.publish(driver(NEW))
    try:
        node.site(nvidia_driver_source="nvidia", nvidia_driver_version=NEW)
        found = installed(node)
        left = {name: version for name, version in found.items() if version not in (f"{NEW}-1", "1")}
        assert left == {}, "packages of Debian's driver are left"
        assert node.run("dkms status").startswith(f"nvidia/{NEW}, ")
    finally:
        repository.remove()
    node.site()
    assert not {version for version in installed(node).values() if NEW in version}
    assert f"/{BRANCHES[node.name[-2:]]}." in node.run("dkms status")
