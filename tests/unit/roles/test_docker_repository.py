# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The key of Docker's repository: its expected fingerprint, and when the role docker fetches the key again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import Stage

FILE = "roles/docker/tasks/repository.yml"
STAND_INS = {"get_url": "apt_sources", "file": "disks", "copy": "firewall", "slurp": "ssh_server"}
"""The modules that take the places of Ansible's own, which would change this machine."""

ADDRESSES = {
    "https://download.docker.com/linux/debian": True,
    "https://download.docker.com/linux/debian/": True,
    "http://download.docker.com/linux/debian": True,
    "https://mirror.example.com/download.docker.com/linux/debian": False,
    "https://download.docker.com.example.com/linux/debian": False,
    "https://download-docker.com/linux/debian": False,
}
"""Whether an address is that of Docker's own repository, whose key has a known fingerprint."""


def test_the_key_of_dockers_own_repository_has_a_fingerprint_at_each_address(staged: Callable[..., Stage]) -> None:
    task = {
        "name": "Say",
        "ansible.builtin.debug": {"msg": "{{ item }}={{ docker_repository_key_fingerprints | length }};"},
        "vars": {"docker_repository_url": "{{ item }}"},
        "loop": list(ADDRESSES),
    }
    play = {"name": "See", "hosts": "all", "vars_files": ["../roles/docker/defaults/main.yml"], "tasks": [task]}
    done, said = staged(["docker_daemon"]).run([play], "one")
    assert done, said
    assert {address: f"{address}=1;" in said for address in ADDRESSES} == ADDRESSES, said


KEPT = "/etc/apt/keyrings/docker.asc.2026"
"""The copy of the previous repository's key."""


def declare(staged: Callable[..., Stage], reason: str, **seen: Any) -> tuple[bool, str, Stage]:
    """Declare another repository on a host whose preflight gave this reason. `seen`: more results of get_url."""
    text = (Path(__file__).parents[3] / FILE).read_text()
    for module, other in STAND_INS.items():
        text = text.replace(f"ansible.builtin.{module}:", f"baremetal.inference.{other}:")
    variables = {
        "docker_repository_url": "https://mirror.example.com/docker",
        "docker_repository_key_fingerprints": ["9DC858229FC7DD38854AE2D88D81803C0EBFCD88"] if seen else [],
        "__docker_before": {"due_reasons": [reason], "engine": {"codename": "trixie"}},
    }
    included = {"name": "baremetal.inference.docker", "tasks_from": "repository"}
    tasks = [{"name": "Declare", "ansible.builtin.include_role": included, "vars": variables}]
    stage = staged(STAND_INS.values(), {FILE: text})
    results = [({"module": "apt_sources"}, seen), ({"module": "ssh_server"}, {"content": "bm8ga2V5"})]
    succeeded, output = stage.run([{"name": "Declare", "hosts": "all", "tasks": tasks}], "one", seen=results)
    return succeeded, output, stage


@pytest.mark.once
@pytest.mark.parametrize(
    ("reason", "again"),
    [
        ("/etc/apt/sources.list.d/docker.sources has another text or mode", True),
        ("docker-ce has another version than 28.*", False),
    ],
)
def test_the_key_is_fetched_again_only_for_another_repository(
    staged: Callable[..., Stage], reason: str, again: bool
) -> None:
    succeeded, output, stage = declare(staged, reason)
    assert succeeded, output
    (fetched,) = stage.calls(module="apt_sources")
    assert (fetched["url"], fetched["force"]) == ("https://mirror.example.com/docker/gpg", again)
    assert fetched["backup"] is again


@pytest.mark.once
@pytest.mark.parametrize("kept", [{}, {"backup_file": KEPT}])
def test_a_refused_key_leaves_the_previous_key_or_none(staged: Callable[..., Stage], kept: dict[str, str]) -> None:
    reason = "/etc/apt/sources.list.d/docker.sources has another text or mode"
    succeeded, output, stage = declare(staged, reason, changed=True, **kept)
    assert not succeeded and "docker_repository_key: https://mirror.example.com/docker/gpg" in output
    restored = [call["dest"] for call in stage.calls(module="firewall", src=KEPT)]
    removed = [call["path"] for call in stage.calls(module="disks", state="absent")]
    assert len(restored) == len(kept)
    assert removed == ([KEPT] if kept else ["/etc/apt/keyrings/docker.asc"])
