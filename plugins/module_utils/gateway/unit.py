# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drop-in for Debian's haproxy.service. Private to the collection."""

from __future__ import annotations

from .names import CONFIG, CONTROL_SOCKET, DIRECTORY, STATE_DIRECTORY, STATE_FILE, STATES_AWK

STATE = f"{STATE_DIRECTORY}/{STATE_FILE}"

# socat ends when HAProxy has answered. If there is no answer, the old file stays.
SAVE = (
    f"/bin/sh -c 'echo show servers state | socat -t 5 - UNIX-CONNECT:{CONTROL_SOCKET} > {STATE}.new"
    f" && test -s {STATE}.new && mv {STATE}.new {STATE}'"
)

# awk reads the configuration that HAProxy is about to load: the states may come from an earlier one.
FIT = (
    f"/bin/sh -c 'awk -f {DIRECTORY}/{STATES_AWK} {DIRECTORY}/{CONFIG} {STATE} > {STATE}.new"
    f" && test -s {STATE}.new && mv {STATE}.new {STATE}'"
)


def drop_in(memory_max: str) -> str:
    """The text of a drop-in for haproxy.service.

    Without the saved states, a drained or failed server would be up in the process that a reload starts. So states are
    saved before a reload and before a stop. The first line of a state file is its version (management guide, "show
    servers state"). A server with a new port starts without its state: the old state would keep the old port.
    """
    return f"""\
# Managed by Ansible, role baremetal.inference.gateway: changes made here are lost.
[Service]
MemoryMax={memory_max}
ExecStartPre=/bin/sh -c 'test -s {STATE} || echo 1 > {STATE}'
ExecStartPre=-{FIT}
ExecReload=
ExecReload=/usr/sbin/haproxy -Ws -f $CONFIG -c -q $EXTRAOPTS
ExecReload=-{SAVE}
ExecReload=-{FIT}
ExecReload=/bin/kill -USR2 $MAINPID
ExecStop=-{SAVE}
"""
