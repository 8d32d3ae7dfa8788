# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role common changes a node where a comparison finds a difference, and leaves it alone where none does."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

# The scenario `rolling` runs this role with the newest ansible-core.
pytestmark = pytest.mark.once

MODULES = (
    "apt_sources",
    "apt_packages",
    "admin_accounts",
    "ssh_server",
    "system_settings",
    "disks",
    "firewall",
)
ROLE = "baremetal.inference.common"

# gpu_facts is here for the facts of the operating system alone.
FACTS = {"name": "Facts", "baremetal.inference.gpu_facts": {}, "tags": ["always"]}
DEBIAN = {"distribution": "Debian", "distribution_version": "12.5", "distribution_major_version": "12"}

AS_DECLARED = {
    "differs": [],
    "closes": False,
    "trial": False,
    "sudo_installed": True,
    "user": "root",
    "missing": [],
    "surplus": [],
    "packages": [],
    "installed": True,
    "ssh_ports": [22],
}
VARIABLES = {
    "ansible_become": False,
    "common_nfs_mounts": [{"source": "nas:/models", "path": "/mnt/models"}],
    # These parts would install packages on this machine.
    "common_logrotate_enabled": False,
    "common_time_enabled": False,
}

Seen = list[tuple[dict[str, Any], dict[str, Any]]]


def on(node: str, module: str, **answer: Any) -> Seen:
    """A module's answer on a node, in place of AS_DECLARED."""
    return [({"module": module, "on": node}, answer)]


class Site:
    """Nodes, each as declared unless the test says otherwise."""

    def __init__(self, stage: Any) -> None:
        self.stage = stage

    def run(self, nodes: Sequence[str], *options: str, seen: Seen, enter: Sequence[str] = (), **more: Any) -> str:
        """Check the nodes, print which are due, and run the role on the nodes of `enter`. Returns the output."""
        facts: Seen = [({"module": "gpu_facts"}, {"ansible_facts": DEBIAN})]
        everywhere: Seen = [({"module": module}, AS_DECLARED) for module in MODULES]
        tasks = [
            FACTS,
            {"ansible.builtin.include_role": {"name": ROLE, "tasks_from": "preflight"}},
            {"ansible.builtin.debug": {"msg": "{{ inventory_hostname }} due: {{ common_due }}"}},
            {
                "ansible.builtin.include_role": {"name": ROLE},
                "when": f"inventory_hostname in {list(enter)}",
                "tags": ["always"],
            },
        ]
        play = {"name": "Play", "hosts": "all", "tasks": tasks}
        variables = ["--extra-vars", json.dumps(VARIABLES)]
        hosts = "\n".join(nodes)
        _done, said = self.stage.run([play], hosts, *variables, *options, seen=[*facts, *everywhere, *seen], **more)
        return str(said)

    def calls(self, node: str, check_mode: bool) -> list[str]:
        """The role's modules that were called on a node, in their order."""
        return [
            call["module"] for call in self.stage.calls(on=node, check_mode=check_mode) if call["module"] in MODULES
        ]


@pytest.fixture
def site(staged: Callable[[Sequence[str]], Any]) -> Site:
    return Site(staged([*MODULES, "gpu_facts"]))


def test_each_difference_makes_a_node_due_and_each_module_compares_once(site: Site) -> None:
    """Each module has a node on which only this module finds a difference."""
    nodes = {module.replace("_", "-"): module for module in MODULES}
    seen = [call for node, module in nodes.items() for call in on(node, module, differs=["something"])]
    entered = ["same", "disks"]
    said = site.run(["same", *nodes], seen=seen, enter=entered)
    assert [node for node in ("same", *nodes) if f"{node} due: True" in said] == list(nodes)
    assert "same due: False" in said
    for node in {"same", *nodes} - {"disks"}:
        assert sorted(site.calls(node, check_mode=True)) == sorted(MODULES), "each module compares once"
        assert site.calls(node, check_mode=False) == [], "the checks change no node"
    (asked,) = site.stage.calls(module="apt_packages", on="same")
    assert {"nftables", "unattended-upgrades"} <= set(asked["present"]), "one run of apt-get for what the role needs"
    assert "logrotate" not in asked["present"], "logrotate is switched off here"
    # The comparison of the firewall found no difference, so nothing sets the rules.
    assert set(site.calls("disks", check_mode=False)) == {*MODULES} - {"firewall"}


def test_all_mistakes_are_reported_at_once_except_on_an_unsupported_system(site: Site) -> None:
    wrong: list[dict[str, Any]] = [{"on": "wrong", "module": "apt_packages"}, {"on": "wrong", "module": "firewall"}]
    old: Seen = on(
        "old", "gpu_facts", ansible_facts={**DEBIAN, "distribution_version": "11.3", "distribution_major_version": "11"}
    )
    arm: Seen = on("arm", "gpu_facts", ansible_facts={**DEBIAN, "machine": "aarch64"})
    nodes = ["wrong", "old", "locked", "arm"]
    lets_passwords_in = on("locked", "ssh_server", closes=True, differs=["a file"])
    said = site.run(nodes, seen=[*old, *arm, *lets_passwords_in], failures=[*wrong, {"on": "old", "module": "disks"}])
    assert "wrong: common_packages*" in said and "apt_packages was told to fail" in said
    assert "wrong: common_firewall_*: firewall was told to fail" in said
    assert "old runs Debian 11.3. Supported: Debian 12 and 13" in said and "disks was told to fail" not in said
    assert "arm is aarch64. Supported: x86_64 (amd64). No other architecture was tested" in said
    assert "locked still accepts passwords" in said, "no login has shown that a key works"
    assert "due:" not in said
    assert [site.calls(node, check_mode=False) for node in nodes] == [[], [], [], []]


def test_a_run_with_a_tag_compares_and_changes_only_the_part_of_that_tag(site: Site) -> None:
    seen = on("due", "firewall", differs=["the table"]) + on("due", "apt_sources", differs=["a file"])
    site.run(["due"], "--tags", "common_firewall", seen=seen, enter=["due"])
    assert set(site.calls("due", check_mode=True)) == set(site.calls("due", check_mode=False)) == {"firewall"}


def test_a_reboot_that_waits_makes_no_node_due_and_is_reported_again(site: Site) -> None:
    """The run is in check mode, so that no flag of this machine is written."""
    missing = {"missing": ["iommu=pt"]}
    seen = on("waits", "system_settings", **missing) + on("waits-and-differs", "system_settings", **missing)
    seen += on("waits-and-differs", "disks", differs=["something"])
    compared = {"module": "system_settings", "on": "waits-and-differs", "reboot_flag": "inference-kernel-cmdline"}
    seen.append((compared, {"missing": ["before=1"]}))
    nodes = ["same", "waits", "waits-and-differs"]
    said = site.run(nodes, "--check", seen=seen, enter=nodes)
    assert [node for node in nodes if f"{node} due: True" in said] == ["waits-and-differs"]
    reports = [f"{node}: a reboot is due: the kernel runs without iommu=pt." for node in nodes]
    assert [said.count(words) for words in reports] == [0, 1, 1], "once for each node that waits"
    assert "before=1" not in said, "a change reports what waits after the change"
