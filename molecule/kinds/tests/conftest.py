# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of this scenario's tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from openai import OpenAI

sys.path.insert(0, str(Path(os.environ["MOLECULE_PROJECT_DIRECTORY"]) / "molecule/shared"))

from fixtures import deb13
from node import PROJECT, Node

__all__ = ["deb13"]


@pytest.fixture
def models() -> dict[str, Any]:
    """The model registry of this scenario."""
    hosts = yaml.safe_load((PROJECT / "molecule/kinds/hosts.yml").read_text())
    return dict(hosts["inference"]["hosts"]["deb13"]["models"])


@pytest.fixture(scope="session")
def client_of(deb13: Node) -> Callable[[str], OpenAI]:
    """A function that takes a key, and returns the API's official client, which repeats no request."""
    return lambda key: OpenAI(base_url=f"http://{deb13.address}:8000/v1", api_key=key, max_retries=0, timeout=60)


@pytest.fixture(scope="session")
def client(client_of: Callable[[str], OpenAI]) -> OpenAI:
    return client_of("kinds-client-key-71c2")
