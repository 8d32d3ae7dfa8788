# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""ansible-playbook, again and again, without its start, which is most of a short run.

A line of standard input asks for a run, as JSON: its arguments, its environment, its directory, and the file that takes
what the run prints. The answer is a line with the exit status. Each run is a process of its own: a copy of this one,
which has imported Ansible and loaded the filters, but has run nothing. With the argument `quick`, the tasks of a run
stay in its process, and Ansible does once what a run does many times.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import one_process  # type: ignore[import-not-found]
import savings  # type: ignore[import-not-found]
from ansible.cli.playbook import PlaybookCLI
from ansible.plugins.loader import filter_loader, init_plugin_loader, test_loader


def load() -> None:
    """Load the filters and tests that templates name.

    Ansible reads all filters of the collection when it looks for one that does not exist.
    """
    # The command itself imports this module late.
    import_module("ansible.executor.playbook_executor")
    init_plugin_loader()
    for name in ("default", "baremetal.inference.none"):
        filter_loader.get(name)
    test_loader.get("defined")


def run(asked: dict[str, Any]) -> int:
    """Become the run. Returns its exit status."""
    os.environ.update(asked["environment"])
    os.chdir(asked["directory"])
    output = os.open(asked["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for descriptor, source in enumerate((os.open(os.devnull, os.O_RDONLY), output, output)):
        os.dup2(source, descriptor)
    try:
        PlaybookCLI.cli_executor(["ansible-playbook", *asked["arguments"]])
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def main() -> None:
    load()
    quick = "quick" in sys.argv
    if quick:
        one_process.use()
        savings.use()
    with tempfile.TemporaryDirectory() as kept:
        serve(Path(kept) / "left" if quick else None)


def serve(left: Path | None) -> None:
    """Run the requests until standard input ends. `left`: the file in which a run leaves what this process learns."""
    for line in sys.stdin:
        known = savings.known()
        process = os.fork()
        if process == 0:
            status = run(json.loads(line))
            if left:
                savings.leave(left, known)
            sys.stdout.flush()
            sys.stderr.flush()
            # Skip Ansible's own cleanup at exit, which would remove the temporary directory of all runs.
            os._exit(status)
        _process, status = os.waitpid(process, 0)
        if left:
            savings.learn(left)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
