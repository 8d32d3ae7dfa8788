# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of a bundle: journals, outputs of programs, files and states."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.docker_api import DockerUnavailable
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.probe_state import ProbeState
from ansible_collections.baremetal.inference.plugins.module_utils.node.bundle import contents, read
from ansible_collections.baremetal.inference.plugins.module_utils.node.bundle.item import (
    ABSENT,
    COLLECTED,
    FAILED,
    Item,
    collect,
)
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor.host import Host

from ..conftest import HOOK, KEY, OLD_KEY, Tools, write

NOW = datetime(2026, 5, 4, 3, 0, tzinfo=UTC)


class Docker:
    """A fake Docker with the containers of a dictionary."""

    def __init__(self) -> None:
        self.containers: dict[str, Any] = {}

    def ping(self) -> None:
        raise DockerUnavailable("the Docker engine does not answer")

    def inspect(self, container: str) -> Any:
        return self.containers.get(container)


@pytest.fixture
def docker() -> Docker:
    return Docker()


def items(paths: Paths, tools: Tools, docker: Any, since: datetime | None = None) -> Mapping[str, Item]:
    """The parts of a bundle, by their file."""
    host = Host(paths, tools.run, docker)
    found = contents.items(paths, host, read.Reader(tools.run, read.secrets(paths)), since, NOW)
    assert len({item.file for item in found}) == len(found)
    return {item.file: item for item in found}


def test_the_part_that_takes_longest_comes_last(secret_node: Paths, tools: Tools, docker: Docker) -> None:
    assert list(items(secret_node, tools, docker))[-1] == "nvidia-bug-report.log"


def test_a_bundle_has_the_journals_of_all_instances_and_units(secret_node: Paths, tools: Tools, docker: Docker) -> None:
    found = items(secret_node, tools, docker)
    journals = {file.removeprefix("journal/") for file in found if file.startswith("journal/")}
    assert {"engine-main.log", "vllm@main.service.log", "inference-recovery@main.service.log"} <= journals
    assert "inference-swap@main.service.log" in journals
    assert {f"{unit}.log" for unit in contents.UNITS} <= journals
    assert f"--lines={contents.JOURNAL_LINES}" in found["journal/docker.service.log"].source
    assert "--since" not in found["journal/docker.service.log"].source


def test_journals_begin_at_a_time_in_utc(secret_node: Paths, tools: Tools, docker: Docker) -> None:
    since = datetime(2026, 5, 4, 3, 0, tzinfo=timezone(timedelta(hours=2)))
    source = items(secret_node, tools, docker, since)["journal/engine-main.log"].source
    assert "--since=2026-05-04 01:00:00 UTC" in source and source.endswith("-t vllm@main")


def test_rdma_programs_run_only_on_a_node_with_rdma(secret_node: Paths, tools: Tools, docker: Docker) -> None:
    assert "rdma/ibstat.txt" not in items(secret_node, tools, docker)
    (secret_node.root / "sys/class/infiniband").mkdir(parents=True)
    assert "rdma/ibstat.txt" in items(secret_node, tools, docker)


def test_files_of_releases_are_taken_once_and_files_put_aside_are_left_out(
    secret_node: Paths, tools: Tools, docker: Docker
) -> None:
    write(secret_node.etc / ".registry.json.new", "{}")
    found = [file for file in items(secret_node, tools, docker) if file.startswith("files/")]
    assert "files/var/lib/inference/releases/main/2/release.json" in found
    assert "files/var/lib/inference/recovery/evidence/main/2026-05-04T030000Z/engine.log" in found
    # A file of the fixed list is a part even if the node lacks the file.
    assert "files/proc/cmdline" in found
    assert not [file for file in found if "aside" in file or "/active/" in file or "/current/" in file or "/." in file]


def test_the_state_of_an_instance_has_verdict_drain_and_releases(
    secret_node: Paths, tools: Tools, docker: Docker
) -> None:
    probe = ProbeState("main", "hung", "2026-05-04T02:00:00Z", "2026-05-04T02:59:00Z", None, f"no token, {KEY}")
    files.write_json(secret_node.probe("main"), probe.to_json())
    part, text = collect(items(secret_node, tools, docker)["state.json"])
    main = json.loads(text)["instances"]["main"]
    assert part.status == COLLECTED
    assert (main["probe"]["verdict"], main["probe"]["detail"], main["drain"]) == ("hung", "no token, ***", None)
    assert (main["releases"], main["active"], main["current"]) == ([1, 2], 2, 2)


def test_the_collections_own_documents_have_no_secrets(secret_node: Paths, tools: Tools, docker: Docker) -> None:
    found = items(secret_node, tools, docker)
    for file in ("doctor.json", "status.json", "recovery.json", "gpu/facts.json", "rdma/facts.json"):
        part, text = collect(found[file])
        assert part.status == COLLECTED, part
        assert json.loads(text)
        assert not [secret for secret in (KEY, OLD_KEY, HOOK) if secret in text]


def test_damaged_settings_fail_only_their_own_parts(secret_node: Paths, tools: Tools, docker: Docker) -> None:
    for path in (secret_node.doctor_settings, secret_node.recovery_settings):
        path.write_text("{")
    found = items(secret_node, tools, docker)
    statuses = [collect(found[file])[0].status for file in ("doctor.json", "recovery.json", "status.json")]
    assert statuses == [FAILED, FAILED, COLLECTED]


def test_a_container_is_shown_without_its_secrets(secret_node: Paths, tools: Tools, docker: Docker) -> None:
    part, _text = collect(items(secret_node, tools, docker)["docker/vllm-main.json"])
    assert (part.status, part.reason) == (ABSENT, "there is no container vllm-main")
    docker.containers["vllm-main"] = {"Config": {"Env": [f"VLLM_API_KEY={KEY}"]}}
    _part, text = collect(items(secret_node, tools, docker)["docker/vllm-main.json"])
    assert json.loads(text) == {"Config": {"Env": ["VLLM_API_KEY=***"]}}
