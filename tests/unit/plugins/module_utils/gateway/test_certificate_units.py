# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The units that renew the certificate."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.module_utils.gateway import certificate_units

RIGHTS = """\
UMask=0077
NoNewPrivileges=yes
ProtectSystem=strict
ReadWritePaths=/var/lib/inference/gateway-tls -/var/lib/prometheus/node-exporter
ProtectHome=read-only
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
RestrictAddressFamilies=AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
LockPersonality=yes
"""
"""All restrictions of the service, in the order of the file."""


def test_the_service_may_write_only_keys_and_metrics() -> None:
    texts = certificate_units.render()
    service, timer = (texts[f"inference-gateway-certificate.{kind}"] for kind in ("service", "timer"))
    assert "ExecStart=/usr/local/sbin/inference-gateway-certificate update\n" in service
    assert service.endswith(RIGHTS)
    # With a wrong clock, a new certificate would have wrong dates.
    assert "\nAfter=haproxy.service time-sync.target\n" in service
    assert "OnCalendar=hourly" in timer and "Persistent=yes" in timer
