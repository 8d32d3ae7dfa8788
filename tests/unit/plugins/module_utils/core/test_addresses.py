# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The addresses of inventory hosts."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import addresses

DNS = {"gw3": ["192.0.2.3", "2001:db8::3"], "name.example": ["192.0.2.5"], "lo": ["127.0.1.1"]}


def resolver(name: str) -> list[str]:
    return DNS.get(name, [])


def test_inference_address_precedes_the_other_variables() -> None:
    hostvars = {
        "gw1": {"inference_address": "192.0.2.1", "ansible_host": "198.51.100.1"},
        "gw2": {"ansible_host": "2001:db8::2"},
        "gw3": {},
        # inference_address can be a name.
        "gw4": {"inference_address": "name.example", "ansible_host": "198.51.100.4"},
        # The gateway is also the controller: no other host reaches its loopback address.
        "gw5": {"inference_address": "192.0.2.1", "ansible_host": "127.0.0.1"},
    }
    found = addresses.host_addresses(hostvars, hostvars, resolver)
    assert found == ["192.0.2.1", "2001:db8::2", "192.0.2.3", "2001:db8::3", "192.0.2.5"]


def test_every_host_without_an_address_is_named() -> None:
    hostvars = {"lo": {"ansible_host": "127.0.0.1"}, "gone": {}, "gw": {"ansible_host": "192.0.2.1"}}
    with pytest.raises(addresses.AddressError, match="no address for lo, gone: set inference_address"):
        addresses.host_addresses(hostvars, hostvars, resolver)


def test_hosts_without_an_address_may_be_left_out() -> None:
    hostvars = {"a": {"ansible_host": "192.0.2.7"}, "b": {"inference_address": "127.0.0.1"}}
    assert addresses.host_addresses(["a", "b"], hostvars, lambda _name: [], required=False) == ["192.0.2.7"]


def test_only_addresses_of_this_machine_are_own() -> None:
    assert addresses.is_own("127.0.0.1") and addresses.is_own("0.0.0.0") and addresses.is_own("::1")
    # RFC 5737: an address for documentation.
    assert not addresses.is_own("192.0.2.1") and not addresses.is_own("") and not addresses.is_own("name")
    assert (
        addresses.refusal("127.0.0.1") is None and addresses.refusal("192.0.2.1") == "Cannot assign requested address"
    )
