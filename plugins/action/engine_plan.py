# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's part of the module engine_plan."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.modules.engine_plan import SPECIFICATION
from ansible_collections.baremetal.inference.plugins.plugin_utils.node_call import NodeCall


class ActionModule(NodeCall):
    """Lets the node run the module's implementation.

    On a controller that is itself a node, too, the implementation runs from the node's library or from the archive that
    is sent, and not from the collection's directory. The module compares the installed library with the library that
    runs: the collection's directory has more files, and would always differ.
    """

    _specification = SPECIFICATION
    _runs_collection = False
