# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.backup import restic
from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome

# Outputs of restic 0.14 (Debian 12) and 0.18 (Debian 13).
ABSENT_12 = Outcome(1, stderr="Fatal: unable to open config file: stat /r/config: no such file or directory\n")
ABSENT_12_SFTP = Outcome(1, stderr="Fatal: unable to open config file: Lstat: file does not exist\nIs there a\n")
ABSENT_12_REST = Outcome(1, stderr="Fatal: unable to open config file: <config/> does not exist\nIs there a\n")
DENIED_12 = Outcome(1, stderr="Fatal: unable to open config file: unexpected HTTP response (401): 401 Unauthorized\n")
WRONG_12 = Outcome(1, stderr="Fatal: wrong password or no key found\n")
REFUSED = Outcome(1, stderr="subprocess ssh: ssh: connect to host h port 22: Connection refused\nFatal: unable to open")
LOCKED_12 = Outcome(
    1, stderr="unable to create lock in backend: repository is already locked exclusively by PID 7 on n2"
)


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        (ABSENT_12, restic.ABSENT),
        (ABSENT_12_SFTP, restic.ABSENT),
        (ABSENT_12_REST, restic.ABSENT),
        (DENIED_12, restic.UNREACHABLE),
        (Outcome(10, stderr="Fatal: repository does not exist"), restic.ABSENT),
        (WRONG_12, restic.WRONG_PASSWORD),
        (Outcome(12, stderr="Fatal: wrong password or no key found"), restic.WRONG_PASSWORD),
        (LOCKED_12, restic.LOCKED),
        (Outcome(11), restic.LOCKED),
        (REFUSED, restic.UNREACHABLE),
        (Outcome(1, stderr="client.Head: Head x: dial tcp: connect: connection refused"), restic.UNREACHABLE),
        (Outcome(None, failure="timeout", message="did not end"), restic.UNREACHABLE),
        (Outcome(None, failure="not_installed"), restic.NOT_THERE),
        (Outcome(127, stderr="env: 'restic': No such file or directory"), restic.NOT_THERE),
        (Outcome(1, stderr="Fatal: repository contains errors"), restic.OTHER),
    ],
)
def test_the_kind_of_an_error_is_recognized(outcome: Outcome, kind: str) -> None:
    assert restic.meaning(outcome) == kind


class Script:
    """A restic with prepared outcomes."""

    def __init__(self, *outcomes: Outcome) -> None:
        self.outcomes = list(outcomes)
        self.calls: list[list[str]] = []
        self.environments: list[Mapping[str, str]] = []

    def __call__(self, command: Sequence[str], timeout: float, environment: Mapping[str, str]) -> Outcome:
        self.calls.append(list(command))
        self.environments.append(environment)
        return self.outcomes.pop(0)


def of(script: Script, address: str = "rest:https://store/x") -> restic.Restic:
    secrets = {"RESTIC_REST_USERNAME": "node", "RESTIC_REST_PASSWORD": "very-secret"}
    return restic.Restic(restic.Access(address, "/etc/password", secrets), run=script)


def test_no_secret_is_in_a_command_line_or_a_message() -> None:
    script = Script(Outcome(1, stderr="Fatal: https://node:very-secret@store/x said very-secret"))
    with pytest.raises(restic.ResticError) as failed:
        of(script).identity()
    assert "very-secret" not in str(failed.value) and "very-secret" not in str(script.calls)
    assert "very-secret" in script.environments[0]["RESTIC_REPOSITORY"]
    assert script.environments[0]["RESTIC_PASSWORD_FILE"] == "/etc/password"


def test_a_secret_that_begins_with_another_value_is_hidden_as_a_whole() -> None:
    secrets = {"RESTIC_REST_USERNAME": "backup", "RESTIC_REST_PASSWORD": "backup-very-secret"}
    access = restic.Access("rest:https://store/x", "/etc/password", secrets)
    with pytest.raises(restic.ResticError) as failed:
        restic.Restic(access, run=Script(Outcome(1, stderr="Fatal: refused backup-very-secret"))).identity()
    assert "very-secret" not in str(failed.value)


def test_a_job_waits_for_the_lock_of_another_job_and_removes_stale_locks_before_each_try() -> None:
    summary = '{"message_type":"status"}\n{"message_type":"summary","snapshot_id":"0123456789ab","data_added":5}\n'
    script = Script(Outcome(0), LOCKED_12, Outcome(0), Outcome(0, stdout=summary))
    target = of(script)
    assert target.patiently(["backup"], minutes=1, pause=0) == summary
    assert [call[call.index("--no-cache") + 1] for call in script.calls] == ["unlock", "backup"] * 2
    assert not any("--remove-all" in call for call in script.calls)


def test_a_lock_that_stays_is_an_error() -> None:
    with pytest.raises(restic.ResticError, match="locked by a running job"):
        of(Script(Outcome(0), LOCKED_12)).patiently(["prune"], minutes=0, pause=1)


def test_the_content_of_the_saved_directory_is_the_root_of_the_snapshot() -> None:
    script = Script(Outcome(0), Outcome(0, stdout='{"message_type":"summary","snapshot_id":"ab","data_added":5}'))
    assert of(script).backup(Path("/run/copy"), "n1", ["machine-1"], 1)["data_added"] == 5
    command = script.calls[1]
    assert command[:2] == ["env", "--chdir=/run/copy"] and command[-1] == "."
    assert command[command.index("--host") + 1] == "n1" and restic.TAG in command and "machine-1" in command
    with pytest.raises(restic.ResticError):
        restic.summary('{"message_type":"status"}')


def test_snapshots_are_ordered_by_time_and_not_by_text() -> None:
    # The clock goes back in October: 00:59 and 01:01 in UTC.
    listed = [
        {"id": "later", "time": "2026-10-25T02:01:00.123456789+01:00"},
        {"id": "earlier", "time": "2026-10-25T02:59:00+02:00"},
    ]
    script = Script(*[Outcome(0, json.dumps(listed))] * 2)
    assert [snapshot["id"] for snapshot in of(script).snapshots("node1")] == ["earlier", "later"]
    assert of(script).newest("node1") == datetime(2026, 10, 25, 1, 1, 0, 123456, tzinfo=UTC).timestamp()


def test_sftp_gets_an_ssh_command_and_s3_a_certificate() -> None:
    access = restic.Access("sftp:me@h:/x", "/p", {}, key="/k", known_hosts="/h", cache="/c")
    assert access.options()[0] == "-o" and "-i /k" in access.options()[1]
    assert access.variables()["RESTIC_CACHE_DIR"] == "/c"
    assert restic.Access("s3:h/b", "/p", {}, ca_file="/ca").options() == ["--cacert", "/ca", "--no-cache"]


def test_messages_about_progress_do_not_hide_the_error() -> None:
    text = """Fatal: unable to save snapshot: no space left on device
{"message_type":"status","percent_done":0.66,"current_files":["/etc/inference/large"]}
{"message_type":"error","error":{"message":"read failed"},"during":"archival","item":"/etc/a"}
{"message_type":"error","error":{"Op":"write","Err":28},"during":"archival","item":"/etc/b"}
{"message_type":"exit_error","code":1,"message":"Fatal: config or key is damaged"}
{"id": "of no message"}
"""
    assert restic.spoken(text).splitlines() == [
        "Fatal: unable to save snapshot: no space left on device",
        "/etc/a: read failed",
        '/etc/b: {"Op": "write", "Err": 28}',
        "Fatal: config or key is damaged",
        '{"id": "of no message"}',
    ]


OLD, GOOD = ({"short_id": letter * 8, "time": "2026-11-25T02:30:00Z"} for letter in "ab")
FORGET = ["forget", "--host", "n1", "--tag", "inference-node", "--group-by", "host", "--keep-last", "1"]


def test_outdated_snapshots_are_listed_without_a_change() -> None:
    would = json.dumps([{"host": "n1", "keep": [GOOD], "remove": [OLD]}])
    script = Script(Outcome(0, stdout=f"words\n{would}\n"), Outcome(0, stdout='[{"remove": null}]'), Outcome(0))
    found = [of(script).outdated("n1", ["--keep-last", "1"]) for _time in range(3)]
    assert found == [{"aaaaaaaa"}, set(), set()]
    assert script.calls[0][2:] == [*FORGET, "--dry-run", "--no-lock", "--json"]


@pytest.mark.parametrize(("left", "refused"), [([GOOD], False), ([OLD, GOOD], True)])
def test_snapshots_that_a_server_has_kept_are_an_error(left: list[dict[str, str]], refused: bool) -> None:
    """The exit code of restic is 0 in both cases."""
    script = Script(Outcome(0), Outcome(0), Outcome(0, stdout=json.dumps(left)))
    error = ""
    try:
        of(script).forget("n1", ["--keep-last", "1"], 1, {"aaaaaaaa"}, "Do this")
    except restic.ResticError as found:
        error = str(found)
    assert script.calls[1][2:] == [*FORGET, "--prune"]
    assert ("snapshots aaaaaaaa of n1 are still there. Do this" in error) == bool(error) == refused
