# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The base of action plugins whose modules are implemented in the library of nodes. Private to the collection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from ansible import constants
from ansible.plugins.action import ActionBase

from ansible_collections.baremetal.inference.plugins.module_utils.core.node_call import MISSING, OPTION, Wanted
from ansible_collections.baremetal.inference.plugins.module_utils.fleet import node_library
from ansible_collections.baremetal.inference.plugins.plugin_utils import own_call

MODULE = "baremetal.inference.node_call"
"""Ansible sends this module in place of every module with a NodeCall. So Ansible packs it once, not once per module."""


class NodeCall(ActionBase):
    """Calls a module with the digest of its library. If the node lacks the library, sends it and calls again."""

    _requires_connection = True
    _supports_async = True

    _specification: Mapping[str, Any]
    """The arguments of AnsibleModule. Each module declares them in its own file, next to its documentation."""

    _runs_collection = True
    """Whether a controller that is itself the target may run the implementation from the collection's directory."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        if self._is_own_question() and self._connection.transport == "local" and not self._connection.become:
            return result | self._answer()
        library = node_library.of_run(Path(constants.DEFAULT_LOCAL_TMP))
        background = bool(self._task.async_val) and not self._connection.has_native_async
        name, specification = self._task.action.rpartition(".")[2], dict(self._specification)
        own = self._runs_collection and self._connection.transport == "local"
        wanted = Wanted(name, specification, library.digest, path=str(node_library.ROOT) if own else "")
        # A job in the background cannot report a missing library. So the library is sent before the job starts.
        asked = replace(wanted, only=background)
        answer = self._call(asked, task_vars)
        if answer.pop(MISSING, False):
            answer = self._call(replace(asked, archive=library.encoded()), task_vars)
        if background and not answer.get("failed"):
            answer = self._call(wanted, task_vars, wrap_async=True)
        return result | answer

    def _is_own_question(self) -> bool:
        """Whether this process may answer the call, if it runs on the target, as the target user."""
        return False

    def _answer(self) -> dict[str, Any]:
        # In most of the collection's playbooks, the filter `counted` has imported the implementation before the fork.
        calls = "ansible_collections.baremetal.inference.plugins.module_utils.node.calls"
        name = self._task.action.rpartition(".")[2]
        implementation = import_module(f"{calls}.{name}").run
        return own_call.answer(
            implementation, self._specification, self._task.args, check_mode=bool(self._task.check_mode)
        )

    def _call(self, wanted: Wanted, task_vars: dict[str, Any] | None, **how: Any) -> dict[str, Any]:
        given = {**self._task.args, OPTION: wanted.to_text()}
        answer: dict[str, Any] = self._execute_module(module_name=MODULE, module_args=given, task_vars=task_vars, **how)
        return answer

    def _update_module_args(self, module_name: str, *others: Any, **more: Any) -> None:
        """Set the task's module name, so that messages and the node's log show it instead of node_call."""
        super()._update_module_args(self._task.action, *others, **more)
