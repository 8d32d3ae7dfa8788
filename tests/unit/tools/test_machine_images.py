# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""When an image of a node with a kernel is made, and from what."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import machine_images
import nodes
import pytest

IMAGE = "inference-node:machine-bookworm-"


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What docker answers, by a word of the command. `asked` has the beginning of each command, one a line."""
    answers = {"{{.Id}}": "sha256:1", "{{.Created}}": "", "asked": ""}

    def run(*argv: str, check: bool = True, **_options: Any) -> subprocess.CompletedProcess[str]:
        answers["asked"] += " ".join(argv[:7]).partition("\n")[0] + "\n"
        answer = next((answers[word] for word in argv if word in answers), "")
        if check and answer == "fails":
            raise nodes.NodeError("docker fails")
        return subprocess.CompletedProcess(argv, 0, answer + "\n", "")

    monkeypatch.setattr(machine_images, "run", run)
    monkeypatch.setattr(nodes, "CACHE", tmp_path)
    return answers


def test_an_image_belongs_to_the_nodes_image_and_the_script(docker: dict[str, str], tmp_path: Path) -> None:
    first = machine_images.name("bookworm")
    assert first.startswith(IMAGE) and machine_images.name("bookworm") == first
    docker["{{.Id}}"] = "sha256:2"
    script = tmp_path / "script"
    script.write_text("true")
    assert len({first, machine_images.name("bookworm"), machine_images.name("bookworm", script)}) == 3


@pytest.mark.parametrize(("days", "made"), [(None, True), (6, False), (8, True)])
def test_a_missing_or_old_image_is_made(docker: dict[str, str], days: int | None, made: bool) -> None:
    if days is not None:
        docker["{{.Created}}"] = f"{datetime.now(UTC) - timedelta(days=days):%Y-%m-%dT%H:%M:%S}.123456789Z"
    (origin,) = machine_images.ensure(["bookworm"]).values()
    assert origin.image.startswith(IMAGE) and not origin.volume
    ran = "docker run --name machine-bookworm --network inference inference-node:bookworm\n"
    kept = "docker commit --change LABEL inference.machine=bookworm machine-bookworm"
    assert (ran in docker["asked"], kept in docker["asked"]) == (made, made), docker["asked"]


def test_a_script_that_fails_leaves_no_container(docker: dict[str, str]) -> None:
    docker["run"] = "fails"
    with pytest.raises(nodes.NodeError):
        machine_images.ensure(["bookworm"])
    assert docker["asked"].endswith("docker rm --force --volumes machine-bookworm\n")
