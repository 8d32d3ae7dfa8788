# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs, files and NVIDIA's own report are read without secrets. What arrived before an error is kept."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.node.bundle import read
from ansible_collections.baremetal.inference.plugins.module_utils.node.bundle.item import (
    ABSENT,
    COLLECTED,
    FAILED,
    PARTIAL,
    Part,
    collect,
)
from ansible_collections.baremetal.inference.plugins.module_utils.node.bundle.read import Reader

from ..conftest import HOOK, KEY, OLD_KEY, Tools, missing, write


def test_secrets_of_releases_alert_channels_and_hubs_are_found(secret_node: Paths) -> None:
    write(secret_node.hub_token("hf"), "hub-secret\n")
    assert read.secrets(secret_node) == sorted([KEY, OLD_KEY, "key-that-was-wrong", HOOK, "hub-secret"])


def test_a_file_that_cannot_be_read_hides_no_secret_of_other_files(secret_node: Paths) -> None:
    secret_node.recovery_settings.write_text("[]")
    secret_node.env("broken").write_bytes(b"\xff\xfe=")
    secret_node.hub_token("hf").mkdir(parents=True)
    assert read.secrets(secret_node) == sorted([KEY, OLD_KEY, "key-that-was-wrong"])


def test_an_empty_node_has_no_secrets(tmp_path: Path) -> None:
    assert read.secrets(Paths(tmp_path)) == []


def ask(outcome: Outcome, *, optional: bool = False) -> tuple[Part, str]:
    reader = Reader(lambda _command, _limit: outcome, [KEY])
    return collect(reader.tool("x.txt", "x", "-q", optional=optional))


@pytest.mark.parametrize(
    ("outcome", "status", "text", "reason"),
    [
        (Outcome(0, f"out {KEY}\n", f"err {KEY}\n"), COLLECTED, "out ***\nerr ***\n", ""),
        (missing("x"), ABSENT, "", "x is not installed"),
        (Outcome(None, "half", failure="timeout", message="x did not end"), PARTIAL, "half\n", "x did not end"),
        (Outcome(9, "", f"no driver {KEY}"), FAILED, "", "exit status 9: no driver ***"),
        (Outcome(9, "half", "why"), PARTIAL, "half\n", "exit status 9: why"),
    ],
)
def test_the_outcome_of_a_program_decides_status_and_reason_of_its_part(
    outcome: Outcome, status: str, text: str, reason: str
) -> None:
    part, found = ask(outcome)
    assert (part.status, found, part.reason, part.source) == (status, text, reason, "x -q")


def test_an_optional_program_that_fails_without_output_is_absent() -> None:
    assert ask(Outcome(1, "", "No such boot ID"), optional=True)[0].status == ABSENT
    assert ask(Outcome(1, "half", "why"), optional=True)[0].status == PARTIAL


@pytest.fixture
def reader(tools: Tools) -> Reader:
    return Reader(tools.run, [KEY])


def test_files_are_masked_by_their_suffix(reader: Reader, tmp_path: Path) -> None:
    for name, text, expected in (
        ("x.log", f"words {KEY}", "words ***\n"),
        ("x.env", "NAME=anything\n", "NAME=***\n"),
        ("x.json", '{"password": "hunter2"}', '{\n  "password": "***"\n}\n'),
    ):
        write(tmp_path / name, text)
        assert collect(reader.file(f"files/{name}", tmp_path / name))[1] == expected
    part, _text = collect(reader.file("files/gone", tmp_path / "gone"))
    assert (part.status, part.reason) == (ABSENT, f"there is no {tmp_path}/gone")


def test_the_last_full_lines_of_a_long_file_are_kept(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "LARGEST", 16)
    write(tmp_path / "x.log", "begin\npassword=abcdefgh\nend")
    assert collect(reader.file("x.log", tmp_path / "x.log"))[1] == "end\n"


def test_a_value_is_a_json_document_without_secrets(reader: Reader) -> None:
    _part, text = collect(reader.value("x.json", "ours", lambda: {"path": Path("/x"), "words": KEY}, 10))
    assert json.loads(text) == {"path": "/x", "words": "***"}


def test_the_kernel_log_is_masked_and_fails_if_it_cannot_be_read(reader: Reader, tmp_path: Path) -> None:
    part, _text = collect(reader.kernel("kernel.log", tmp_path))
    assert (part.status, part.reason) == (FAILED, "the kernel's log cannot be read")
    write(tmp_path / "var/log/kern.log", f"words {KEY}\n")
    assert collect(reader.kernel("kernel.log", tmp_path))[1] == "words ***\n"


def test_nvidias_report_is_masked(reader: Reader, tools: Tools) -> None:
    assert collect(reader.report("report.log"))[0].status == ABSENT
    tools.absent.clear()
    part, _text = collect(reader.report("report.log"))
    assert part.status == FAILED
    tools.report = f"a report {KEY}\n"
    part, text = collect(reader.report("report.log"))
    assert (part.status, text) == (COLLECTED, "a report ***\n")


@pytest.mark.parametrize("packed", [True, False])
def test_an_incomplete_nvidia_report_is_a_partial_part(packed: bool) -> None:
    def run(command: Sequence[str], _limit: float) -> Outcome:
        log = Path(command[2])
        if packed:
            # gzip was killed before its end.
            log.with_name(f"{log.name}.gz").write_bytes(gzip.compress(b"half of it")[:-9])
        log.write_text("half of it")
        return Outcome(None, failure="timeout", message="it did not end")

    part, text = collect(Reader(run, []).report("report.log"))
    assert (part.status, part.reason, text) == (PARTIAL, "it did not end", "half of it\n")


def test_a_long_nvidia_report_ends_with_a_full_line(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "first line\nAuthorization: Bearer abcdef\n"
    monkeypatch.setattr(read, "REPORT_LARGEST", 15)

    def run(command: Sequence[str], _limit: float) -> Outcome:
        Path(command[2]).write_text(text)
        return Outcome(0)

    assert collect(Reader(run, []).report("report.log"))[1] == "first line\n"
    monkeypatch.setattr(read, "REPORT_LARGEST", len(text))
    assert collect(Reader(run, []).report("report.log"))[1].count("\n") == 2


def test_the_unpacked_report_replaces_a_damaged_packed_report() -> None:
    def run(command: Sequence[str], _limit: float) -> Outcome:
        log = Path(command[2])
        packed = bytearray(gzip.compress(b"the whole report" * 100))
        # The first block has a type that does not exist.
        packed[10] = 0b111
        log.with_name(f"{log.name}.gz").write_bytes(packed)
        log.write_text("half of it")
        return Outcome(0)

    part, text = collect(Reader(run, []).report("report.log"))
    assert (part.status, text) == (COLLECTED, "half of it\n")
