# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What earlier runs have made of a machine, and the inventory may not name any more. Private to the collection.

Configurations that others wrote do not count.
"""

from __future__ import annotations

import os
from typing import Any

from ..debian.service_files import left
from ..gateway import removal as gateway
from ..monitoring import removal as monitoring


def gather() -> dict[str, Any]:
    """What is left of a gateway, of a monitoring host and of log shipping. Raises SystemdError, OSError, ValueError."""
    there = {"gateway": left(gateway.everything()), "monitoring": left(monitoring.everything())}
    found: dict[str, Any] = {
        name: {"services": list(each.services), "files": each.paths} for name, each in there.items()
    }
    found["gateway"]["floating_address"] = gateway.floating_address()
    # A link counts although its target is gone: a removal that was cut off has left it.
    found["logs"] = {"files": [str(path) for path in monitoring.shipping() if os.path.lexists(path)]}
    return {"left": [name for name, each in found.items() if each["files"]], **found}
