# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run plays with the real Ansible. All hosts are this machine under other names. Stand-ins replace modules."""

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


class Runner:
    """An Ansible that has started once, and runs the plays of all tests."""

    def __init__(self, home: Path, quick: bool) -> None:
        self._home = home
        # All copies of the collection get the same path, so that what Ansible remembers of a path stays valid.
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
                # Ansible then starts one process for each call of a module, instead of five.
                "ANSIBLE_PIPELINING": "1",
                # Otherwise, Ansible would first try to read each inventory in all other formats.
                "ANSIBLE_INVENTORY_ENABLED": "ini",
            },
            cwd=self._home,
        )

    def run(self, copy: CollectionCopy, plays: Sequence[dict[str, Any]], home: Path, *options: str) -> tuple[int, str]:
        """The exit status of ansible-playbook, and what it printed, for the stage at `home`."""
        self._place.unlink(missing_ok=True)
        self._place.symlink_to(copy.collections)
        self._server = self._server or self._start()
        assert self._server.stdin and self._server.stdout
        # The plays lie beside the collection's playbooks, so that they find the same files.
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


class CollectionCopy:
    """A copy of the collection, with stand-ins for some modules and other texts of some files, for several stages."""

    def __init__(self, home: Path, modules: Iterable[str], texts: Mapping[str, str], runner: Runner) -> None:
        self.runner = runner
        self.collections = home / "ansible_collections"
        collection = self.collections / "baremetal/inference"
        # Parts that a test may change are copies. The other plugins are links, because their byte code exists
        # already, and the runner has read them before the first play.
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
    """The inventory, calls and output of one test, with a copy of the collection."""

    gone = f"ansible_pipelining=false ansible_remote_tmp={NOWHERE}"
    """A machine whose temporary directory cannot be made counts as one that cannot be reached."""

    def __init__(self, home: Path, copy: CollectionCopy) -> None:
        self.home = home
        self.copy = copy

    def run(
        self,
        plays: Sequence[dict[str, Any]],
        hosts: str,
        *options: str,
        failures: Sequence[Call] = (),
        seen: Sequence[tuple[Call, Call]] = (),
    ) -> tuple[bool, str]:
        """Whether the plays succeeded, and their output. All hosts of the inventory `hosts` get a local connection.

        A call that has all values of an entry of `failures` fails. `seen` has pairs: a call that has all values of the
        first part gets the second part in its result.
        """
        (self.home / "wanted").write_text(json.dumps({"failures": failures, "seen": seen}))
        (self.home / "calls").write_text("")
        local = f"ansible_connection=local ansible_python_interpreter={sys.executable}"
        (self.home / "hosts").write_text(f"{hosts}\n[all:vars]\n{local.replace(' ', chr(10))}\n")
        status, output = self.copy.runner.run(self.copy, plays, self.home, *options)
        assert "failed=" in output, output
        return status == 0, output

    def calls(self, **values: Any) -> list[Call]:
        """The calls that have all of these values."""
        calls = [json.loads(line) for line in (self.home / "calls").read_text().splitlines()]
        return [call for call in calls if values.items() <= call.items()]


@pytest.fixture(scope="session")
def runner(tmp_path_factory: pytest.TempPathFactory, quick: bool) -> Iterator[Runner]:
    one = Runner(tmp_path_factory.mktemp("runner"), quick)
    yield one
    one.close()


@pytest.fixture(scope="session")
def copies(tmp_path_factory: pytest.TempPathFactory, runner: Runner) -> Callable[..., CollectionCopy]:
    """Makes copies of the collection: for the same stand-ins and the same texts of files, one copy."""
    made: dict[str, CollectionCopy] = {}

    def copy(modules: Iterable[str], texts: Mapping[str, str]) -> CollectionCopy:
        key = json.dumps([sorted(modules), texts], sort_keys=True)
        if key not in made:
            made[key] = CollectionCopy(tmp_path_factory.mktemp("copy"), modules, texts, runner)
        return made[key]

    return copy


@pytest.fixture
def staged(tmp_path: Path, copies: Callable[..., CollectionCopy]) -> Callable[..., Stage]:
    """A function that makes the stage: with stand-ins for the named modules, and other texts of files by their path."""
    return lambda modules, texts=None: Stage(tmp_path, copies(modules, texts or {}))
