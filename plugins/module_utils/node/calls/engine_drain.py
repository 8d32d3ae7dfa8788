# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The implementation of the module engine_drain."""

from __future__ import annotations

from datetime import UTC, datetime

from ...core.call import Call
from ...core.paths import Paths
from ...engine.state import drains


def run(module: Call) -> None:
    """Answer a call."""
    paths, given = Paths(), module.params
    name, owner, now = given["name"], given["owner"], datetime.now(UTC)
    try:
        present = drains.read(paths, name, now)
        own = present is not None and present.owner == owner
        other_reason = own and present is not None and present.reason != given["reason"]
        changed = own if given["state"] == "undrained" else present is None or other_reason
        if changed and given["state"] == "undrained":
            present = None if module.check_mode else drains.undrain(paths, name, owner, now).drain
        elif changed:
            wanted = drains.Drain(owner, given["reason"], drains.format_time(now))
            present = wanted if module.check_mode else drains.drain(paths, [name], wanted)[0].drain
    except (drains.Held, OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=changed, drained_by=present.owner if present else "")
