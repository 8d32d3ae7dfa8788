# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Paths on machines: a later version finds what an earlier one has written there."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.module_utils.gateway import places


def test_a_gateways_files_stay_where_they_are() -> None:
    assert [str(places.DIRECTORY / name) for name in places.LINKS] == [
        "/etc/haproxy/tls.pem",
        "/etc/haproxy/tls.pem.key",
    ]
    assert str(places.DROP_IN) == "/etc/systemd/system/haproxy.service.d/inference.conf"
    assert str(places.STATE) == "/var/lib/inference/gateway.json"
    assert [str(path) for path in places.SERVER_STATES] == ["/var/lib/haproxy/state", "/var/lib/haproxy/state.new"]
    assert str(places.FLOATING) == "/etc/keepalived/keepalived.conf"
