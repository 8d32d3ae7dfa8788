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
        "roles": ["site_variables"],
        "vars": {"instances": [], "models": {}},
        "tasks": [{"ansible.builtin.debug": {"msg": "{{ common_firewall_allow }}"}}],
    }
    succeeded, output = staged([]).run([play], HOSTS)
    assert not succeeded and "no address for gw.invalid: set inference_address or ansible_host" in output, output


def test_the_site_wins_over_the_inventory_and_a_task_over_the_site(staged: Callable[[Sequence[str]], Any]) -> None:
    """As what is removed is no engine any more: decommission.yml says so where it includes a role."""
    message = "'{{ vllm_user }} of {{ __staying | length }} and {{ monitored }}'"
    play = {
        "hosts": "a",
        "roles": ["site_variables"],
        "vars": {"instances": [{"name": "main"}], "inference_user": "serve"},
        "tasks": [
            {"ansible.builtin.debug": {"msg": message}},
            {"ansible.builtin.debug": {"msg": message}, "vars": {"__leaving": {"a": ["main"]}, "vllm_user": "task"}},
        ],
    }
    succeeded, output = staged([]).run([play], "[inference]\na vllm_user=inventory monitored=perhaps")
    assert succeeded, output
    assert "serve of 1 and False" in output and "task of 0 and False" in output, output
