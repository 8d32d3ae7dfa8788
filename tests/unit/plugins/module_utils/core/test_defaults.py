# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shared defaults; tests/tools/check_defaults.py compares them with the roles."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.module_utils.core import defaults


def test_every_constant_has_a_variable() -> None:
    constants = {name: value for name, value in vars(defaults).items() if name.isupper() and name != "BY_VARIABLE"}
    assert sorted(map(str, constants.values())) == sorted(map(str, defaults.BY_VARIABLE.values()))


def test_no_two_services_share_a_port() -> None:
    ports = [value for name, value in defaults.BY_VARIABLE.items() if name.endswith("_port")]
    assert len(ports) == len(set(ports)) == 8
    assert all(isinstance(port, int) and 1024 < port < 65536 for port in ports)


def test_paths_are_absolute_and_have_no_slash_at_their_end() -> None:
    paths = [value for value in defaults.BY_VARIABLE.values() if isinstance(value, str) and "/" in value]
    assert len(paths) == 4
    assert all(path.startswith("/") and not path.endswith("/") for path in paths)
