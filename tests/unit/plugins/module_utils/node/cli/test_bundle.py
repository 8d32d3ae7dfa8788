# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""`inferctl bundle`: the file has all parts and no secret, and the output names failed and partial parts."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import commands
from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.node.bundle import item
from ansible_collections.baremetal.inference.plugins.module_utils.node.cli import inferctl

from ..conftest import HOOK, KEY, OLD_KEY, PROMPT, Tools, unpack

Run = Callable[..., tuple[int, Path, str, str]]


@pytest.fixture
def run(secret_node: Paths, tools: Tools, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> tuple[int, Path, str, str]:
        path = tmp_path / "bundle.tar.gz"
        code = inferctl.main(["bundle", "--output", str(path), *arguments], secret_node)
        captured = capsys.readouterr()
        return code, path, captured.out, captured.err

    return call


def test_a_bundle_has_all_parts_and_no_secret(run: Run, tools: Tools) -> None:
    tools.absent.remove("nvidia-bug-report.sh")
    tools.report = f"a report\nAuthorization: Bearer x1y2z3\nprompt: '{PROMPT}'\n{KEY}\n"
    code, path, out, err = run()
    assert code == 0 and str(path) in out
    assert path.stat().st_mode & 0o777 == 0o600
    found = unpack(path)
    assert {
        "manifest.json",
        "doctor.json",
        "status.json",
        "recovery.json",
        "state.json",
        "kernel.log",
        "nvidia-bug-report.log",
        "gpu/nvidia-smi.txt",
        "gpu/facts.json",
        "rdma/facts.json",
        "journal/engine-main.log",
        "journal/vllm@main.service.log",
        "journal/inference-agent.service.log",
        "journal/docker.service.log",
        "system/packages.txt",
        "system/lspci.txt",
        "system/addresses.txt",
        "files/etc/docker/daemon.json",
        "files/etc/inference/registry.json",
        "files/etc/inference/env/main.env",
        "files/etc/systemd/system/vllm@main.service",
        "files/var/lib/inference/releases/main/1/release.json",
        "files/var/lib/inference/releases/main/2/release.json",
        "files/var/lib/inference/recovery/evidence/main/2026-05-04T030000Z/engine.log",
    } <= set(found)
    assert not [name for name in found if "aside" in name or "/active/" in name or "/current/" in name]
    everything = "\n".join(found.values())
    for secret in (KEY, OLD_KEY, HOOK, "hunter2", "x1y2z3", PROMPT, "key-that-was-wrong"):
        assert secret not in everything
    assert "VLLM_API_KEY=***" in found["files/etc/inference/env/main.env"]
    assert "Xid (PCI:0000:1b:00): 79" in found["kernel.log"]
    assert json.loads(found["state.json"])["instances"]["main"]["releases"] == [1, 2]
    assert {check["status"] for check in json.loads(found["doctor.json"])["checks"]}
    assert json.loads(found["files/etc/inference/registry.json"])["models"]["bot"]["dtype"] == "float32"
    assert "a report" in found["nvidia-bug-report.log"]
    # The operator sees the progress.
    assert "gpu/nvidia-smi.txt" in err


def test_failed_and_partial_parts_are_named_and_absent_parts_are_not(run: Run, tools: Tools) -> None:
    tools.outcomes["lspci -vvnn"] = Outcome(
        None, "half of it\n", failure="timeout", message="lspci did not end within 30 s"
    )
    tools.outcomes["nvidia-smi -q"] = Outcome(9, "", "could not communicate with the driver")
    tools.absent.add("docker")
    code, path, out, _err = run()
    assert code == 0
    found = unpack(path)
    parts = {part["file"]: part for part in json.loads(found["manifest.json"])["parts"]}
    assert parts["system/lspci.txt"]["status"] == item.PARTIAL and "did not end" in parts["system/lspci.txt"]["reason"]
    assert found["system/lspci.txt"] == "half of it\n"
    assert parts["gpu/nvidia-smi.txt"]["status"] == item.FAILED
    assert "exit status 9: could not communicate" in parts["gpu/nvidia-smi.txt"]["reason"]
    assert parts["docker/info.txt"]["status"] == item.ABSENT and "docker/info.txt" not in found
    assert parts["nvidia-bug-report.log"]["status"] == item.ABSENT
    assert {part["file"] for part in parts.values() if part["status"] in (item.COLLECTED, item.PARTIAL)} <= set(found)
    assert "failed: gpu/nvidia-smi.txt: exit status 9" in out and "partial: system/lspci.txt" in out
    assert "dkms" not in out
    (earlier,) = (call for call in tools.calls if "--boot=-1" in call)
    tools.outcomes[" ".join(earlier)] = Outcome(1, "", "No such boot ID in journal")
    path.unlink()
    assert "earlier-boot" not in run()[2]


@pytest.mark.parametrize("packed", [True, False])
def test_an_incomplete_nvidia_report_is_kept(
    run: Run, tools: Tools, packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools.absent.remove("nvidia-bug-report.sh")
    answer = tools.run

    def breaks_off(command: Sequence[str], timeout: float) -> Outcome:
        if command[0] != "nvidia-bug-report.sh":
            return answer(command, timeout)
        log = Path(command[2])
        if packed:
            # gzip was killed before its end.
            log.with_name(f"{log.name}.gz").write_bytes(gzip.compress(b"half of it")[:-9])
        log.write_text(f"half of it with {KEY}")
        return Outcome(None, failure="timeout", message="nvidia-bug-report.sh did not end within 300 s")

    monkeypatch.setattr(commands, "run", breaks_off)
    _code, path, out, _err = run()
    found = unpack(path)
    (part,) = (one for one in json.loads(found["manifest.json"])["parts"] if one["file"] == "nvidia-bug-report.log")
    assert part["status"] == item.PARTIAL and "did not end" in part["reason"]
    assert found["nvidia-bug-report.log"] == "half of it with ***\n"
    assert "partial: nvidia-bug-report.log" in out


def test_json_has_the_parts_and_no_progress(run: Run) -> None:
    code, path, out, err = run("--json")
    document = json.loads(out)
    assert (code, document["path"], document["size"]) == (0, str(path), path.stat().st_size)
    assert err == ""
    (smi,) = (part for part in document["parts"] if part["file"] == "gpu/nvidia-smi.txt")
    assert (smi["source"], smi["status"]) == ("nvidia-smi -q", "collected")


def test_journals_begin_at_the_time_of_since(run: Run, tools: Tools) -> None:
    code, path, _out, _err = run("--since", "2026-05-04T03:00:00+02:00")
    asked = [call for call in tools.calls if call[0] == "journalctl" and "-u" in call]
    assert code == 0 and asked and all("--since=2026-05-04 01:00:00 UTC" in call for call in asked)
    assert json.loads(unpack(path)["manifest.json"])["since"] == "2026-05-04T01:00:00Z"


def test_a_duration_counts_back_from_now(run: Run) -> None:
    _code, path, _out, _err = run("--since", "2h")
    manifest = json.loads(unpack(path)["manifest.json"])
    made, since = (datetime.fromisoformat(manifest[key]) for key in ("made", "since"))
    assert (made - since).total_seconds() == 7200


def test_wrong_usage_writes_nothing(run: Run, tmp_path: Path) -> None:
    code, path, _out, err = run("--since", "yesterday")
    assert code == 2 and "'yesterday'" in err and "2h" in err
    code, _path, _out, err = run("--since", "999999d")
    assert code == 2 and "'999999d' is too long" in err
    assert not path.exists()
    path.write_text("another file")
    code, _path, _out, err = run()
    assert code == 2 and "exists already" in err
    assert path.read_text() == "another file"


def test_a_link_at_the_path_of_a_bundle_is_wrong_usage(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bundle.tar.gz").symlink_to(tmp_path / "elsewhere")
    assert run()[0] == 2
    assert not (tmp_path / "elsewhere").exists()


def test_a_bundle_in_a_directory_gets_its_own_name(secret_node: Paths, tools: Tools, tmp_path: Path) -> None:
    assert inferctl.main(["bundle", "--output", str(tmp_path), "--json"], secret_node) == 0
    assert len(list(tmp_path.glob("inferctl-bundle-*.tar.gz"))) == 1


def test_damaged_settings_fail_only_their_own_parts(run: Run, secret_node: Paths) -> None:
    for path in (secret_node.doctor_settings, secret_node.recovery_settings):
        path.write_text("{")
    code, path, _out, _err = run()
    parts = {part["file"]: part for part in json.loads(unpack(path)["manifest.json"])["parts"]}
    assert code == 0
    assert (parts["doctor.json"]["status"], parts["recovery.json"]["status"]) == (item.FAILED, item.FAILED)
    assert "doctor.json" in parts["doctor.json"]["reason"]
    assert parts["status.json"]["status"] == item.COLLECTED
