# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether nodes can start gangs. Private to the collection."""

from __future__ import annotations

CHANNEL_WIRED = False
"""Whether the units of engines use the channel between the supervisors of a gang. Without the channel, no member
notices the end of another member, so a run refuses to start a gang."""

REFUSAL = (
    "spans several nodes. This version checks and plans such an instance, but does not start it yet: remove the "
    "instance, or set state: absent"
)
