# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Renders the files that configure the rails at boot. Private to the collection; pure.

The name of each file begins with 60-inference-rdma. The MTU of Ethernet is in a .link file, which udev applies
whichever program configures the network device. Such a file matches by the permanent address: a match by name would
also give the MTU to devices of containers.
"""

from __future__ import annotations

import ipaddress
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from ..rdma.managers import IFUPDOWN, NETWORKD, NETWORKMANAGER
from .desired import Rail
from .variables import ETHERNET

PREFIX = "60-inference-rdma"

HEADER = "# Managed by Ansible (baremetal.inference.rdma).\n"

LINKS = "/etc/systemd/network"
INTERFACES = "/etc/network/interfaces.d"
NM_PROFILES = "/etc/NetworkManager/system-connections"
NM_CONF = f"/etc/NetworkManager/conf.d/{PREFIX}.conf"
SYSCTL = f"/etc/sysctl.d/{PREFIX}.conf"

NETWORKD_CONF = f"/etc/systemd/networkd.conf.d/{PREFIX}.conf"

KEPT_PROTOCOL = "kernel"
"""The protocol of routing rules that networkd does not own. Whenever networkd configures a link, it removes all rules
that no .network file has, except those of the kernel. Source: manager_mark_routing_policy_rules of systemd."""

PRIVATE = 0o600
"""The mode of profiles: NetworkManager ignores others."""


@dataclass(frozen=True)
class Place:
    """A rail with the names that it has on this node."""

    rail: Rail
    netdev: str
    mac: str | None


def render(
    places: Sequence[Place],
    manager: str,
    networkmanager_runs: bool,
    networkd_runs: bool = False,
    named: bool = True,
) -> dict[str, str]:
    """The text of each file, by its path. `named`: whether udev gives network devices Debian's names."""
    texts: dict[str, str] = {}
    for place in places:
        if place.rail.layer == ETHERNET and place.mac and place.rail.mtu:
            texts[f"{LINKS}/{link_name(place.netdev)}"] = link(place, named)
        if place.rail.address and manager in RENDERERS:
            path, text = RENDERERS[manager](place)
            texts[path] = text
    lines = [line for place in places for line in _sysctls(place)]
    if lines:
        texts[SYSCTL] = HEADER + "".join(lines)
    macs = [place.mac for place in places if place.mac and place.rail.layer == ETHERNET]
    if networkmanager_runs and macs:
        # With += the devices of an earlier file remain, such as all (*).
        texts[NM_CONF] = (
            f"{HEADER}# Without this, NetworkManager makes a connection with DHCP for a rail that has no profile.\n"
            f"[main]\nno-auto-default+={','.join(macs)}\n"
        )
    if networkd_runs and manager == NETWORKMANAGER and any(place.rail.table is not None for place in places):
        # A profile cannot give its rule a protocol.
        texts[NETWORKD_CONF] = (
            f"{HEADER}# Without this, networkd removes the routing rules that NetworkManager makes for the rails.\n"
            "# networkd reads this file when it starts.\n"
            "[Network]\nManageForeignRoutingPolicyRules=no\n"
        )
    return texts


def mode(path: str) -> int:
    """The mode of a file."""
    return PRIVATE if path.startswith(NM_PROFILES) else 0o644


def link_name(netdev: str) -> str:
    """The name of a .link file."""
    return f"{PREFIX}-{netdev}.link"


def link(place: Place, named: bool = True) -> str:
    """The .link file. It repeats the settings of Debian's 99-default.link, because udev applies only the first
    matching file. Not `named`: the operator has switched that file off."""
    policies = (
        "NamePolicy=keep kernel database onboard slot path\n"
        "AlternativeNamesPolicy=database onboard slot path\n"
        "MACAddressPolicy=persistent\n"
    )
    return (
        f"{HEADER}[Match]\nPermanentMACAddress={place.mac}\n\n"
        "[Link]\n"
        f"{policies if named else ''}"
        f"MTUBytes={place.rail.mtu}\n"
        # Pauses of the whole link would stop all priorities.
        "RxFlowControl=no\nTxFlowControl=no\n"
    )


def networkd(place: Place) -> tuple[str, str]:
    """The .network file of systemd-networkd."""
    rail = place.rail
    match = f"PermanentMACAddress={place.mac}" if place.mac and rail.layer == ETHERNET else f"Name={place.netdev}"
    text = f"{HEADER}[Match]\n{match}\n\n[Link]\nRequiredForOnline=no\n"
    if rail.layer != ETHERNET and rail.mtu:
        text += f"MTUBytes={rail.mtu}\n"
    text += (
        "\n[Network]\nDHCP=no\nIPv6AcceptRA=no\nLinkLocalAddressing=ipv6\n"
        # A rail without a cable also has its address, so that its GID exists when the cable is back.
        "ConfigureWithoutCarrier=yes\n"
    )
    if rail.ipoib_mode:
        text += f"\n[IPoIB]\nMode={rail.ipoib_mode}\n"
    text += f"\n[Address]\nAddress={rail.address}\n"
    if rail.table is not None:
        text += (
            f"\n[RoutingPolicyRule]\nFrom={_ip(rail)}\nTable={rail.table}\nPriority={rail.table}\n"
            f"\n[Route]\nDestination={rail.network}\nScope=link\nPreferredSource={_ip(rail)}\nTable={rail.table}\n"
        )
    return f"{LINKS}/{PREFIX}-{place.netdev}.network", text


def ifupdown(place: Place) -> tuple[str, str]:
    """The stanza of ifupdown. `auto` is for the boot, `allow-hotplug` for a device that is added later."""
    rail, name = place.rail, place.netdev
    text = f"{HEADER}auto {name}\nallow-hotplug {name}\niface {name} inet static\n    address {rail.address}\n"
    if rail.ipoib_mode:
        text += f"    pre-up echo {rail.ipoib_mode} > /sys/class/net/{name}/mode\n"
    if rail.layer != ETHERNET and rail.mtu:
        text += f"    mtu {rail.mtu}\n"
    if rail.table is not None:
        rule = f"from {_ip(rail)} table {rail.table} priority {rail.table} protocol {KEPT_PROTOCOL}"
        text += (
            f"    post-up ip -4 rule del {rule} 2>/dev/null || true\n"
            f"    post-up ip -4 rule add {rule}\n"
            f"    post-up ip -4 route replace {rail.network} dev {name} src {_ip(rail)} table {rail.table}\n"
            f"    pre-down ip -4 rule del {rule} || true\n"
        )
    return f"{INTERFACES}/{PREFIX}-{name}", text


def networkmanager(place: Place) -> tuple[str, str]:
    """The profile of NetworkManager."""
    rail = place.rail
    kind = "ethernet" if rail.layer == ETHERNET else "infiniband"
    name = f"{PREFIX}-{place.netdev}"
    text = (
        f"{HEADER}[connection]\nid={name}\nuuid={uuid.uuid5(uuid.NAMESPACE_OID, name + rail.key)}\ntype={kind}\n"
        f"interface-name={place.netdev}\nautoconnect=true\n\n[{kind}]\n"
    )
    if kind == "infiniband":
        text += f"transport-mode={rail.ipoib_mode or 'datagram'}\n" + (f"mtu={rail.mtu}\n" if rail.mtu else "")
    text += f"\n[ipv4]\nmethod=manual\naddress1={rail.address}\nnever-default=true\nmay-fail=false\n"
    if rail.table is not None:
        text += (
            f"route1={rail.network}\nroute1_options=src={_ip(rail)},table={rail.table}\n"
            f"routing-rule1=priority {rail.table} from {_ip(rail)} table {rail.table}\n"
        )
    return f"{NM_PROFILES}/{name}.nmconnection", text + "\n[ipv6]\nmethod=link-local\n"


RENDERERS = {NETWORKD: networkd, IFUPDOWN: ifupdown, NETWORKMANAGER: networkmanager}


def _sysctls(place: Place) -> list[str]:
    """Lines for sysctl.d. udev applies them whenever the network device is added."""
    # A dot in a name would separate parts of the key; with slashes as separators, it does not.
    return [
        f"net/ipv4/conf/{place.netdev}/{key} = {value}\n" for key, value in sorted((place.rail.sysctls or {}).items())
    ]


def _ip(rail: Rail) -> str:
    return str(ipaddress.IPv4Interface(rail.address or "").ip)
