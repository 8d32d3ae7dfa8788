# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's installer as the source of the driver, and the key that its modules are signed with, on deb13.

The installer is a fake; DKMS, its builds and signatures, openssl and mokutil are real. The firmware is a directory,
which libefivar reads as firmware. In this order, the tests go from the repository's driver to the installer's and
back.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from node import EPHEMERAL, Node, changed_tasks, changes
from nvidia_packages import OLD
from simulated_gpus import H100, ROOT, kernel, plug, refused

pytestmark = pytest.mark.full

FIRST, SECOND = "580.126.09", "580.159.03"
SCRIPT = Path(__file__).with_name("nvidia-installer.sh").read_text(encoding="utf-8")
CACHE = "/var/cache/inference-nvidia"
GLOBAL, SHIM = "8be4df61-93ca-11d2-aa0d-00e098032b8c", "605dab50-e046-4300-abb6-3dd810dd8b23"
PASSWORD = "typed-at-the-console"


def installer(version: str) -> dict[str, Any]:
    """The variables for an installer on the controller."""
    path = EPHEMERAL / f"NVIDIA-Linux-x86_64-{version}.run"
    path.write_text(SCRIPT.replace("@VERSION@", version), encoding="utf-8")
    return {
        "nvidia_driver_source": "runfile",
        "nvidia_driver_version": version,
        "nvidia_driver_runfile": f"controller:{path}",
        "nvidia_driver_runfile_checksum": f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}",
    }


@pytest.fixture(scope="module")
def key() -> dict[str, Any]:
    """A key of the site, in files on the controller."""
    form = ["-x509", "-nodes", "-batch", "-newkey", "rsa:2048", "-days", "36500", "-subj", "/CN=Key of this site"]
    files = ["-keyout", str(EPHEMERAL / "site.key"), "-out", str(EPHEMERAL / "site.pem")]
    subprocess.run(["openssl", "req", "-new", *form, *files], check=True, capture_output=True)
    return {
        "nvidia_driver_mok_key": f"controller:{EPHEMERAL / 'site.key'}",
        "nvidia_driver_mok_certificate": f"controller:{EPHEMERAL / 'site.pem'}",
    }


@pytest.fixture
def firmware(deb13: Node) -> Iterator[dict[str, Any]]:
    """A machine with a GPU and with Secure Boot."""
    variables = plug(deb13, H100)
    directory = f"{ROOT}/sys/firmware/efi/efivars"
    deb13.run(f"mkdir -p {directory}")
    for name, value in (("SecureBoot", 1), ("SetupMode", 0)):
        deb13.run(rf"printf '\006\000\000\000\00{value}' >{directory}/{name}-{GLOBAL}")
    yield variables
    # libefivar makes its files immutable, if the file system has this attribute.
    deb13.run(f"chattr -R -i {ROOT} 2>/dev/null; rm -rf {ROOT} /run/reboot-required /run/reboot-required.pkgs")


def serial(node: Node, module: str = "nvidia") -> str:
    """The serial number of the key that signed a module."""
    return node.run(f"modinfo -F sig_key -k {kernel(node)} {module}").replace(":", "")


def test_the_installer_is_checked_before_anything_changes(deb13: Node) -> None:
    wish = installer(FIRST)
    assert "is required" in refused(deb13, nvidia_driver_source="runfile", nvidia_driver_version=FIRST)
    wrong = {**wish, "nvidia_driver_runfile_checksum": f"sha256:{'0' * 64}"}
    assert "replace the file, or correct the checksum" in refused(deb13, **wrong)
    (EPHEMERAL / "renamed.run").write_text(SCRIPT.replace("@VERSION@", SECOND), encoding="utf-8")
    renamed = {**installer(FIRST), "nvidia_driver_runfile": f"controller:{EPHEMERAL / 'renamed.run'}"}
    assert f"installs the driver {SECOND}, not {FIRST}" in refused(deb13, **renamed)
    assert "No such file" in refused(deb13, **{**wish, "nvidia_driver_runfile": "/srv/nothing.run"})
    refused(deb13, **{**wish, "nvidia_driver_runfile": f"https://127.0.0.1:9/NVIDIA-Linux-x86_64-{FIRST}.run"})


def test_the_installer_replaces_the_repositorys_driver(deb13: Node, tmp_path: Path) -> None:
    wish = installer(FIRST)
    predicted, _said = changed_tasks(deb13, tmp_path, "--check", **wish)
    done, _said = changed_tasks(deb13, tmp_path, **wish)
    assert any("Run NVIDIA's installer" in task for task in done)
    assert {task for task in done - predicted if not task.endswith("Install | Enable the units")} == set()
    assert deb13.run("dkms status").splitlines() == [f"nvidia/{FIRST}, {kernel(deb13)}, x86_64: installed"]
    assert (
        deb13.run("dpkg-query -W -f '${Package} ${db:Status-Status}\\n' '*nvidia*' libcuda1 | grep ' installed'", False)
        == ""
    )
    arguments = deb13.run("cat /root/installer-arguments")
    assert arguments == "--silent --dkms --kernel-module-type=open --no-nouveau-check --no-rebuild-initramfs"
    assert f"from {CACHE}" in deb13.run("cat /var/log/nvidia-installer.log")
    assert deb13.run(f"ls -d {CACHE}", check=False) == ""
    assert changes(deb13.site(**wish)) == 0


def test_the_unit_of_nvidia_persistenced_does_not_start_without_its_device(deb13: Node) -> None:
    deb13.run("systemd-analyze verify nvidia-persistenced.service")
    deb13.run("systemctl start nvidia-persistenced.service")
    assert deb13.run("systemctl show --value --property=ConditionResult nvidia-persistenced.service") == "no"
    assert deb13.run("systemctl is-enabled nvidia-persistenced.service") == "enabled"


def test_a_kernel_without_the_module_fails_the_run(deb13: Node) -> None:
    deb13.run("touch /boot/vmlinuz-9.9.1-headless")
    try:
        assert "9.9.1-headless" in deb13.site(check=False, **installer(FIRST))
    finally:
        deb13.run("rm /boot/vmlinuz-9.9.1-headless")


def test_another_version_is_refused_while_a_driver_is_in_use(deb13: Node) -> None:
    deb13.run("touch /dev/nvidiactl; systemd-run --unit=holder sh -c 'exec 3</dev/nvidiactl; exec sleep 1000'")
    try:
        output = refused(deb13, **installer(SECOND))
    finally:
        deb13.run("systemctl stop holder; rm /dev/nvidiactl")
    assert "it is in use: sleep (pid" in output and f"remove {FIRST} of NVIDIA's installer" in output


def test_a_failure_quotes_the_log_and_the_next_run_installs_the_driver(deb13: Node) -> None:
    wish = installer(SECOND)
    deb13.run("touch /root/installer-fails")
    try:
        output = deb13.site(check=False, **wish)
    finally:
        deb13.run("rm /root/installer-fails")
    assert "The kernel module could not be built," in output and "for this is a test." in output
    assert deb13.run(f"ls -d {CACHE}", check=False) == ""
    # Now the installer is at a path on the node.
    path = f"/srv/NVIDIA-Linux-x86_64-{SECOND}.run"
    subprocess.run(
        deb13.argv("sh", "-c", f"cat >{path}"), input=SCRIPT.replace("@VERSION@", SECOND), text=True, check=True
    )
    deb13.site(**{**wish, "nvidia_driver_runfile": path})
    deb13.run(f"rm {path}")
    assert deb13.run("dkms status").splitlines() == [f"nvidia/{SECOND}, {kernel(deb13)}, x86_64: installed"]
    assert deb13.run(f"ls /usr/src | grep nvidia-{FIRST}", check=False) == ""


def test_the_key_of_the_site_replaces_the_signature_of_another_key(deb13: Node, key: dict[str, Any]) -> None:
    wish = {**installer(SECOND), **key}
    before = serial(deb13)
    deb13.site(**wish)
    assert deb13.run(f"modinfo -F signer -k {kernel(deb13)} nvidia") == "Key of this site"
    expected = subprocess.check_output(
        ["openssl", "x509", "-in", str(EPHEMERAL / "site.pem"), "-noout", "-serial"], text=True
    )
    assert serial(deb13) == expected.strip().removeprefix("serial=") != before
    assert deb13.run("stat -c '%a %U' /etc/dkms/inference-mok.key") == "600 root"
    assert changes(deb13.site(**wish)) == 0
    assert deb13.run("dkms status").splitlines() == [f"nvidia/{SECOND}, {kernel(deb13)}, x86_64: installed"]


def test_a_key_that_cannot_be_used_is_refused(deb13: Node, key: dict[str, Any]) -> None:
    output = refused(deb13, **installer(SECOND), **{**key, "nvidia_driver_mok_certificate": ""})
    assert "only one of key and certificate is set" in output
    assert "8 to 256 characters" in refused(deb13, **installer(SECOND), nvidia_driver_mok_password="short")


def test_the_firmware_is_asked_to_enrol_the_key(deb13: Node, key: dict[str, Any], firmware: dict[str, Any]) -> None:
    wish = {**installer(SECOND), **key, **firmware}
    said = deb13.site(**wish)
    assert "a reboot is due: Secure Boot is on" in " ".join(said.split())
    assert "set nvidia_driver_mok_password" in " ".join(said.split())
    assert "MokNew" not in deb13.run(f"ls {ROOT}/sys/firmware/efi/efivars")

    said = " ".join(deb13.site("-vvv", **wish, nvidia_driver_mok_password=PASSWORD).split())
    assert "waits for its enrolment: at the next boot" in said and "Enroll MOK" in said
    # The test reads only files of the node: with -vvv, Ansible prints the options -e of this test in its own output.
    assert PASSWORD not in deb13.run("cat /var/log/*.log /root/.ansible/tmp/* 2>/dev/null; true")
    request = f"{ROOT}/sys/firmware/efi/efivars/MokNew-{SHIM}"
    deb13.run(
        "python3 -c \"import sys; a, b = (open(p, 'rb').read() for p in sys.argv[1:]); sys.exit(a not in b)\" "
        f"/etc/dkms/inference-mok.der {request}"
    )
    assert changes(deb13.site(**wish, nvidia_driver_mok_password=PASSWORD)) == 0


def test_the_repositorys_driver_replaces_the_installers_completely(deb13: Node, tmp_path: Path) -> None:
    predicted, _said = changed_tasks(deb13, tmp_path, "--check")
    done, _said = changed_tasks(deb13, tmp_path)
    assert {task for task in done - predicted if not task.endswith("Install | Enable the units")} == set()
    left = (
        f"ls -d /usr/src/nvidia-{SECOND} /var/lib/nvidia /usr/bin/nvidia-uninstall /etc/dkms/inference* "
        "/etc/dkms/framework.conf.d/inference* /etc/systemd/system/nvidia-persistenced.service 2>/dev/null"
    )
    assert deb13.run(left, check=False) == ""
    assert deb13.run("dkms status").splitlines() == [f"nvidia/{OLD}, {kernel(deb13)}, x86_64: installed"]
    assert changes(deb13.site()) == 0
