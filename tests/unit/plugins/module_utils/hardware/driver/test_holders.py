# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes and modules that use the driver, in a made-up /proc and /sys."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver import holders
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.holders import LoadedModule, Process

ID = "7a" * 32


def add_process(root: Path, pid: int, name: str, cgroup: str, *devices: str) -> None:
    directory = root / f"proc/{pid}/fd"
    directory.mkdir(parents=True)
    (directory.parent / "comm").write_text(f"{name}\n")
    (directory.parent / "cgroup").write_text(cgroup)
    for number, device in enumerate(("/dev/null", *devices, "socket:[77]")):
        (directory / str(number)).symlink_to(device)


def add_module(root: Path, name: str, references: int, *users: str) -> None:
    for user in ("", *users):
        (root / "sys/module" / name / "holders" / user).mkdir(parents=True, exist_ok=True)
    (root / "sys/module" / name / "refcnt").write_text(f"{references}\n")


def test_processes_with_an_open_device_of_the_driver_are_found(tmp_path: Path) -> None:
    add_process(
        tmp_path,
        700,
        "nvidia-persiste",
        "0::/system.slice/nvidia-persistenced.service\n",
        "/dev/nvidia0",
        "/dev/nvidiactl",
    )
    add_process(tmp_path, 71, "python3", f"0::/system.slice/docker-{ID}.scope\n", "/dev/nvidia-uvm", "/dev/nvidia-uvm")
    add_process(tmp_path, 72, "sshd", "0::/system.slice/ssh.service\n")
    add_process(tmp_path, 73, "store", "0::/\n", "/dev/nvme0", "/var/dev/nvidia0")
    (tmp_path / "proc/self").mkdir()
    assert holders.processes(tmp_path) == [
        Process(71, "python3", ("/dev/nvidia-uvm",), f"docker-{ID}.scope", ID[:12]),
        Process(700, "nvidia-persiste", ("/dev/nvidia0", "/dev/nvidiactl"), "nvidia-persistenced.service", None),
    ]  # fmt: skip


def test_a_container_is_shown_by_its_name(tmp_path: Path) -> None:
    add_process(
        tmp_path,
        7,
        "VLLM::Worker",
        f"12:devices:/docker/{ID}\n1:name=systemd:/docker/{ID}\n",
        "/dev/nvidia-caps/nvidia-cap2",
    )
    known = tmp_path / holders.CONTAINERS / ID
    known.mkdir(parents=True)
    (known / "config.v2.json").write_text(json.dumps({"Name": "/vllm-main"}))
    (process,) = holders.processes(tmp_path)
    assert str(process) == "VLLM::Worker (pid 7, container vllm-main)"  # fmt: skip


def test_a_process_without_name_and_unit_is_shown_by_its_pid(tmp_path: Path) -> None:
    add_process(tmp_path, 7, "python3", "", "/dev/nvidia0")
    (tmp_path / "proc/7/comm").unlink()
    (process,) = holders.processes(tmp_path)
    assert str(process) == "? (pid 7)"


@pytest.mark.parametrize(
    ("cgroup", "unit"),
    [
        ("0::/system.slice/vllm@main.service\n", "vllm@main.service"),
        ("0::/system.slice/gpu.service/part/inner\n", "gpu.service"),
        ("0::/user.slice/user-0.slice/session-7.scope\n", "session-7.scope"),
        ("9:cpu:/system.slice/wrong.service\n1:name=systemd:/system.slice/right.service\n", "right.service"),
        ("0::/\n", None),
        ("", None),
    ],
)
def test_the_unit_of_a_process_comes_from_its_cgroup(cgroup: str, unit: str | None) -> None:
    assert holders.unit_of(cgroup) == unit


@given(st.text())
def test_any_cgroup_is_read(text: str) -> None:
    holders.unit_of(text)


def test_the_modules_of_the_driver_have_references_and_holders(tmp_path: Path) -> None:
    add_module(tmp_path, "nvidia", 7, "nvidia_uvm")
    add_module(tmp_path, "nvidia_uvm", 2)
    add_module(tmp_path, "zfs", 7)
    assert holders.modules(tmp_path) == [
        LoadedModule("nvidia", 7, ("nvidia_uvm",)),
        LoadedModule("nvidia_uvm", 2, ()),
    ]


def test_a_module_that_is_unloaded_meanwhile_has_no_holders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_module(tmp_path, "nvidia", 0)

    def gone(path: object = ".") -> list[str]:
        raise FileNotFoundError(path)

    monkeypatch.setattr("os.listdir", gone)
    monkeypatch.setattr("os.scandir", gone)
    assert holders.modules(tmp_path) == [LoadedModule("nvidia", 0, ())]


def test_users_of_the_driver_that_are_not_processes_are_found() -> None:
    idle = [LoadedModule("nvidia", 1, ("nvidia_uvm",)), LoadedModule("nvidia_uvm", 0, ())]
    assert holders.unexplained([], idle) == []
    console = [LoadedModule("nvidia_modeset", 1, ("nvidia_drm",)), LoadedModule("nvidia_drm", 1, ())]
    assert holders.unexplained([], console) == ["nvidia_drm is in use 1 times, by no visible process"]
    foreign = [LoadedModule("nvidia", 1, ("nv_gdrdrv",))]
    engine = Process(7, "python3", ("/dev/nvidia0",), None, None)
    assert holders.unexplained([engine], foreign) == ["kernel module nv_gdrdrv uses nvidia"]
    assert holders.unexplained([engine], [LoadedModule("nvidia", 4, ())]) == []
