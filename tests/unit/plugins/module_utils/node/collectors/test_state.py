# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics of the active and the wanted releases, and of gangs."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import gangs, history, releases
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.gangs import GangState, MemberState
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.history import Served
from ansible_collections.baremetal.inference.plugins.module_utils.node.collectors import state

from ..conftest import write
from ..gang.world import gang
from .conftest import collect, declare


def test_releases_and_a_due_reboot_have_metrics(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    declare(paths)
    history.add(paths, "main", Served(1, "2026-05-01T12:00:00Z"))
    text = collect("state", paths)
    for line in (
        "inference_reboot_required 0",
        'inference_release_number{name="main"} 1',
        'inference_release_pending{name="main"} 0',
        'inference_release_proven{name="main"} 1',
        'inference_release_pinned{name="main"} 0',
        'inference_instance_declared{name="main"} 1',
        'inference_instance_gpus{name="main"} 1',
        'inference_release_since_timestamp_seconds{name="main"} 1777636800',
        'inference_release_info{name="main",release="1",model="tiny-a",revision="ab12cd34ef56",'
        'image="vllm@0123456789ab",accelerator="nvidia"} 1',
    ):
        assert f"{line}\n" in text, line
    write(paths.instance("main"), json.dumps({"schema": 1, "release": 2}))
    write(tmp_path / "run/reboot-required", "")
    text = collect("state", paths)
    assert 'inference_release_pending{name="main"} 1\n' in text and "inference_reboot_required 1\n" in text
    # A damaged file removes only the metrics of its own instance.
    write(paths.instance("main"), "{")
    assert 'name="main"' not in collect("state", paths) and "inference_reboot_required 1" in collect("state", paths)


@pytest.fixture
def unit(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The ActiveState of main's unit."""
    states = {"vllm@main.service": "active"}
    monkeypatch.setattr(systemd, "active_state", states.__getitem__)
    return states


def join(paths: Paths, rank: int) -> None:
    """Declare main as a member of a gang."""
    declare(paths)
    path = paths.release("main", 1) / releases.RELEASE_FILE
    member = replace(gang(rank), name="main")
    files.write(path, replace(releases.load(paths, "main", 1), gang=member).to_json())


@pytest.mark.usefixtures("unit")
@pytest.mark.parametrize(("rank", "reported"), [(0, ["gpu-0", "gpu-1"]), (1, ["gpu-0"])])
def test_the_leader_reports_all_members_and_a_follower_its_leader(
    tmp_path: Path, rank: int, reported: list[str]
) -> None:
    paths = Paths(tmp_path)
    join(paths, rank)
    assert 'inference_gang_members{name="main"} 2\n' in collect("state", paths)
    members = (
        MemberState("gpu-0", 0, "10.0.0.1", gangs.WAITING),
        MemberState("gpu-1", 1, "10.0.0.2", gangs.MISSING, "was silent for 10 s"),
    )
    known = GangState("main", rank, 4, gangs.WAITING, "2026-11-26T04:00:00Z", members=members)
    files.write_json(paths.gang("main"), known.to_json())
    text = collect("state", paths)
    assert 'inference_gang_epoch{name="main"} 4\n' in text
    found = re.findall(r'inference_gang_member{name="main",member="(.*?)",rank="(.)",state="(.*?)"} 1\n', text)
    states = [("gpu-0", "0", "waiting"), ("gpu-1", "1", "missing")]
    assert found == [state for state in states if state[0] in reported]


@pytest.mark.parametrize("rank", [0, 1])
def test_a_member_that_boots_reports_no_member_yet(tmp_path: Path, unit: dict[str, str], rank: int) -> None:
    """The record on disk is that of the supervisor before the loss of power."""
    paths = Paths(tmp_path)
    join(paths, rank)
    members = tuple(MemberState(f"gpu-{one}", one, f"10.0.0.{one + 1}", gangs.SERVING) for one in (0, 1))
    known = GangState("main", rank, 4, gangs.SERVING, "2026-11-26T04:00:00Z", members=members)
    files.write_json(paths.gang("main"), known.to_json())
    unit["vllm@main.service"] = "activating"
    text = collect("state", paths)
    assert 'inference_gang_epoch{name="main"} 4\n' in text and "inference_gang_member{" not in text
    unit["vllm@main.service"] = "active"
    assert 'member="gpu-0",rank="0",state="serving"} 1\n' in collect("state", paths)


@pytest.mark.parametrize(
    ("image", "shown"),
    [
        ("vllm/vllm-openai:v0.32.0", "vllm-openai:v0.32.0"),
        ("127.0.0.1:5000/vllm@sha256:" + "ab" * 32, "vllm@" + "ab" * 6),
    ],
)
def test_the_label_of_an_image_is_short(image: str, shown: str) -> None:
    assert state.image_label(image) == shown


def test_before_its_first_start_an_instance_has_a_pending_release(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    declare(paths)
    paths.active("main").unlink()
    text = collect("state", paths)
    assert 'inference_release_pending{name="main"} 1\n' in text and "inference_release_number{" not in text


def test_an_orphan_is_not_declared(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    declare(paths)
    paths.instance("main").unlink()
    text = collect("state", paths)
    assert (
        'inference_instance_declared{name="main"} 0\n' in text and 'inference_release_pending{name="main"} 0\n' in text
    )
