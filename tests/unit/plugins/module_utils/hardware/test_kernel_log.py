# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel's log: in /dev/kmsg, in a file, and with several boots."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.hardware import kernel_log


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_plain_kmsg_comes_before_kern_log(tmp_path: Path) -> None:
    write(tmp_path / "var/log/kern.log", "from the file\n")
    assert kernel_log.read(tmp_path, 1) == "from the file\n"
    write(tmp_path / "dev/kmsg", "6,1,1500000,-;from kmsg\n")
    assert kernel_log.read(tmp_path, 1) == "6,1,1500000,-;from kmsg\n"


def test_a_device_below_another_root_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/kmsg").symlink_to("/dev/null")
    write(tmp_path / "var/log/kern.log", "from the file\n")
    assert kernel_log.read(tmp_path, 1) == "from the file\n"


def test_without_a_log_the_answer_is_none(tmp_path: Path) -> None:
    assert kernel_log.read(tmp_path, 1) is None


def test_only_the_end_of_a_huge_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_log, "LARGEST", 10)
    write(tmp_path / "var/log/kern.log", "much before\nthe end\n")
    assert kernel_log.read(tmp_path, 1) == "e\nthe end\n"


@pytest.mark.parametrize("prefix", ["6,1,0,-;", "[    0.000000] ", "Mar  2 10:00:00 node1 kernel: ", ""])
def test_a_log_may_have_several_boots_and_quote_their_first_message(prefix: str) -> None:
    boot = f"{prefix}Linux version 6.1.0\nafter\n{prefix}a module for Linux version 6.1.0\nend\n"
    assert kernel_log.since_boot(f"{prefix}Linux version 6.0.0\nbefore\n{boot}") == boot
    assert kernel_log.since_boot("no boot at all\n") == "no boot at all\n"


def test_lines_with_a_word_are_found_with_the_lines_after_them() -> None:
    log = "no\n[    1.500000] word\n6,1,2500000,-;next\nkernel: last\nno"
    assert kernel_log.about(log, "word", after=2) == [
        kernel_log.Line(1.5, "word"),
        kernel_log.Line(2.5, "next"),
        kernel_log.Line(None, "last"),
    ]


def test_dev_kmsg_is_read_to_its_end_or_to_the_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[bytes | Exception] = [b"6,1,1,-;one\n", BrokenPipeError(), b"6,3,3,-;three\n", BlockingIOError()]

    def read(_handle: int, _size: int) -> bytes:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    (tmp_path / "kmsg").touch()
    monkeypatch.setattr(os, "read", read)
    assert kernel_log._live(tmp_path / "kmsg", 5) == "6,1,1,-;one\n6,3,3,-;three\n"
    monkeypatch.setattr(os, "read", lambda _handle, _size: b"6,1,1,-;flood\n")
    assert kernel_log._live(tmp_path / "kmsg", 0.05).startswith("6,1,1,-;flood")


def test_another_device_in_place_of_the_log_is_an_error() -> None:
    with pytest.raises(OSError, match="not the kernel's log"):
        kernel_log._live(Path("/dev/null"), 5)
