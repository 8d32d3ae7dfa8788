# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds gateway, monitoring and log shipping on a host, without regard to its groups. Private to the collection.

Ignores configurations that this collection did not write.
"""

from __future__ import annotations

import os
from typing import Any

from ..debian.service_files import left
from ..gateway import removal as gateway
from ..monitoring import removal as monitoring


def gather() -> dict[str, Any]:
    """Remains of a gateway, a monitoring host and log shipping. Raises SystemdError, OSError, ValueError."""
    there = {"gateway": left(gateway.everything()), "monitoring": left(monitoring.everything())}
    found: dict[str, Any] = {
        name: {"services": list(each.services), "files": each.paths} for name, each in there.items()
    }
    found["gateway"]["floating_address"] = gateway.floating_address()
    found["gateway"]["serves"] = gateway.serves()
    found["gateway"]["authority"] = gateway.authority()
    # A link without a target counts, too: a removal that was cut off has left it.
    found["logs"] = {"files": [str(path) for path in monitoring.shipping() if os.path.lexists(path)]}
    return {"left": [name for name, each in found.items() if each["files"]], **found}
