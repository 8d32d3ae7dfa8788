# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The site's variables become the roles': what the operator hears where one of them cannot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

HOSTS = """
[inference]
a inference_address=192.0.2.1
[gateway]
gw.invalid
"""


def test_a_gateway_without_an_address_is_named(staged: Callable[[Sequence[str]], Any]) -> None:
    """The first that asks for its address is the firewall."""
    play = {
        "hosts": "a",
        "vars_files": ["vars/roles.yml"],
        "vars": {"instances": [], "models": {}},
        "tasks": [{"ansible.builtin.debug": {"msg": "{{ common_firewall_allow }}"}}],
    }
    succeeded, output = staged([]).run([play], HOSTS)
    assert not succeeded and "no address for gw.invalid: set inference_address or ansible_host" in output, output
