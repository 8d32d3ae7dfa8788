# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action plugin of modules whose implementation is in the library of the node. Private to the collection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible import constants
from ansible.plugins.action import ActionBase

from ansible_collections.baremetal.inference.plugins.module_utils.core.node_call import MISSING
from ansible_collections.baremetal.inference.plugins.module_utils.fleet import node_library


class NodeCall(ActionBase):
    """Says which library the module must run, and sends the library to a node that does not have the library."""

    _requires_connection = True
    _supports_async = True

    _runs_collection = True
    """Whether the controller itself may run the module's implementation from the collection's own directory."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        library = node_library.of_run(Path(constants.DEFAULT_LOCAL_TMP))
        background = bool(self._task.async_val) and not self._connection.has_native_async
        wanted: dict[str, Any] = {"digest": library.digest}
        if self._runs_collection and self._connection.transport == "local":
            wanted["path"] = str(node_library.ROOT)
        # A job in the background cannot ask for the library: the library is there before the job starts.
        asked = {"only": True} if background else {}
        said = self._call({**wanted, **asked}, task_vars)
        if said.pop(MISSING, False):
            said = self._call({**wanted, **asked, "archive": library.encoded()}, task_vars)
        if background and not said.get("failed"):
            said = self._call(wanted, task_vars, wrap_async=True)
        return result | said

    def _call(self, library: dict[str, Any], task_vars: dict[str, Any] | None, **how: Any) -> dict[str, Any]:
        arguments = {**self._task.args, "library": library}
        said: dict[str, Any] = self._execute_module(module_args=arguments, task_vars=task_vars, **how)
        return said
