# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of HAProxy's files and sockets. Private to the collection.

They stand apart from what uses them: Ansible sends a module with everything that its imports import.
"""

from __future__ import annotations

import re

HEADER = "# Managed by Ansible, role baremetal.inference.gateway: changes made here are lost."

DIRECTORY = "/etc/haproxy"
CONFIG = "haproxy.cfg"
"""What HAProxy loads; all that it names lies beside it."""

RUN = "/run/haproxy"
"""The directory that Debian's package makes for sockets."""

CONTROL_SOCKET = f"{RUN}/admin.sock"
"""Where the running process takes commands, of root alone."""

LOCAL_SOCKET = f"{RUN}/api.sock"
"""The API for root on the gateway itself: without key, limits and clients."""

PEERS_SOCKET = "gateway-peers"
"""Where a process that ends hands its counts to the next: an abstract address, for it is in its chroot by then."""

LOCAL_PATH = "/v1/completions"
"""What passes by that socket in any case: the gateway asks every replica set like this whether it answers."""

SETS_PATH = "/sets/"
"""Behind it, the name of a replica set: what the gateway sends to its engines, on the port of the metrics."""

STATE_DIRECTORY = "/var/lib/haproxy"
STATE_FILE = "state"
"""Where the states of servers outlive a reload."""

STATES_AWK = "states.awk"
"""What drops those that a new configuration has made wrong."""

CERTIFICATE = "tls.pem"
"""A link to the certificate; one to its key has .key behind it, where HAProxy looks for it."""

KEYS_MAP = "keys.map"
"""Who is behind a key's checksum."""

MARKS_MAP = "marks.map"
"""Which key the engines of each replica set are sent: its mark, which tells keys apart and is none."""

SET, MODEL = "set_", "model_"
"""What a backend's name begins with. No instance has an underscore in its name, so that no two are alike."""

KEEP_ALIVE_SECONDS = 10
"""An old process lives on for idle clients this long after a reload, and routes by the states that it knew."""

WEIGHT = 100
"""Of every engine; while one starts slowly, it has less."""


def asking_name(gateway: str) -> str:
    """The name of a gateway of the inventory by which nodes' agents know it: one word on a line."""
    return re.sub(r"[^A-Za-z0-9._:-]", "_", gateway)
