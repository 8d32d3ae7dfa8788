# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Docker's packages, and how containers of their version get GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian import docker_engine
from ansible_collections.baremetal.inference.plugins.module_utils.debian.apt_packages import Installed
from ansible_collections.baremetal.inference.plugins.module_utils.debian.docker_engine import PACKAGES, Engine

WHOLE = {"docker.io": "26.1.5+dfsg1-9", "docker-cli": "26.1.5+dfsg1-9", "containerd": "1.7", "runc": "1.1"}


def engine(
    versions: Mapping[str, str] | None = None,
    release: str = "13",
    source: str = "debian",
    wish: str = "",
    may_move: bool = True,
) -> Engine:
    """Docker with these packages installed."""
    installed = {name: Installed(version) for name, version in (versions or {}).items()}
    return Engine(source, PACKAGES[release][source], installed, wish, may_move)


def test_the_tested_version_is_wanted() -> None:
    found = engine(WHOLE)
    assert (found.wanted, found.present, found.moving, found.major) == ("26.1.5*", True, [], 26)
    assert found.install == ["docker.io=26.1.5*", "docker-cli=26.1.5*", "containerd", "runc"]
    assert found.pins["packages"] == ["docker.io", "docker-cli", "containerd", "runc"]
    assert (found.pins["pinned"], found.pins["version"]) == (["docker.io", "docker-cli"], "26.1.5*")


@pytest.mark.parametrize("gone", list(WHOLE))
def test_docker_is_present_only_with_all_packages(gone: str) -> None:
    assert not engine({name: version for name, version in WHOLE.items() if name != gone}).present


def test_a_package_that_is_half_installed_is_not_present() -> None:
    whole = engine(WHOLE)
    half = {**whole.installed, "runc": Installed("1.1", whole=False)}
    assert not Engine("debian", whole.packages, half).present


def test_the_number_before_the_colon_of_dockers_versions_may_be_left_out() -> None:
    assert engine(source="docker", wish="28.*").wanted == "5:28.*"
    assert engine(source="docker", wish="5:28.*").wanted == "5:28.*"
    assert engine(source="docker", wish="28.*").major == 28


def test_another_version_waits_until_docker_may_restart() -> None:
    moves, waits = (engine({**WHOLE, "docker.io": "20.10.24"}, may_move=may) for may in (True, False))
    assert moves.moving == waits.moving == ["docker.io"]
    assert (moves.postponed, moves.version, moves.gpu_request, moves.restart_reason) == (False, "26.1.5*", "cdi", "")
    assert (waits.postponed, waits.version, waits.gpu_request) == (True, "20.10.24", "runtime")
    assert waits.restart_reason == "docker.io 20.10.24 is installed, 26.1.5* is wanted"


def test_installed_packages_of_the_other_source_are_found() -> None:
    assert engine(WHOLE, source="docker", wish="28.*").foreign == ["docker.io", "containerd"]
    assert engine({"docker-ce": "5:28.0"}).foreign == ["docker-ce"]
    assert engine(WHOLE).foreign == []
    assert set(docker_engine.names("debian", "12")) == {"docker.io", "containerd", "runc", "docker-ce", "containerd.io"}


def test_docker_of_debian_13_gives_gpus_by_cdi_and_docker_of_debian_12_by_a_runtime() -> None:
    assert engine(release="13").keys(cdi=True, gpus=False) == {"features": {"cdi": True}}
    assert engine(release="13").keys(cdi=False, gpus=True) == {}
    assert list(engine(release="12").keys(cdi=True, gpus=True)["runtimes"]) == ["nvidia"]
    assert engine(release="12").keys(cdi=True, gpus=False) == {}


@pytest.mark.parametrize(
    ("release", "wish", "gpus", "config", "not_loaded", "words"),
    [
        ("13", "", True, {"features": {"cdi": True}}, [], ""),
        ("13", "", True, {}, [], "CDI is off in Docker's daemon.json"),
        ("13", "", True, {"features": {"cdi": False}}, [], "CDI is off"),
        ("13", "", True, {"features": {"cdi": True}}, ["features"], "has not loaded features.cdi yet"),
        ("13", "29.1*", True, {}, [], ""),
        ("12", "", True, {}, [], ""),
        ("12", "", False, {}, [], "Docker 20.10.24* has no CDI; version 25 and later have it. Install Debian 13"),
    ],
)
def test_the_reason_why_containers_get_no_gpus_is_named(
    release: str, wish: str, gpus: bool, config: dict[str, Any], not_loaded: list[str], words: str
) -> None:
    found = engine(release=release, wish=wish).cdi_problem(gpus, config, not_loaded)
    assert words in found and bool(found) is bool(words)


def test_the_advice_about_a_postponed_version_is_a_restart_and_not_another_debian() -> None:
    waits = engine({**WHOLE, "docker.io": "20.10.24"}, may_move=False).cdi_problem(False, {}, [])
    assert "docker_restart_allowed=true" in waits and "Install Debian" not in waits


@pytest.mark.parametrize(
    ("text", "goes"),
    [
        ('[nvidia-container-runtime]\nmode = "cdi"\n', True),
        ('[nvidia-container-runtime]\nmode = "auto"\n', False),
        ('mode = "cdi"\n', False),
        ("[nvidia", False),
        (None, False),
    ],
)
def test_the_runtime_uses_the_specification_only_in_mode_cdi(text: str | None, goes: bool) -> None:
    assert docker_engine.runtime_uses_cdi(text) is goes
