# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The floating address: its input, and keepalived's configuration."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.gateway.floating import address_in, problems, render

GIVEN: dict[str, Any] = {
    "address": "192.0.2.10/24",
    "interface": "eno1",
    "source": "192.0.2.8",
    "peers": ["192.0.2.9", "192.0.2.7"],
    "priority": 100,
    "router_id": 51,
}


def test_without_an_address_there_is_no_configuration() -> None:
    nothing = {**GIVEN, "address": "", "interface": "", "peers": []}
    assert problems(nothing) == [] and render(nothing) == ""


@pytest.mark.parametrize(
    ("changes", "name", "words"),
    [
        *(
            ({"address": address}, "gateway_floating_address", "with its prefix")
            for address in ("192.0.2.10", "999.1.1.1/99", "192.0.2.10/33", "192.0.2.10/255.255.255.0", "2001:db8::g/64")
        ),
        ({"interface": ""}, "gateway_floating_interface", "must name the interface"),
        ({"peers": []}, "gateway_floating_peers", "name at least one other gateway"),
        ({"source": "192.0.2.9"}, "gateway_floating_source", "this gateway's own address"),
        ({"priority": 0}, "gateway_floating_priority", "from 1 to 254"),
        ({"priority": 255}, "gateway_floating_priority", "from 1 to 254"),
        ({"router_id": 256}, "gateway_floating_router_id", "from 1 to 255"),
        ({"router_id": "51"}, "gateway_floating_router_id", "a whole number"),
    ],
)
def test_a_mistake_is_named_with_what_is_allowed(changes: dict[str, Any], name: str, words: str) -> None:
    (problem,) = problems({**GIVEN, **changes})
    assert name in str(problem) and words in str(problem)


def test_all_mistakes_are_found_at_once() -> None:
    assert problems(GIVEN) == [] and problems({**GIVEN, "address": "2001:db8::10/64"}) == []
    assert len(problems({**GIVEN, "address": "x", "interface": "", "peers": [], "priority": 0, "router_id": 0})) == 5


def test_the_order_of_gateways_makes_no_difference() -> None:
    assert render(GIVEN) == render({**GIVEN, "peers": ["192.0.2.7", "192.0.2.9"]})
    assert "unicast_src_ip" not in render({**GIVEN, "source": ""})


def test_the_address_is_found_only_in_a_file_of_the_role() -> None:
    assert address_in(render(GIVEN)) == "192.0.2.10/24"
    assert address_in(render(GIVEN).replace("Ansible", "hand")) == address_in("") == ""
