# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which snapshot a node is copied from, and what the copy shares with it."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nodes
import pytest
import snapshots

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)


def docker(monkeypatch: pytest.MonkeyPatch, **said: str) -> list[tuple[str, ...]]:
    """Let docker answer by the format of the command. Returns the list of its commands, which grows with each call."""
    asked: list[tuple[str, ...]] = []

    def run(*argv: str, check: bool = True, **_options: Any) -> subprocess.CompletedProcess[str]:
        asked.append(argv)
        answer = next((text for word, text in said.items() if f".{word}}}}}" in " ".join(argv)), "")
        return subprocess.CompletedProcess(argv, 0, answer + "\n", "")

    monkeypatch.setattr(snapshots, "run", run)
    return asked


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    record = tmp_path / "engine-image.json"
    record.write_text(json.dumps({"reference": "inference-registry:5000/vllm-cpu@sha256:aa"}))
    monkeypatch.setattr(snapshots, "CACHE", tmp_path)
    return record


def test_a_change_of_the_node_image_or_the_engine_image_needs_another_snapshot(
    engine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docker(monkeypatch, Id="sha256:1")
    first = snapshots.origin("bookworm")
    assert snapshots.origin("bookworm") == first
    assert first.image.startswith("inference-node:snapshot-bookworm-")
    docker(monkeypatch, Id="sha256:2")
    second = snapshots.origin("bookworm")
    engine.write_text(json.dumps({"reference": "inference-registry:5000/vllm-cpu@sha256:bb"}))
    assert len({first, second, snapshots.origin("bookworm")}) == 3


@pytest.mark.parametrize(
    ("created", "disk", "fresh"),
    [
        ("", "", False),
        ("2026-11-24T10:00:00.123456789Z", "volume", True),
        ("2026-11-24T10:00:00.123456789Z", "", False),
        ("2026-11-18T11:59:59.1Z", "volume", False),
    ],
    ids=["none", "of yesterday", "without its disk", "of last week"],
)
def test_an_old_or_incomplete_snapshot_is_not_fresh(
    monkeypatch: pytest.MonkeyPatch, created: str, disk: str, fresh: bool
) -> None:
    docker(monkeypatch, Created=created, Name=disk)
    assert snapshots.is_fresh(nodes.Origin("image", "volume"), NOW) is fresh


def test_only_snapshots_that_are_not_fresh_are_made(engine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docker(monkeypatch, Id="sha256:1")
    made: list[dict[str, nodes.Origin]] = []
    monkeypatch.setattr(snapshots, "make", made.append)
    monkeypatch.setattr(snapshots, "is_fresh", lambda snapshot, _now: "bookworm" in snapshot.image)
    monkeypatch.setattr(nodes, "CACHE", engine.parent)
    wanted = snapshots.ensure()
    assert list(wanted) == list(nodes.RELEASES)
    assert [list(one) for one in made] == [["trixie"]]


def test_a_copy_of_a_disk_shares_layers_and_nothing_that_docker_writes_to(tmp_path: Path) -> None:
    source, target = tmp_path / "source/_data", tmp_path / "target/_data"
    target.mkdir(parents=True)
    for path in ("overlay2/aa/diff/opt/weights", "image/overlay2/repositories.json"):
        (source / path).parent.mkdir(parents=True)
        (source / path).write_text("as it was")
    (source / "overlay2/l").symlink_to("aa/diff")
    argv = ["sh", "-ec", nodes.COPY_DISK, "sh", str(tmp_path / "source"), str(tmp_path / "target")]
    subprocess.run(argv, check=True)
    layer, database = "overlay2/aa/diff/opt/weights", "image/overlay2/repositories.json"
    assert (target / layer).samefile(source / layer)
    assert (target / database).read_text() == "as it was"
    assert not (target / database).samefile(source / database)
    assert (target / "overlay2/l").is_symlink()
