# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of sockets and backends, and the name by which agents know a gateway."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.baremetal.inference.plugins.module_utils.gateway import names


def test_sockets_lie_where_the_package_makes_a_directory_for_them() -> None:
    assert {Path(path).parent for path in (names.CONTROL_SOCKET, names.LOCAL_SOCKET)} == {Path(names.RUN)}


def test_names_of_sets_and_models_differ_by_their_prefix() -> None:
    assert not names.SET.startswith(names.MODEL) and not names.MODEL.startswith(names.SET)


def test_the_name_by_which_agents_know_a_gateway_is_one_word() -> None:
    assert names.asking_name("gw1.example.com") == "gw1.example.com"
    assert names.asking_name('gate way"\n') == "gate_way__"
