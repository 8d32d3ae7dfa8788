# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Passes the running task to the simulated ssh, by environment variables.

The processes that Ansible forks for a task inherit the environment of the process that runs this plugin.
"""

from __future__ import annotations

import hashlib
import os
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: fleet_task
type: aggregate
short_description: Name the running task in the environment
description: For the simulated fleet of `make bench`.
"""


def key(path: str, action: str) -> str:
    """A file name for a task. It is the same in each run of the same playbook."""
    return hashlib.sha256(f"{path} {action}".encode()).hexdigest()[:16]


class CallbackModule(CallbackBase):
    """Ansible calls the plugin before each task, in the process that forks the workers."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "fleet_task"
    CALLBACK_NEEDS_ENABLED = True

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        os.environ["FLEET_TASK"] = key(task.get_path(), task.action)
        os.environ["FLEET_TASK_NAME"] = f"{task.get_path()}: {task.get_name()}"

    def v2_playbook_on_handler_task_start(self, task: Any) -> None:
        self.v2_playbook_on_task_start(task, False)
