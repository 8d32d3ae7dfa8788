# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's part of the module node_lock.

Only the controller can find the process of this run, and whether the process of the lock's owner has ended.
"""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.baremetal.inference.plugins.module_utils.fleet import playbook_process


class ActionModule(ActionBase):
    """Runs the module. A second call takes over the lock of a run of the same playbook that was killed here."""

    _requires_connection = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        given = {**self._task.args, "process": playbook_process.of_this_run()}
        answer = self._execute_module(module_args=given, task_vars=task_vars)
        holder = answer.get("holder") or {}
        if holder.get("playbook") == given.get("playbook") and playbook_process.has_ended(holder.get("process", "")):
            answer = self._execute_module(module_args={**given, "take": holder["run_id"]}, task_vars=task_vars)
        return result | answer
