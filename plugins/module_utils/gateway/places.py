# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Paths and units of HAProxy and keepalived on a gateway. Private to the collection."""

from __future__ import annotations

from pathlib import Path

from ..core.paths import Paths
from . import names, unit

HAPROXY = "haproxy.service"
KEEPALIVED = "keepalived.service"

DIRECTORY = Path(names.DIRECTORY)

UNITS = Path("/etc/systemd/system")

DROP_IN = UNITS / f"{HAPROXY}.d" / "inference.conf"

STATE = Paths().gateway
"""The record of what the running process has loaded, and with which settings. With it, the next
run does the reload that an interrupted run has not done."""

LINKS = (names.CERTIFICATE, f"{names.CERTIFICATE}.key")
"""Links to the certificate and its key, in HAProxy's directory."""

SERVER_STATES = (Path(unit.STATE), Path(f"{unit.STATE}.new"))
"""The file with the states of all servers, and the new file that a cut-off reload may leave."""

FLOATING = Path("/etc/keepalived/keepalived.conf")
"""keepalived's configuration. Ours begins with the same header as HAProxy's."""

TLS = Paths().state / "gateway-tls"
"""The site's own CA, the certificates that it made, and the settings of their command; mode 0700."""

TLS_SETTINGS = TLS / "settings.json"
"""Which certificate the gateway serves, for the command that renews it."""

CLIENTS_ROOT = DIRECTORY / "site-ca.pem"
"""The certificate that clients trust, if the site's own CA signs. Everybody may read this file."""

CERTIFICATE_COMMAND = Path("/usr/local/sbin/inference-gateway-certificate")
CERTIFICATE_LIBRARY = Path("/usr/local/lib/inference_gateway")

CERTIFICATE_UNIT = "inference-gateway-certificate.service"
CERTIFICATE_TIMER = "inference-gateway-certificate.timer"
