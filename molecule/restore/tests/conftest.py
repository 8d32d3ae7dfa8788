# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of this scenario's tests: an S3 server on the controller, and the fleet."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(os.environ["MOLECULE_PROJECT_DIRECTORY"])
sys.path[:0] = [str(PROJECT / "molecule/shared"), str(PROJECT / "tests/tools")]

import s3_server
from fleet import Fleet
from node import Node


class Addressed(Node):
    """A node whose engines listen at its own address alone."""

    @property
    def engine_host(self) -> str:
        return self.address


@pytest.fixture(scope="session")
def deb12() -> Node:
    return Addressed("deb12")


@pytest.fixture(scope="session")
def deb13() -> Node:
    return Addressed("deb13")


@pytest.fixture(scope="session")
def fleet(deb12: Node, deb13: Node) -> Fleet:
    return Fleet(gateway=deb13, nodes=(deb12, deb13), key="restore-load-key-27aa")


@pytest.fixture(scope="session")
def repository(deb12: Node) -> Iterator[dict[str, Any]]:
    """The variables of the role backup for the S3 server."""
    with s3_server.serve(deb12.run("ip route | awk '/^default/ {print $3}'"), "fleet") as address:
        yield {
            "backup_repository": f"s3:{address}/fleet",
            "backup_password": "restore-password-90cf41",
            "backup_environment": {"AWS_ACCESS_KEY_ID": "node", "AWS_SECRET_ACCESS_KEY": "restore-credential-77e0"},
            "backup_delay_minutes": 0,
        }
