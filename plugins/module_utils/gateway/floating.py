# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The floating address, which one gateway at a time holds by keepalived. Private to the collection; pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Any

from ..core.problems import Problem, is_integer
from .names import CONTROL_SOCKET, HEADER, PREFIX

PREFIX_LENGTH = re.compile(r"/[0-9]+$")

NUMBERS: Mapping[str, tuple[int, int]] = {"priority": (1, 254), "router_id": (1, 255)}
"""The least and the greatest value of each number."""

FOUND = re.compile(r"virtual_ipaddress \{\s*(\S+)")


def problems(given: Mapping[str, Any]) -> list[Problem]:
    """Every mistake in the role's variables `gateway_floating_…`; empty if there is no floating address."""
    found: list[Problem] = []

    def refuse(name: str, message: str) -> None:
        found.append(Problem("role gateway", message, f"{PREFIX}floating_{name}", given[name]))

    if not given["address"]:
        return found
    if not _has_prefix(given["address"]):
        refuse("address", "must be an address with its prefix, such as 192.0.2.10/24")
    if not given["interface"]:
        refuse("interface", "must name the interface that gets the address")
    if not given["peers"]:
        refuse("peers", "is empty: name at least one other gateway, or leave gateway_floating_address empty")
    if given["source"] in given["peers"]:
        refuse("source", "is also in gateway_floating_peers: set it to this gateway's own address")
    for name, (least, most) in NUMBERS.items():
        if not is_integer(given[name]) or not least <= given[name] <= most:
            refuse(name, f"must be a whole number from {least} to {most}")
    return found


def _has_prefix(text: str) -> bool:
    """Whether a text is an IPv4 or IPv6 address with its prefix."""
    try:
        ipaddress.ip_interface(text)
    except ValueError:
        return False
    # The standard library also takes an address alone, and a netmask.
    return PREFIX_LENGTH.search(text) is not None


def render(given: Mapping[str, Any]) -> str:
    """The text of keepalived.conf; empty if there is no floating address."""
    if not given["address"]:
        return ""
    source = f"    unicast_src_ip {given['source']}\n" if given["source"] else ""
    # Sorted, since Ansible's filters on sets change the order from run to run, and keepalived would reload each time.
    peers = "".join(f"        {peer}\n" for peer in sorted(given["peers"]))
    return f"""\
{HEADER}
global_defs {{
    enable_script_security
}}

# The address leaves a gateway whose HAProxy is gone or hangs: such a HAProxy accepts connections but does not answer.
vrrp_script haproxy {{
    # Not /bin/sh: /bin is a link, and keepalived 2.3 refuses a path with a link as insecure.
    script "/usr/bin/sh -c 'echo show info | socat -t 1 - UNIX-CONNECT:{CONTROL_SOCKET} | grep -q ^Pid:'"
    user root
    interval 1
    timeout 2
    fall 2
    rise 2
}}

vrrp_instance gateway {{
    # No gateway has priority over the holder: an address that moves back would cut the connections again.
    state BACKUP
    nopreempt
    interface {given["interface"]}
    virtual_router_id {given["router_id"]}
    priority {given["priority"]}
    advert_int 1
{source}    unicast_peer {{
{peers}    }}
    virtual_ipaddress {{
        {given["address"]}
    }}
    track_script {{
        haproxy
    }}
}}
"""


def address_in(text: str) -> str:
    """The floating address in our keepalived.conf; empty for any other text."""
    found = FOUND.search(text)
    return found[1] if found and text.startswith(HEADER) else ""
