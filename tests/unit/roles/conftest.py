# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays as Ansible runs them, on machines that are this one by other names, with stand-ins for modules."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]

NOWHERE = "/proc/none"
"""Where nobody can make a directory."""

Call = dict[str, Any]


class Stage:
    """The collection, in which some modules are stand-ins."""

    gone = f"ansible_pipelining=false ansible_remote_tmp={NOWHERE}"
    """A machine whose temporary directory cannot be made counts as one that cannot be reached."""

    def __init__(self, home: Path, modules: Iterable[str]) -> None:
        self.home = home
        collection = home / "ansible_collections/baremetal/inference"
        # What may be written to is copied. The other plugins are linked, for their byte code is there already.
        for part in ("plugins/action", "roles", "meta", "playbooks"):
            shutil.copytree(ROOT / part, collection / part, ignore=shutil.ignore_patterns("__pycache__"))
        for path in (ROOT / "plugins").iterdir():
            if path.name != "action":
                (collection / "plugins" / path.name).symlink_to(path)
        for name in modules:
            shutil.copy(Path(__file__).with_name("stand_in.py"), collection / f"plugins/action/{name}.py")
        self.playbooks = collection / "playbooks"

    def run(
        self,
        plays: Sequence[dict[str, Any]],
        hosts: str,
        *options: str,
        failures: Sequence[Call] = (),
        seen: Sequence[tuple[Call, Call]] = (),
    ) -> tuple[bool, str]:
        """Whether the plays succeeded, and what was printed. ``hosts`` is the inventory, without how to reach them.

        A call that has all of a failure's values fails; of what is `seen`, a call with the first gets the second.
        """
        (self.home / "wanted").write_text(json.dumps({"failures": failures, "seen": seen}))
        (self.home / "calls").write_text("")
        # Beside those of the collection, so that they find the same files.
        path = self.playbooks / "play.yml"
        path.write_text(json.dumps([{"gather_facts": False, **play} for play in plays]))
        local = f"ansible_connection=local ansible_python_interpreter={sys.executable}"
        (self.home / "hosts").write_text(f"{hosts}\n[all:vars]\n{local.replace(' ', chr(10))}\n")
        done = subprocess.run(
            ["ansible-playbook", "-i", self.home / "hosts", *options, path],
            check=False,
            text=True,
            capture_output=True,
            env={
                **os.environ,
                "ANSIBLE_COLLECTIONS_PATH": str(self.home),
                "ANSIBLE_LOCAL_TEMP": str(self.home / "tmp"),
                "STAND_IN_HOME": str(self.home),
                "STAND_IN_GONE": NOWHERE,
                # A process for each call, not five.
                "ANSIBLE_PIPELINING": "1",
            },
            cwd=self.home,
        )
        output = " ".join((done.stdout + done.stderr).split())
        assert "failed=" in output, output
        return done.returncode == 0, output

    def calls(self, **values: Any) -> list[Call]:
        """The calls that have all of these values."""
        calls = [json.loads(line) for line in (self.home / "calls").read_text().splitlines()]
        return [call for call in calls if values.items() <= call.items()]


@pytest.fixture
def staged(tmp_path: Path) -> Callable[[Iterable[str]], Stage]:
    """The stage, with stand-ins for the named modules."""
    return lambda modules: Stage(tmp_path, modules)
