# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules around the NVIDIA driver: what they return is what they document."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.baremetal.inference.plugins.filter.drivers import nvidia_driver_plan
from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver import (
    cuda,
    dkms,
    gate,
    installer,
    secure_boot,
)
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.facts import Reader
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.kernels import Kernel
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.runfile import Installed
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.signer import Signer, Wish
from ansible_collections.baremetal.inference.plugins.modules import (
    cuda_check,
    nvidia_driver_facts,
    nvidia_driver_gate,
    nvidia_driver_runfile,
    nvidia_driver_signing,
)

RUNNING, NEXT = "6.1.0-70-amd64", "6.1.0-77-amd64"

OUTPUTS = {
    "dkms status": f"nvidia-current-open/535.8.01, {RUNNING}, x86_64: installed\nzfs/2.7: added\n",
    "dpkg-query": (
        "hold half-configured nvidia-open-kernel-dkms 535.8.01-1\ndeinstall config-files nvidia-kernel-dkms 535.7-1\n"
        "install installed linux-image-amd64 6.1.77-1\ninstall installed bash 5.2-7\n"
    ),
    f"modinfo -k {RUNNING} nvidia-current-open": (
        "license: Dual MIT/GPL\nversion: 535.8.01\nsig_id: PKCS#7\nsigner: Site key\nsig_key: 0A:7F\n"
    ),
    "mokutil --sb-state": "SecureBoot enabled\n",
    "mokutil --test-key /var/lib/dkms/mok.pub": "/var/lib/dkms/mok.pub is not enrolled\n",
}
MOKUTIL = f"env EFIVARFS_PATH={{}}/{secure_boot.VARIABLES}/ mokutil"


def answer(command: Sequence[str], timeout: float) -> Outcome:
    words = " ".join(command)
    output = next((output for start, output in OUTPUTS.items() if words.startswith(start)), None)
    if output is None:
        return Outcome(None, failure="not_installed", message=f"{command[0]} is not installed")
    return Outcome(0, output)


def answer_with_stdin(command: Sequence[str], timeout: float, *, stdin: str = "") -> Outcome:
    return answer(command, timeout)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A node that runs an older driver than the one that is installed, and will boot a kernel that has none."""
    for directory in ("boot", "etc", "sys/firmware/efi/efivars", "sys/module/nvidia/holders", "proc/7/fd", "dev"):
        (tmp_path / directory).mkdir(parents=True)
    for release in (RUNNING, NEXT):
        (tmp_path / f"boot/vmlinuz-{release}").touch()
    (tmp_path / "etc/os-release").write_text('PRETTY_NAME="x"\nID=debian\nVERSION_ID="12"\n')
    (tmp_path / "sys/module/nvidia/version").write_text("535.7.01\n")
    (tmp_path / "proc/7/comm").write_text("python3\n")
    (tmp_path / "proc/7/fd/7").symlink_to("/dev/nvidia0")
    return tmp_path


def facts_of(root: Path) -> dict[str, Any]:
    reader = Reader(root, answer, 7)
    found = reader.facts(RUNNING)
    assert reader.warnings == []
    return found


def test_facts(root: Path) -> None:
    found = facts_of(root)
    assert found["debian"] == 12
    assert found["packages"] == {"nvidia-open-kernel-dkms": "535.8.01-1", "linux-image-amd64": "6.1.77-1"}
    assert [(kernel["release"], kernel["ready"]) for kernel in found["kernels"]] == [(RUNNING, True), (NEXT, False)]
    assert found["loaded"] == {"version": "535.7.01", "flavor": None}
    assert found["on_disk"] == {"version": "535.8.01", "flavor": "open"}
    assert "535.7.01" in found["difference"]
    assert found["held_by"] == ["python3 (pid 7)"]
    assert found["secure_boot"]["key"] == "missing"
    assert "mokutil --import" in found["secure_boot"]["problem"]
    assert [module["name"] for module in found["dkms"]] == ["nvidia-current-open"]
    signatures = [kernel["signature"] for kernel in found["kernels"]]
    assert signatures == [{"signer": "Site key", "key": "0A7F"}, None]
    assert found["runfile"] is found["secure_boot"]["serial"] is None


def test_an_initial_ram_disk_from_before_nouveau_was_kept_away(root: Path) -> None:
    """Such as after a run that was cut off. One that is newer, and none at all, are fine."""

    def outdated() -> list[bool]:
        return [kernel["outdated_initrd"] for kernel in facts_of(root)["kernels"]]

    for release in (RUNNING, NEXT):
        (root / f"boot/initrd.img-{release}").touch()
        os.utime(root / f"boot/initrd.img-{release}", (7, 7))
    assert outdated() == [False, False], "nothing was kept away yet"
    (root / "etc/modprobe.d").mkdir()
    (root / "etc/modprobe.d/inference-nouveau.conf").write_text("blacklist nouveau\n")
    os.utime(root / "etc/modprobe.d/inference-nouveau.conf", (5, 5))
    assert outdated() == [True, True], "whatever time a copy was given"
    os.utime(root / f"boot/initrd.img-{RUNNING}", (2**32, 2**32))
    assert outdated() == [False, True]
    (root / f"boot/initrd.img-{NEXT}").unlink()
    assert outdated() == [False, False]


def test_a_driver_of_the_installer(root: Path) -> None:
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/bin/nvidia-uninstall").touch()
    assert facts_of(root)["runfile"] == {"version": None, "flavor": None, "registered": False}
    (root / "var/lib/nvidia").mkdir(parents=True)
    (root / "var/lib/nvidia/log").write_text("580.7.01\nNVIDIA driver\n")
    assert facts_of(root)["runfile"]["version"] == "580.7.01"


def test_the_firmware_may_be_another_ones(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """mokutil is told so as well, and else runs as it always does."""
    asked: list[str] = []

    def note(command: Sequence[str], timeout: float) -> Outcome:
        asked.append(" ".join(command))
        return Outcome(0)

    firmware = tmp_path_factory.mktemp("firmware")
    assert Reader(root, note, 7, firmware).facts(RUNNING)["secure_boot"]["efi"] is False
    assert f"{MOKUTIL.format(firmware)} --sb-state" in asked
    assert Reader(root, note, 7, root).facts(RUNNING)["secure_boot"]["efi"] is True
    assert asked[-1] == "mokutil --sb-state"


def test_a_bare_machine_has_no_facts_and_no_errors(tmp_path: Path) -> None:
    reader = Reader(tmp_path, lambda command, timeout: Outcome(None, failure="not_installed"), 7)
    found = reader.facts(RUNNING)
    assert reader.warnings == []
    assert found["debian"] is None
    assert found["loaded"] is found["on_disk"] is found["difference"] is None
    assert found["kernels"] == found["dkms"] == found["held_by"] == []
    assert found["secure_boot"]["enabled"] is False


def test_a_program_that_hangs_is_a_warning(tmp_path: Path) -> None:
    message = "dkms did not end within 7 s"
    reader = Reader(tmp_path, lambda command, timeout: Outcome(None, failure="timeout", message=message), 7)
    reader.facts(RUNNING)
    assert message in reader.warnings


def same_keys(documented: dict[str, Any], found: dict[str, Any]) -> None:
    """Every key is documented, and the other way round, in nested parts too."""
    assert set(documented) == set(found)
    for key, value in found.items():
        inner = value[0] if isinstance(value, list) and value else value
        if "contains" in documented[key] and isinstance(inner, dict):
            same_keys(documented[key]["contains"], inner)


def test_the_facts_are_documented(root: Path) -> None:
    documented = yaml.safe_load(nvidia_driver_facts.RETURN)["ansible_facts"]["contains"]["nvidia_driver"]
    same_keys(documented["contains"], facts_of(root))


def test_the_gates_result_is_documented() -> None:
    modules = dkms.parse(OUTPUTS["dkms status"])
    found = nvidia_driver_gate.look([Kernel(RUNNING, True), Kernel(NEXT, False)], modules, gate.Wanted())
    same_keys(yaml.safe_load(nvidia_driver_gate.RETURN), found)
    assert [kernel["module"] for kernel in found["kernels"]] == ["nvidia-current-open/535.8.01", None]
    assert len(found["problems"]) == 1


def test_the_signings_result_is_documented(root: Path) -> None:
    signer = Signer(Reader(root, answer, 7), answer_with_stdin, Wish(), 7, check_mode=True)
    assert set(yaml.safe_load(nvidia_driver_signing.RETURN)) == {
        *nvidia_driver_signing.apply(signer, existing=True)
    } - {"changed"}


def test_the_installers_result_is_documented() -> None:
    documented = yaml.safe_load(nvidia_driver_runfile.RETURN)
    assert set(documented["file"]["contains"]) == set(vars(installer.Checked("", None, None, 0)))
    assert set(documented["before"]["contains"]) == set(vars(Installed(None, None, registered=False)))


def test_the_facts_of_a_driver_of_the_installer_are_documented(root: Path) -> None:
    documented = yaml.safe_load(nvidia_driver_facts.RETURN)["ansible_facts"]["contains"]["nvidia_driver"]["contains"]
    assert set(documented["runfile"]["contains"]) == set(vars(Installed(None, None, registered=False)))


def test_the_checks_result_is_documented() -> None:
    assert set(yaml.safe_load(cuda_check.RETURN)) == set(vars(cuda.Check(True)))


@pytest.mark.parametrize(
    ("found", "devices", "words"),
    [
        (cuda.Check(True, 0, "CUDA_SUCCESS", 8), 8, ""),
        (cuda.Check(True, 0, "CUDA_SUCCESS", 8), None, ""),
        (cuda.Check(False, 802, message="broken"), None, ""),
        (cuda.Check(False, 802, message="broken"), 8, "broken"),
        (cuda.Check(True, 0, "CUDA_SUCCESS", 7), 8, "7 GPUs instead of 8"),
    ],
)
def test_a_missing_gpu_fails_only_where_gpus_are_asked_for(found: cuda.Check, devices: int | None, words: str) -> None:
    text = cuda_check.shortfall(found, devices)
    assert words in text
    assert bool(text) is bool(words)


@pytest.mark.parametrize(("code", "fails"), [(802, True), (0, True), (100, False)])
def test_a_fabric_that_is_not_up_fails_where_it_was_waited_for(code: int, fails: bool) -> None:
    """Also where no number of GPUs was asked for, as with MIG."""
    found = cuda.Check(False, code, message="broken")
    assert bool(cuda_check.shortfall(found, None, 300)) is fails


def test_the_filter_takes_the_facts_as_they_are(root: Path) -> None:
    facts = facts_of(root)
    decision = nvidia_driver_plan({"source": "debian", "flavor": "open"}, facts, month="2026-11")
    assert decision["problems"] == []
    assert decision["plan"]["sign"] is True
    assert decision["plan"]["remove"] == []
    documented = yaml.safe_load((Path(__file__).parents[4] / "plugins/filter/nvidia_driver_plan.yml").read_text())
    same_keys(documented["RETURN"]["_value"]["contains"], decision)


def test_the_filters_wish_is_documented() -> None:
    documented = yaml.safe_load((Path(__file__).parents[4] / "plugins/filter/nvidia_driver_plan.yml").read_text())
    wish = documented["DOCUMENTATION"]["options"]["_input"]["suboptions"]
    facts = {"debian": 12, "packages": {}, "kernels": [], "secure_boot": {"enabled": None}, "runfile": None}
    defaults = {name: option["default"] for name, option in wish.items() if "default" in option}
    assert nvidia_driver_plan({"source": "debian", **defaults}, facts) == nvidia_driver_plan(
        {"source": "debian"}, facts
    )
