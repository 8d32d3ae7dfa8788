# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory and the ansible.cfg of the quick start are what roles and playbooks read."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "docs/quick-start.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """The blocks of one language, in their order."""
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)


def settings(text: str) -> dict[str, str]:
    parser = configparser.ConfigParser()
    parser.read_string(text)
    return {f"{name}.{key}": value for name in parser.sections() for key, value in parser.items(name)}


def test_the_settings_of_ansible_are_those_that_the_tests_run_with() -> None:
    shown, ours = settings(blocks("ini")[0]), settings((ROOT / "ansible.cfg").read_text(encoding="utf-8"))
    assert shown.pop("defaults.inventory") == "mysite"
    options = set(shown.pop("ssh_connection.ssh_args").split("-o "))
    assert options <= set(ours.pop("ssh_connection.ssh_args").split("-o "))
    assert {key: ours.get(key) for key in shown} == shown
    assert all(f"`{key.partition('.')[2]}`" in GUIDE for key in shown), "each setting is explained"


def test_roles_or_playbooks_read_every_variable_of_the_inventory() -> None:
    """Each is a variable of a role that the site may set, or one that the playbooks read."""
    site = (ROOT / "playbooks/vars/roles.yml").read_text(encoding="utf-8")
    of_roles: dict[str, bool] = {}
    for file in (ROOT / "roles").glob("*/meta/argument_specs.yml"):
        options = yaml.safe_load(file.read_text(encoding="utf-8"))["argument_specs"]["main"].get("options", {})
        of_roles |= dict.fromkeys(options, True)
    _hosts, variables, vault = (yaml.safe_load(text) for text in blocks("yaml"))
    taken = yaml.safe_load(site)
    for name in variables:
        assert name not in taken, f"the playbooks overrule {name}"
        assert name in of_roles or re.search(rf"\b{name}\b", site), f"{name} is unknown"
    assert set(re.findall(r"\{\{ (vault_\w+) \}\}", yaml.safe_dump(variables))) == set(vault)
