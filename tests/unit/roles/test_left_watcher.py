# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that has left the group `monitoring` is named, and taken out by decommission.yml; one of the group is not.

What the module removes is tried beside the other modules' tests: here, a stand-in tells what it would find.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]

STAND_IN = """#!/usr/bin/python
from pathlib import Path
from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule(argument_spec={}, supports_check_mode=True)
with Path(@home@, "calls").open("a") as calls:
    calls.write(f"check={module.check_mode}\\n")
module.exit_json(changed=True, **@answer@)
"""

WATCHES = {"stopped": ["prometheus.service"], "removed": ["x"], "kept": ["/srv/samples"], "foreign": []}
NOTHING: dict[str, list[str]] = {"stopped": [], "removed": [], "kept": [], "foreign": []}
ANOTHERS = {**NOTHING, "foreign": ["/etc/prometheus/prometheus.yml"]}


class Site:
    """A gateway that has watched the fleet, a host that does now, and a node."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.collection = home / "ansible_collections/baremetal/inference"
        ignored = shutil.ignore_patterns("__pycache__")
        for name in ("plugins", "meta", "playbooks", "roles/monitoring"):
            shutil.copytree(ROOT / name, self.collection / name, ignore=ignored)
        groups = {"inference": "n1", "gateway": "gw1", "monitoring": "m1"}
        hosts: dict[str, Any] = {group: {"hosts": {host: {}}} for group, host in groups.items()}
        hosts["all"] = {
            "vars": {
                "ansible_connection": "local",
                "ansible_become": False,
                "ansible_python_interpreter": sys.executable,
                "inference_address": "192.0.2.1",
                "monitoring_dashboards_path": str(home / "dashboards"),
                "instances": [],
            }
        }
        (home / "hosts.json").write_text(json.dumps(hosts))

    def run(self, playbook: Path, found: dict[str, list[str]], *options: str) -> tuple[bool, str, list[str]]:
        """Whether it succeeded, what was printed, and how the module was called."""
        calls = self.home / "calls"
        calls.write_text("")
        text = STAND_IN.replace("@home@", repr(str(self.home))).replace("@answer@", repr(found))
        (self.collection / "plugins/modules/monitoring_removal.py").write_text(text)
        done = subprocess.run(
            ["ansible-playbook", "--inventory", self.home / "hosts.json", playbook, *options],
            check=False,
            text=True,
            capture_output=True,
            env={
                **os.environ,
                "ANSIBLE_COLLECTIONS_PATH": str(self.home),
                "ANSIBLE_LOCAL_TEMP": str(self.home / "tmp"),
                "ANSIBLE_REMOTE_TEMP": str(self.home / "tmp"),
            },
            cwd=self.home,
        )
        return done.returncode == 0, " ".join((done.stdout + done.stderr).split()), calls.read_text().splitlines()

    def leave(self, found: dict[str, list[str]], **extra: str) -> tuple[bool, str, list[str]]:
        options = [word for key, value in extra.items() for word in ("--extra-vars", f"{key}={value}")]
        return self.run(self.collection / "playbooks/decommission.yml", found, *options)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(tmp_path_factory.mktemp("site"))


@pytest.mark.parametrize("name", ["site.yml", "monitoring.yml"])
def test_the_playbooks_look_on_whoever_does_not_watch(name: str) -> None:
    text = (ROOT / "playbooks" / name).read_text(encoding="utf-8")
    assert "tasks_from: left\n      when: not monitoring_serves\n" in text


def test_one_that_watches_on_is_named_with_the_way_out(site: Site) -> None:
    include = {"name": "baremetal.inference.monitoring", "tasks_from": "left"}
    play = {"name": "Look", "hosts": "gw1", "gather_facts": False}
    play |= {"tasks": [{"name": "Look", "ansible.builtin.include_role": include}]}
    (site.home / "play.yml").write_text(json.dumps([play]))
    done, said, calls = site.run(site.home / "play.yml", WATCHES)
    assert done and calls == ["check=True"] and "changed=0" in said
    assert "prometheus.service go on there" in said
    assert "playbooks/decommission.yml -e monitoring=gw1 -e confirm=gw1" in said
    assert "no monitoring host any more" not in site.run(site.home / "play.yml", NOTHING)[1]


@pytest.mark.parametrize(
    "extra",
    [
        {"monitoring": "gw1"},
        {"monitoring": "gw1", "confirm": "m1"},
        {"monitoring": "m1", "confirm": "m1"},
        {"monitoring": "nobody", "confirm": "nobody"},
        {"monitoring": "gateway", "confirm": "gateway"},
        {"monitoring": "gw1", "confirm": "gw1", "instance": "main"},
    ],
    ids=["no-confirm", "other-confirm", "member", "unknown", "group", "two-things"],
)
def test_what_is_not_clear_is_refused(site: Site, extra: dict[str, str]) -> None:
    done, said, calls = site.leave(WATCHES, **extra)
    assert not done and calls == [] and "Nothing was changed" in said


def test_one_that_has_left_is_taken_out_and_nobody_else(site: Site) -> None:
    dashboards = site.home / "dashboards"
    dashboards.mkdir()
    for name in ("inference-node.json", "own.json"):
        (dashboards / name).write_text("{}")
    done, said, calls = site.leave(WATCHES, monitoring="gw1", confirm="gw1")
    assert done and calls == ["check=False"], said
    assert "stays in /srv/samples" in said
    assert [path.name for path in dashboards.iterdir()] == ["own.json"]


def test_what_is_somebody_elses_is_said_to_be_left_alone(site: Site) -> None:
    done, said, _calls = site.leave(ANOTHERS, monitoring="gw1", confirm="gw1")
    assert done and "/etc/prometheus/prometheus.yml is not ours" in said
