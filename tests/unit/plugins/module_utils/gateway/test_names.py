# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names that other parts put together."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.baremetal.inference.plugins.module_utils.gateway import names


def test_sockets_lie_where_the_package_makes_a_directory_for_them() -> None:
    assert {Path(path).parent for path in (names.CONTROL_SOCKET, names.LOCAL_SOCKET)} == {Path(names.RUN)}


def test_no_instance_is_taken_for_a_backend_of_a_model() -> None:
    assert not names.SET.startswith(names.MODEL) and not names.MODEL.startswith(names.SET)


def test_an_agent_is_told_a_gateway_in_one_word() -> None:
    assert names.asking_name("gw1.example.com") == "gw1.example.com"
    assert names.asking_name('gate way"\n') == "gate_way__"
