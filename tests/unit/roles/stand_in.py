# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes the place of a module: records its call, and succeeds, unless the test lists the call as a failure.

Ansible prefers an action to the module of the same name. An action needs no separate process for each call.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase

ANSWER = {
    "changed": False,
    "adopted": "",
    "reached": True,
    "up": ["a", "b"],
    "drained_by": "",
    "loading": [],
    "pinned": False,
    "load_seconds": 21.0,
    "tokens_per_second": 33.0,
    "instances": [{"name": "main", "serving": False, "release": 1, "model": "tiny-a", "drained_by": "update"}],
    "updates": [{"name": "main", "serving": False}],
    "release": 1,
    "counters": {"main": {"at": 20.0}, "side": {}},
    "outcome": "done",
    "line": "",
    "failure": "",
    "ended": True,
}

BEGUN = {"ended": False, "outcome": "", "run_id": "run1"}
"""The result of engine_swap for a swap that begins."""


class ActionModule(ActionBase):
    """STAND_IN_HOME: the directory with the calls and the wanted answers.

    STAND_IN_GONE: the remote_tmp of unreachable machines.
    """

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        if self.get_shell_option("remote_tmp") == os.environ["STAND_IN_GONE"]:
            raise AnsibleConnectionFailure("this machine is gone")
        name = self._task.action.rpartition(".")[2]
        host = (task_vars or {})["inventory_hostname"]
        # JSON gives the arguments the form in which a module gets them.
        given = json.loads(json.dumps(self._task.args))
        call = {"module": name, "on": host, "check_mode": self._task.check_mode, **given}
        if self._task.delegate_to:
            call["at"] = self._task.delegate_to
        home = Path(os.environ["STAND_IN_HOME"])
        with (home / "calls").open("a", encoding="utf-8") as calls:
            calls.write(json.dumps(call) + "\n")
        wanted = json.loads((home / "wanted").read_text(encoding="utf-8"))
        for failure in wanted["failures"]:
            if failure.items() <= call.items():
                return {"failed": True, "msg": f"{name} was told to fail"}
        answer: dict[str, Any] = dict(ANSWER)
        if name == "engine_swap" and "state" not in call:
            answer |= BEGUN
        for asked, seen in wanted["seen"]:
            if asked.items() <= call.items():
                answer |= seen
        if answer.pop("gone", False):
            raise AnsibleConnectionFailure("this machine is gone")
        time.sleep(answer.pop("sleep", 0))
        return answer
