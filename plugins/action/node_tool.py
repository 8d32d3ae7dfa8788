# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's part of the module node_tool."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.modules.node_tool import SPECIFICATION
from ansible_collections.baremetal.inference.plugins.plugin_utils.node_call import NodeCall


class ActionModule(NodeCall):
    """Lets the node install the library.

    If the controller is itself a node, it gets the library in the same way as other nodes.
    """

    _specification = SPECIFICATION
    _runs_collection = False
