# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of HAProxy's files and sockets. Private to the collection.

This file imports almost nothing, since Ansible sends a module with everything that the module imports.
"""

from __future__ import annotations

import re

HEADER = "# Managed by Ansible, role baremetal.inference.gateway: changes made here are lost."

PREFIX = "gateway_"
"""The prefix of the role's variables, which the settings do not have."""

DIRECTORY = "/etc/haproxy"
CONFIG = "haproxy.cfg"
"""The configuration that HAProxy loads. The files that it names lie in the same directory."""

RUN = "/run/haproxy"
"""The directory for sockets, which Debian's package creates."""

CONTROL_SOCKET = f"{RUN}/admin.sock"
"""The socket for commands to the running process. Only root may use it."""

LOCAL_SOCKET = f"{RUN}/api.sock"
"""The API for root on the gateway itself. It checks no keys, limits or client addresses."""

PEERS_SOCKET = "gateway-peers"
"""Socket by which an old process passes its counts to the new one.
It is abstract, since the old process is in a chroot."""

LOCAL_PATH = "/v1/completions"
"""A path that always passes on the local socket: the gateway uses it to request a token from every replica set."""

SETS_PATH = "/sets/"
"""Path on the metrics port. With the name of a replica set after it, it shows what the gateway sends to the set's
engines."""

DEATHS_PATH = "/deaths"
"""Path on the metrics port. Nodes report deaths of engines there, and read which requests were in flight."""

DEATHS_LUA = "deaths.lua"
"""The program that remembers requests, and answers at DEATHS_PATH."""

STATE_DIRECTORY = "/var/lib/haproxy"
STATE_FILE = "state"
"""The file that keeps the states of servers over a reload."""

STATES_AWK = "states.awk"
"""The program that removes states which a new configuration has made wrong."""

CERTIFICATE = "tls.pem"
"""A link to the certificate. The link to its key has the suffix .key, where HAProxy looks for it."""

KEYS_MAP = "keys.map"
"""Maps the SHA-256 of a key to the client's name."""

MARKS_MAP = "marks.map"
"""Maps the path of a replica set to the mark of the key that its engines get, if they get one. A mark is no key."""

WRONG_TASKS_MAP = "wrong_tasks.map"
"""Maps BACKEND|PATH to the tasks of the backend's engines and their paths, if no engine has the path."""

SEVERAL_MAP = "several.map"
"""Has the backends whose engines serve several models: a model with its LoRA adapters."""

TOO_LARGE, AUDIO_TOO_LARGE = "too-large.json", "audio-too-large.json"
"""The answers to bodies above gateway_body_mib and gateway_audio_mib."""

SET, MODEL = "set_", "model_"
"""Prefixes of backend names."""

KEEP_ALIVE_SECONDS = 10
"""How long an old process keeps idle connections after a reload. Meanwhile it routes by its old states."""

WEIGHT = 100
"""The weight of every engine. After an engine has come back, HAProxy raises its weight slowly (slowstart)."""


def asking_name(gateway: str) -> str:
    """The name by which nodes' agents know a gateway: its name in the inventory, as one word."""
    return re.sub(r"[^A-Za-z0-9._:-]", "_", gateway)
