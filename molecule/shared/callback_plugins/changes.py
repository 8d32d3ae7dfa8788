# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes a JSON line for each task that changed a host, so that a test can compare check mode with the real run."""

from __future__ import annotations

DOCUMENTATION = r"""
name: changes
type: aggregate
short_description: Record changed tasks
description: Appends a line of JSON for every changed task to the file named by C(CHANGES_FILE).
author: The baremetal.inference contributors (@baremetal-inference)
requirements: [the environment variable C(CHANGES_FILE)]
"""

import json
import os
from typing import Any

from ansible import context
from ansible.plugins.callback import CallbackBase


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "changes"
    CALLBACK_NEEDS_ENABLED = True

    def v2_playbook_on_start(self, playbook: Any) -> None:
        self.run = "check" if context.CLIARGS.get("check") else "converge"
        if self.run == "check":
            # The scenario's run in check mode comes before its converge, and starts a new file.
            open(os.environ["CHANGES_FILE"], "w", encoding="utf-8").close()

    def v2_runner_on_ok(self, result: Any) -> None:
        if not result._result.get("changed"):
            return
        entry = {"run": self.run, "host": result._host.get_name(), "task": result._task.get_name().strip()}
        with open(os.environ["CHANGES_FILE"], "a", encoding="utf-8") as stream:
            stream.write(json.dumps(entry) + "\n")
