# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes the place of a module: notes how it was called, and succeeds, unless told to fail."""

import json
import os
import time
from pathlib import Path
from typing import Any

from ansible.module_utils import basic
from ansible.module_utils.basic import AnsibleModule

ANSWER = {
    "changed": False,
    "adopted": "",
    "idle": True,
    "reached": True,
    "up": ["a", "b"],
    "requests": 0,
    "failures": 0,
    "set_requests": 40,
    "drained_by": "",
    "loading": [],
    "pinned": False,
    "load_seconds": 21.0,
    "tokens_per_second": 33.0,
    "instances": [{"name": "main", "serving": False, "release": 1, "model": "tiny-a", "drained_by": "update"}],
    "release": 1,
    "counters": {"main": {"at": 20.0}, "side": {}},
    "speed": "a request gets 28.1 tokens/s",
}


def main() -> None:
    # It takes whatever arguments the real one has.
    given = basic._load_params()
    names = [name for name in given if not name.startswith("_ansible")]
    module = AnsibleModule(argument_spec={name: {"type": "raw"} for name in names}, supports_check_mode=True)
    name = module._name.rpartition(".")[2]
    call = {"module": name, "on": os.environ["STAND_IN_HOST"], "check_mode": module.check_mode, **module.params}
    home = Path(os.environ["STAND_IN_HOME"])
    with (home / "calls").open("a", encoding="utf-8") as calls:
        calls.write(json.dumps(call) + "\n")
    wanted = json.loads((home / "wanted").read_text(encoding="utf-8"))
    for failure in wanted["failures"]:
        if failure.items() <= call.items():
            module.fail_json(msg=f"{name} was told to fail")
    answer: dict[str, Any] = dict(ANSWER)
    for asked, seen in wanted["seen"]:
        if asked.items() <= call.items():
            answer |= seen
    time.sleep(answer.pop("sleep", 0))
    module.exit_json(**answer)


if __name__ == "__main__":
    main()
