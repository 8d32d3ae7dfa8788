# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a run of the site: the gateway's URL, and commands for a first request."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import yaml

from .conftest import ROOT, Stage

pytestmark = pytest.mark.once

KEY = "1f" * 32

VERIFY = {"ansible.builtin.include_role": {"name": "baremetal.inference.gateway", "tasks_from": "verify"}}

SITE: dict[str, Any] = {
    "ansible_user": "admin",
    "gateway_tls": "ca",
    "vault_gateway_client_key": KEY,
    "gateway_keys": [{"name": "client-1", "key": "{{ vault_gateway_client_key }}"}],
}


@pytest.fixture
def stage(staged: Callable[..., Stage]) -> Stage:
    return staged(["gateway_facts"])


def report(
    stage: Stage,
    site: dict[str, Any],
    *options: str,
    hosts: Sequence[str] = ("gw",),
    textless: Sequence[str] = ("vec",),
) -> tuple[list[str], str]:
    """The lines as Ansible prints them, with backslashes in front of quotation marks, and all that was printed."""
    plays = yaml.safe_load((ROOT / "playbooks/site.yml").read_text(encoding="utf-8"))
    (play,) = [play for play in plays if play["name"] == "Report the gateway's URL"]
    play = {**play, "vars": {**site, "ansible_become": False}, "tasks": [VERIFY, *play["tasks"]]}
    answers = {"answered": ["vec", "main"], "textless": textless, "drained": ["spare"]}
    seen = [({"module": "gateway_facts"}, answers)]
    inventory = "\n".join(["[gateway]", *(f"{host} ansible_host=10.0.0.{11 + at}" for at, host in enumerate(hosts))])
    done, said = stage.run([play], inventory, *options, seen=seen)
    assert done and KEY not in said, said
    reports = re.findall(r'"msg": \[ (.*?) \]', said)
    assert len(reports) <= 1, said
    return re.findall(r'"((?:[^"\\]|\\.)*)"', reports[0]) if reports else [], said


def arguments(command: str) -> list[str]:
    """What a shell gives to the program of a command."""
    program, _blank, rest = command.partition(" ")
    script = f"{program}() {{ printf '%s\\n' \"$@\"; }}; {program} {rest}"
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.splitlines()


def test_the_reported_commands_ask_the_model_over_tls(stage: Stage) -> None:
    (where, fetch, ask), _said = report(stage, SITE)
    assert where == (
        "Clients ask https://10.0.0.11:8000 for vec, main, spare. KEY is vault_gateway_client_key in "
        "group_vars/all/vault.yml."
    )
    assert fetch == "ssh admin@10.0.0.11 cat /etc/haproxy/site-ca.pem > site-ca.pem"
    authority, path, _option, key, url, *header, _option, question = arguments(ask)
    assert [authority, path, url] == ["--cacert", "site-ca.pem", "https://10.0.0.11:8000/v1/chat/completions"]
    assert [key, *header] == ["Authorization: Bearer KEY", "-H", "Content-Type: application/json"]
    assert json.loads(question) == {"model": "main", "messages": [{"role": "user", "content": "Who are you?"}]}


@pytest.mark.parametrize(
    ("changes", "url", "fetches"),
    [
        ({"gateway_tls": "none", "gateway_port": 8080}, "http://10.0.0.11:8080", False),
        ({"gateway_tls": "acme", "gateway_tls_names": ["llm.example.com"]}, "https://llm.example.com:8000", False),
        ({"gateway_floating_address": "10.0.0.9/24"}, "https://10.0.0.9:8000", True),
        ({"gateway_floating_address": "fd00::9/64"}, "https://[fd00::9]:8000", True),
    ],
    ids=["plain HTTP", "a public name", "floating", "IPv6"],
)
def test_the_report_has_the_address_that_clients_use(stage: Stage, changes: Any, url: str, fetches: bool) -> None:
    lines, _said = report(stage, {**SITE, **changes, "gateway_verify_seconds": 0})
    assert lines[0].startswith(f"Clients ask {url} for the models that the last command lists.")
    asked = arguments(lines[-1])
    assert f"{url}/v1/models" in asked and ("--cacert" in asked) == fetches == (len(lines) == 3)


def test_the_command_lists_the_models_if_none_makes_text(stage: Stage) -> None:
    lines, _said = report(stage, SITE, textless=["vec", "main", "spare"])
    assert arguments(lines[-1])[-1] == "https://10.0.0.11:8000/v1/models"


def test_the_report_names_the_place_of_the_key_and_the_other_gateways(stage: Stage) -> None:
    by_hand = {name: value for name, value in SITE.items() if name != "vault_gateway_client_key"}
    own = [{"name": "portal", "key": KEY}]
    (where, *_commands), _said = report(stage, {**by_hand, "gateway_keys": own}, hosts=("gw", "gw2"))
    assert "KEY is the key of portal in gateway_keys. Other gateways: gw2." in where
    lines, _said = report(stage, {**by_hand, "gateway_keys": [], "gateway_anonymous": True})
    assert "KEY" not in " ".join(lines)


def test_check_mode_reports_no_address(stage: Stage) -> None:
    assert report(stage, SITE, "--check")[0] == []


def test_the_report_is_the_last_play() -> None:
    plays = yaml.safe_load((ROOT / "playbooks/site.yml").read_text(encoding="utf-8"))
    assert plays[-1]["name"] == "Report the gateway's URL"
