# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""CUDA, with a made-up driver, and in a real child process."""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver import cuda


class Library:
    """A libcuda that answers with given codes."""

    def __init__(self, init: int = 0, count: int = 0, devices: int = 8) -> None:
        self.init, self.count, self.devices = init, count, devices

    def cuInit(self, flags: int) -> int:
        assert flags == 0
        return self.init

    def cuGetErrorName(self, code: int, text: Any) -> int:
        names = {0: b"CUDA_SUCCESS", 802: b"CUDA_ERROR_SYSTEM_NOT_READY", 100: b"CUDA_ERROR_NO_DEVICE"}
        text._obj.value = names.get(code)
        return 0 if code in names else 1

    def cuDriverGetVersion(self, version: Any) -> int:
        version._obj.value = 12080
        return 0

    def cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = self.devices
        return self.count


def check(library: Library, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> cuda.Check:
    """The check, with the script run here instead of in a child."""
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)

    def run_here(command: Sequence[str], timeout: float) -> Outcome:
        script, name = command[-2:]
        monkeypatch.setattr(sys, "argv", ["-c", name])
        exec(script, {})
        return Outcome(0, capsys.readouterr().out)

    return cuda.check("libcuda.so.1", 7, run_here)


def test_a_working_cuda_has_its_gpus_and_its_version(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(Library(), monkeypatch, capsys) == cuda.Check(True, 0, "CUDA_SUCCESS", 8, "12.8")


@pytest.mark.parametrize(
    ("library", "code", "name", "words"),
    [
        (Library(init=802), 802, "CUDA_ERROR_SYSTEM_NOT_READY", "nvidia-fabricmanager"),
        (Library(count=100), 100, "CUDA_ERROR_NO_DEVICE", "sees no GPU"),
        (Library(init=7777), 7777, None, "dmesg"),
    ],
)
def test_an_error_of_cuda_has_advice(
    library: Library,
    code: int,
    name: str | None,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = check(library, monkeypatch, capsys)
    assert (found.ok, found.code, found.name, found.devices, found.cuda_version) == (False, code, name, None, "12.8")
    assert words in found.message


def test_a_missing_library_is_an_error_with_install_as_the_next_step() -> None:
    found = cuda.check("libcuda-of-nobody.so.7", 60)
    assert not found.ok
    assert found.code is None
    assert "libcuda-of-nobody.so.7" in found.message
    assert "install" in found.message


def test_a_library_without_cuinit_is_an_error() -> None:
    assert "cuInit" in cuda.check("libc.so.6", 60).message


def test_a_driver_that_hangs_is_ended(tmp_path: Path) -> None:
    pipe = tmp_path / "libcuda.so.1"
    os.mkfifo(pipe)
    start = time.monotonic()
    found = cuda.check(str(pipe), 1)
    assert time.monotonic() - start < 30
    assert not found.ok
    assert "did not end within 1 s" in found.message


def test_a_driver_that_crashes_is_reported_with_its_last_line() -> None:
    found = cuda.check("x", 7, lambda command, timeout: Outcome(-11, stderr="\nterminate called\n"))
    assert found.message == "CUDA ended the process that called it, with signal 11: terminate called; see dmesg"


def test_the_script_prints_json(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["-c", "libcuda-of-nobody.so.7"])
    exec(cuda.SCRIPT, {})
    assert set(json.loads(capsys.readouterr().out)) == {"error"}
