# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The addresses at which a node reaches the gateways."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.gateway.endpoints import (
    EndpointError,
    GatewayEndpoint,
    endpoints,
    is_loopback,
)

DNS = {"named": ["192.0.2.9"]}


def found(own: str = "gpu1", **gateways: dict[str, Any]) -> list[GatewayEndpoint]:
    return endpoints(gateways, gateways, own, lambda name: DNS.get(name, []))


@pytest.mark.parametrize(
    ("variables", "address"),
    [
        ({"ansible_host": "192.0.2.21"}, "192.0.2.21"),
        ({"ansible_host": "192.0.2.21", "inference_address": "198.51.100.21"}, "198.51.100.21"),
        ({"ansible_host": "192.0.2.21", "gateway_bind_address": "0.0.0.0"}, "192.0.2.21"),
        ({"ansible_host": "2001:db8::21", "gateway_bind_address": "::"}, "2001:db8::21"),
        # A gateway that listens at one address answers at no other address.
        ({"ansible_host": "192.0.2.21", "gateway_bind_address": "198.51.100.1"}, "198.51.100.1"),
        ({"ansible_host": "named"}, "192.0.2.9"),
    ],
)
def test_a_gateway_is_reached_where_it_listens(variables: dict[str, Any], address: str) -> None:
    assert found(gw1=variables) == [GatewayEndpoint("gw1", address, 8404)]


@pytest.mark.parametrize(
    ("listens", "address"),
    [
        (None, "127.0.0.1"),
        ("0.0.0.0", "127.0.0.1"),
        ("::", "127.0.0.1"),
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "::1"),
        ("198.51.100.1", "198.51.100.1"),
    ],
)
def test_a_node_that_is_a_gateway_reaches_itself(listens: str | None, address: str) -> None:
    """Such a gateway needs no address that other machines reach."""
    variables = {} if listens is None else {"gateway_bind_address": listens}
    assert found("gw1", gw1=variables) == [GatewayEndpoint("gw1", address, 8404)]


def test_the_port_is_the_gateways_metrics_port() -> None:
    given = {"ansible_host": "192.0.2.21"}
    ports = [gateway.port for gateway in found(a={**given, "gateway_metrics_port": 8405}, b={**given})]
    assert ports == [8405, 8404]
    assert found(a={**given, "gateway_metrics_port": "8405"})[0].port == 8405


def test_the_name_is_one_word_as_the_agent_has_it() -> None:
    assert endpoints(["gate way"], {"gate way": {"ansible_host": "192.0.2.21"}}, "gpu1")[0].name == "gate_way"


def test_an_inventory_without_gateways_has_no_endpoints() -> None:
    assert found() == []


def test_every_gateway_that_cannot_be_reached_is_named() -> None:
    with pytest.raises(EndpointError) as caught:
        found(
            deaf={"ansible_host": "192.0.2.21", "gateway_bind_address": "127.0.0.1"},
            fine={"ansible_host": "192.0.2.22"},
            nowhere={},
            odd={"ansible_host": "192.0.2.23", "gateway_metrics_port": 70000},
        )
    text = str(caught.value)
    assert "deaf: gateway_bind_address is 127.0.0.1, which no other machine reaches: set it to 0.0.0.0" in text
    assert "no address for nowhere" in text and "fine" not in text
    assert "odd: gateway_metrics_port is '70000': it must be a number from 1 to 65535" in text


def test_only_loopback_addresses_are_found() -> None:
    addresses = ["127.0.0.1", "127.0.0.9", "::1", "0.0.0.0", "::", "192.0.2.1", "no address", ""]
    assert [address for address in addresses if is_loopback(address)] == ["127.0.0.1", "127.0.0.9", "::1"]
