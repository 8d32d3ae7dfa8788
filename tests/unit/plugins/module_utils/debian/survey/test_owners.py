# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which programs provide Docker, the firewall and the clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.debian.survey import owners


def runner(answers: Mapping[str, str]) -> Callable[[list[str]], Outcome]:
    return lambda command: Outcome(0, answers.get(command[0], ""))


def test_the_owner_of_docker_is_found_by_packages_or_snap(tmp_path: Path) -> None:
    answers = {"dpkg-query": "docker-ce installed 5:28.1\ndocker.io config-files 20.10\n", "docker": "web\ndb\n"}
    found = owners.docker(tmp_path, runner(answers))
    assert found == {"owner": "docker", "version": "5:28.1", "has_settings": False, "running": ["db", "web"]}
    assert owners.docker(tmp_path, runner({}))["owner"] == ""
    (tmp_path / "snap/bin").mkdir(parents=True)
    (tmp_path / "snap/bin/docker").touch()
    assert owners.docker(tmp_path, runner({}))["owner"] == "snap"


def test_other_firewalls_and_foreign_rules_are_found(tmp_path: Path) -> None:
    (tmp_path / "etc/ufw").mkdir(parents=True)
    (tmp_path / "etc/ufw/ufw.conf").write_text("ENABLED=yes\n")
    (tmp_path / "etc/nftables.conf").write_text("table inet mine { chain a { tcp dport 22 accept\n} }\n")
    units = "Id=ufw.service\nActiveState=active\nUnitFileState=enabled\n\nId=firewalld.service\nActiveState=inactive\n"
    assert owners.firewall(tmp_path, runner({"systemctl": units})) == {"others": ["ufw"], "foreign_rules": True}
    assert owners.firewall(tmp_path / "none", runner({})) == {"others": [], "foreign_rules": False}


def test_the_program_that_sets_the_clock_is_found() -> None:
    answers = {
        "systemctl": "Id=chrony.service\nActiveState=active\n\nId=ntp.service\nActiveState=inactive\n",
        "timedatectl": "Timezone=UTC\nNTPSynchronized=yes\n",
    }
    assert owners.clock(runner(answers)) == {"daemons": ["chrony"], "synchronized": True}
    assert owners.clock(runner({})) == {"daemons": [], "synchronized": None}
