# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays as Ansible runs them, on machines that are this one by other names, with stand-ins for modules."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]

NOWHERE = "/proc/none"
"""A path below which no user can make a directory."""

Call = dict[str, Any]


class Company:
    """An Ansible that has started once, and runs the plays of all theatres."""

    def __init__(self, home: Path, quick: bool) -> None:
        self._home = home
        # All theatres have the same path: what Ansible has read of a path before a run stays true.
        self._place = home / "ansible_collections"
        self._quick = quick
        self._server: subprocess.Popen[str] | None = None

    def _start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("server.py")), *(["quick"] if self._quick else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "ANSIBLE_COLLECTIONS_PATH": str(self._home),
                "ANSIBLE_LOCAL_TEMP": str(self._home / "tmp"),
                # A process for each call, not five.
                "ANSIBLE_PIPELINING": "1",
                # Not first all other forms of inventories, as which Ansible would try to read each inventory.
                "ANSIBLE_INVENTORY_ENABLED": "ini",
            },
            cwd=self._home,
        )

    def run(self, theatre: Theatre, plays: Sequence[dict[str, Any]], home: Path, *options: str) -> tuple[int, str]:
        """The exit status of ansible-playbook, and what it printed, for the stage at `home`."""
        self._place.unlink(missing_ok=True)
        self._place.symlink_to(theatre.collections)
        self._server = self._server or self._start()
        assert self._server.stdin and self._server.stdout
        # Beside the playbooks of the collection, so that the plays find the same files.
        path = self._place / "baremetal/inference/playbooks/play.yml"
        path.write_text(json.dumps([{"gather_facts": False, **play} for play in plays]))
        asked = {
            "arguments": ["-i", str(home / "hosts"), *options, str(path)],
            "environment": {"STAND_IN_HOME": str(home), "STAND_IN_GONE": NOWHERE},
            "directory": str(home),
            "output": str(home / "output"),
        }
        self._server.stdin.write(f"{json.dumps(asked)}\n")
        self._server.stdin.flush()
        status = int(self._server.stdout.readline())
        return status, " ".join((home / "output").read_text().split())

    def close(self) -> None:
        if self._server:
            assert self._server.stdin and self._server.stdout
            self._server.stdin.close()
            self._server.stdout.close()
            self._server.wait()


class Theatre:
    """A copy of the collection, with stand-ins for some modules and other texts of some files, for several stages."""

    def __init__(self, home: Path, modules: Iterable[str], texts: Mapping[str, str], company: Company) -> None:
        self.company = company
        self.collections = home / "ansible_collections"
        collection = self.collections / "baremetal/inference"
        # Parts that a theatre may write to are copies. The other plugins are links, because their byte code exists
        # already, and the company has read them before the first play.
        for part in ("plugins/action", "roles", "meta", "playbooks"):
            shutil.copytree(ROOT / part, collection / part, ignore=shutil.ignore_patterns("__pycache__"))
        for path in (ROOT / "plugins").iterdir():
            if path.name != "action":
                (collection / "plugins" / path.name).symlink_to(path)
        for name in modules:
            shutil.copy(Path(__file__).with_name("stand_in.py"), collection / f"plugins/action/{name}.py")
        for name, text in texts.items():
            (collection / name).write_text(text)


class Stage:
    """The calls and files of one test in a theatre."""

    gone = f"ansible_pipelining=false ansible_remote_tmp={NOWHERE}"
    """A machine whose temporary directory cannot be made counts as one that cannot be reached."""

    def __init__(self, home: Path, theatre: Theatre) -> None:
        self.home = home
        self.theatre = theatre

    def run(
        self,
        plays: Sequence[dict[str, Any]],
        hosts: str,
        *options: str,
        failures: Sequence[Call] = (),
        seen: Sequence[tuple[Call, Call]] = (),
    ) -> tuple[bool, str]:
        """Whether the plays succeeded, and their output. ``hosts`` is the inventory without connection variables.

        A call that has all values of an entry of `failures` fails. `seen` has pairs: a call that has all values of the
        first part gets the second part in its result.
        """
        (self.home / "wanted").write_text(json.dumps({"failures": failures, "seen": seen}))
        (self.home / "calls").write_text("")
        local = f"ansible_connection=local ansible_python_interpreter={sys.executable}"
        (self.home / "hosts").write_text(f"{hosts}\n[all:vars]\n{local.replace(' ', chr(10))}\n")
        status, output = self.theatre.company.run(self.theatre, plays, self.home, *options)
        assert "failed=" in output, output
        return status == 0, output

    def calls(self, **values: Any) -> list[Call]:
        """The calls that have all of these values."""
        calls = [json.loads(line) for line in (self.home / "calls").read_text().splitlines()]
        return [call for call in calls if values.items() <= call.items()]


@pytest.fixture(scope="session")
def company(tmp_path_factory: pytest.TempPathFactory, quick: bool) -> Iterator[Company]:
    one = Company(tmp_path_factory.mktemp("company"), quick)
    yield one
    one.close()


@pytest.fixture(scope="session")
def theatres(tmp_path_factory: pytest.TempPathFactory, company: Company) -> Callable[..., Theatre]:
    """Theatres by the modules that are stand-ins, and the texts of files by their path: each is made once."""
    made: dict[str, Theatre] = {}

    def theatre(modules: Iterable[str], texts: Mapping[str, str]) -> Theatre:
        key = json.dumps([sorted(modules), texts], sort_keys=True)
        if key not in made:
            made[key] = Theatre(tmp_path_factory.mktemp("theatre"), modules, texts, company)
        return made[key]

    return theatre


@pytest.fixture
def staged(tmp_path: Path, theatres: Callable[..., Theatre]) -> Callable[..., Stage]:
    """The stage, with stand-ins for the named modules, and other texts of files of the collection, by their path."""
    return lambda modules, texts=None: Stage(tmp_path, theatres(modules, texts or {}))
