# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""All mistakes in the input of the role docker are found at once."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian import docker_input

GOOD: dict[str, Any] = {
    "source": "docker",
    "version": "28.*",
    "repository_key": "-----BEGIN PGP PUBLIC KEY BLOCK-----",
    "nvidia": "auto",
    "toolkit_version": "1.20.0",
    "toolkit_minimum": "1.18.0",
    "toolkit_excluded": "1.19.0",
}


@pytest.mark.parametrize(
    "good",
    [
        {},
        {"repository_key": "https://example.com/gpg"},
        {"source": "debian", "version": "", "repository_key": "/no/file"},
        {"version": "5:28.3.1-1~debian.12~bookworm"},
        {"toolkit_version": "1.20.0-1"},
        {"toolkit_version": "1.18.0"},
        {"toolkit_version": "old", "nvidia": "never"},
    ],
)
def test_valid_input_has_no_problems(good: dict[str, Any]) -> None:
    assert docker_input.problems({**GOOD, **good}) == []


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"version": ""}, "docker_version is empty, but docker_source"),
        ({"version": "latest"}, 'docker_version is "latest"'),
        ({"version": "2*"}, 'docker_version is "2*"'),
        ({"toolkit_version": "1.17.8"}, 'docker_nvidia_toolkit_version is "1.17.8"'),
        ({"toolkit_version": "1.9.0"}, "1.18.0 or later"),
        ({"toolkit_version": "1.19.0"}, "not 1.19.0"),
        ({"toolkit_version": "1.19.0-1"}, "not 1.19.0"),
        ({"toolkit_version": "1.20"}, 'docker_nvidia_toolkit_version is "1.20"'),
        ({"repository_key": "/no/file"}, "is not a file on the controller"),
    ],
)
def test_each_mistake_is_a_problem(wrong: dict[str, Any], words: str) -> None:
    (found,) = docker_input.problems({**GOOD, **wrong})
    assert words in found


def test_all_problems_are_found_at_once() -> None:
    assert len(docker_input.problems({**GOOD, "version": "x", "toolkit_version": "x", "repository_key": "x"})) == 3


@pytest.mark.parametrize(
    ("data_root", "client_config", "good"),
    [("", "/c", True), ("/d", "/c", True), ("d", "/c", False), ("", "c", False), ("//d", "/c", False)],
)
def test_a_path_that_is_not_absolute_is_a_problem(data_root: str, client_config: str, good: bool) -> None:
    assert bool(docker_input.path_problems(data_root, client_config)) is not good
