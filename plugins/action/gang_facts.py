# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's part of the module gang_facts."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.modules.gang_facts import SPECIFICATION
from ansible_collections.baremetal.inference.plugins.plugin_utils.node_call import NodeCall


class ActionModule(NodeCall):
    """Lets the node run the module's implementation."""

    _specification = SPECIFICATION
