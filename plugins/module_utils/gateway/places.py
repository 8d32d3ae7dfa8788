# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where HAProxy and keepalived lie on a gateway, and what of it is ours. Private to the collection."""

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
"""What the running process has loaded, and the settings behind it: a run that was cut off between writing and reloading
is finished by the next. Role gateway's `refresh` reads it."""

LINKS = (names.CERTIFICATE, f"{names.CERTIFICATE}.key")
"""To the certificate and its key, in the directory."""

SERVER_STATES = (Path(unit.STATE), Path(f"{unit.STATE}.new"))
"""Of every server, and what a reload that was cut off has left of it."""

FLOATING = Path("/etc/keepalived/keepalived.conf")
"""keepalived's configuration; it begins with the same words as HAProxy's."""
