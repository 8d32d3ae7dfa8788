# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fingerprint that the role docker expects of the repository's key, by the repository's address."""

from __future__ import annotations

from collections.abc import Callable

from .conftest import Stage

ADDRESSES = {
    "https://download.docker.com/linux/debian": True,
    "https://download.docker.com/linux/debian/": True,
    "http://download.docker.com/linux/debian": True,
    "https://mirror.example.com/download.docker.com/linux/debian": False,
    "https://download.docker.com.example.com/linux/debian": False,
    "https://download-docker.com/linux/debian": False,
}
"""Whether an address is that of Docker's own repository, whose key has a known fingerprint."""


def test_the_key_of_dockers_own_repository_is_pinned_by_each_of_its_addresses(staged: Callable[..., Stage]) -> None:
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
