# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's part of the module model."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.modules.model import SPECIFICATION
from ansible_collections.baremetal.inference.plugins.plugin_utils.node_call import NodeCall


class ActionModule(NodeCall):
    """Lets the node run the module's implementation. A controller that is itself the target describes models here."""

    _specification = SPECIFICATION

    def _is_own_question(self) -> bool:
        return bool(self._task.args.get("state") == "described")
