# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The roles' variables come from the site's, and a site variable that is wrong is reported.

Tests that only read the values of variables have the mark `once`: they are left out with the newest ansible-core,
because the scenario `rolling` computes the same variables with that version.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

HOSTS = """
[inference]
a inference_address=192.0.2.1
[gateway]
gw.invalid
"""


def test_a_gateway_without_an_address_is_reported(staged: Callable[[Sequence[str]], Any]) -> None:
    """The firewall is the first to read the gateway's address."""
    play = {
        "hosts": "a",
        "roles": ["site_variables"],
        "vars": {"instances": [], "models": {}},
        "tasks": [{"ansible.builtin.debug": {"msg": "{{ common_firewall_allow }}"}}],
    }
    succeeded, output = staged([]).run([play], HOSTS)
    assert not succeeded and "no address for gw.invalid: set inference_address or ansible_host" in output, output


@pytest.mark.once
def test_a_gateways_metrics_are_open_to_monitoring_hosts_and_to_the_other_nodes(
    staged: Callable[[Sequence[str]], Any],
) -> None:
    """From the metrics, nodes read which requests they get. c has no address that other hosts can reach."""
    rules = "common_firewall_allow | selectattr('name', 'eq', 'gateway metrics')"
    message = f"{{{{ {rules} | map(attribute='sources') | map('sort') | map('join', ' ') | list }}}}"
    play = {
        "hosts": "all",
        "roles": ["site_variables"],
        "vars": {"instances": [], "models": {}},
        "tasks": [{"ansible.builtin.debug": {"msg": f"{{{{ inventory_hostname }}}} opens {message}"}}],
    }
    nodes = "[inference]\na ansible_host=192.0.2.1\nb ansible_host=192.0.2.2\nc ansible_host=127.0.0.1\n"
    succeeded, output = staged([]).run([play], f"{nodes}[gateway]\nb\n[monitoring]\nm ansible_host=192.0.2.9")
    assert succeeded, output
    assert "b opens ['192.0.2.1 192.0.2.9']" in output and "a opens []" in output, output


def test_site_variables_replace_those_of_the_inventory_and_a_tasks_variables_replace_both(
    staged: Callable[[Sequence[str]], Any],
) -> None:
    """By variables of a task, decommission.yml can exclude removed instances where it includes a role."""
    message = "'{{ vllm_user }} of {{ __staying | length }} and {{ monitored }}'"
    play = {
        "hosts": "a",
        "roles": ["site_variables"],
        "vars": {"instances": [{"name": "main"}], "inference_user": "serve"},
        "tasks": [
            {"ansible.builtin.debug": {"msg": message}},
            {"ansible.builtin.debug": {"msg": message}, "vars": {"__leaving": {"a": ["main"]}, "vllm_user": "task"}},
        ],
    }
    succeeded, output = staged([]).run([play], "[inference]\na vllm_user=inventory monitored=perhaps")
    assert succeeded, output
    assert "serve of 1 and False" in output and "task of 0 and False" in output, output


@pytest.mark.once
def test_an_update_gets_the_time_for_which_each_gateway_holds_requests(staged: Callable[[Sequence[str]], Any]) -> None:
    play = {
        "hosts": "a",
        "roles": ["site_variables"],
        "vars": {"instances": [], "models": {}},
        "tasks": [{"ansible.builtin.debug": {"msg": "holds {{ update_gateway_holds | to_json }}"}}],
    }
    nodes = "[inference]\na inference_address=192.0.2.1\n[gateway]\ng gateway_hold_seconds=300\nh\n"
    succeeded, output = staged([]).run([play], nodes)
    assert succeeded and 'holds {"g": 300, "h": 120}' in output.replace("\\", ""), output


@pytest.mark.once
def test_rails_are_left_alone_until_the_inventory_declares_them(staged: Callable[[Sequence[str]], Any]) -> None:
    """Each node gets the variables of the other nodes' rails, to find an address that two hosts have."""
    message = "{{ inventory_hostname }}: {{ 'rdma' in site_roles }}, {{ rdma_peers | to_json }}"
    play = {
        "hosts": "inference",
        "roles": ["site_variables"],
        "vars": {"instances": [], "models": {}},
        "tasks": [{"ansible.builtin.debug": {"msg": message}}],
    }
    nodes = """
[inference]
a inference_address=192.0.2.1 rdma_host_index=1 rdma_subnets='["10.1.0.0/16"]'
b inference_address=192.0.2.2 rdma_addresses='["10.1.0.2/16"]'
c inference_address=192.0.2.3
"""
    succeeded, output = staged([]).run([play], nodes)
    assert succeeded, output
    plain = output.replace("\\", "")
    assert 'a: True, {"b": [["10.1.0.2/16"], [], 0], "c": [[], [], 0]}' in plain, output
    assert 'c: False, {"a": [[], ["10.1.0.0/16"], 1], "b": [["10.1.0.2/16"], [], 0]}' in plain, output


@pytest.mark.once
def test_gateways_keep_http_or_tls_and_have_one_ca(staged: Callable[[Sequence[str]], Any]) -> None:
    """A new gateway serves plain HTTP if any other does. The gateway with the CA signs, at any place in the group."""
    message = (
        "{{ inventory_hostname }}: {{ gateway_serves }}, signed by {{ gateway_lead }},"
        " {{ gateway_own_addresses | join }}"
    )
    play = {
        "hosts": "gateway",
        "roles": ["site_variables"],
        "vars": {"instances": [], "models": {}},
        "tasks": [{"ansible.builtin.debug": {"msg": message}}],
    }

    def output_of(declared: str = "", **serves: str) -> str:
        lines = [
            f"{name} ansible_host=192.0.2.{number} {declared if found else ''}"
            f" site_left=\"{{'gateway': {{'serves': '{found}',"
            f" 'authority': {{'lead': {name == 'c'}, 'root': ''}}}}}}\""
            for number, (name, found) in enumerate(serves.items(), 1)
        ]
        succeeded, output = staged([]).run([play], "\n".join(["[gateway]", *lines]))
        assert succeeded, output
        return str(output)

    output = output_of(a="", b="plain", c="tls")
    assert "a: plain, signed by c, 192.0.2.1" in output and "b: plain, signed by c" in output
    # TLS stays, also if the other gateways serve plain HTTP.
    assert "c: tls, signed by c" in output
    output = output_of(a="", b="tls")
    assert "a: , signed by a" in output and "b: tls, signed by a" in output, output
    # A new gateway does not follow a gateway whose gateway_tls is set: `none` counts for that gateway alone, and with
    # `ca`, its plain HTTP ends in this run.
    for declared in ("gateway_tls=none", "gateway_tls=ca"):
        output = output_of(declared, a="", b="plain")
        assert "a: , signed by a" in output and "b: plain, signed by a" in output, output
    assert "a: plain, signed by a" in output_of("gateway_tls=auto", a="", b="plain")


@pytest.mark.once
def test_a_gateway_outside_of_the_run_counts_as_unread(staged: Callable[[Sequence[str]], Any]) -> None:
    """With -l, only the hosts of the run have been read: a new gateway then makes no CA."""
    play = {
        "hosts": "gateway",
        "roles": ["site_variables"],
        "vars": {"instances": [], "models": {}},
        "tasks": [
            {"ansible.builtin.debug": {"msg": "{{ inventory_hostname }} not read: {{ gateway_unread | join(' ') }}."}},
            {
                "ansible.builtin.include_role": {"name": "baremetal.inference.gateway", "tasks_from": "plan"},
                "vars": {"gateway_anonymous": True},
            },
        ],
    }
    authorities = {"new": "'lead': False, 'root': ''", "lead": "'lead': True, 'root': 'A'"}

    def output_of(*read: str) -> tuple[bool, str]:
        lines = [f"{name} ansible_host=192.0.2.{number}" for number, name in enumerate(authorities, 1)]
        for number, name in enumerate(authorities):
            if name in read:
                lines[number] += f" site_left=\"{{'gateway': {{'serves': '', 'authority': {{{authorities[name]}}}}}}}\""
        succeeded, output = staged([]).run([play], "\n".join(["[gateway]", *lines]), "-l", ",".join(read))
        return succeeded, str(output)

    succeeded, output = output_of("new")
    assert not succeeded and "new not read: lead." in output, output
    assert "the run has not read lead, which may have the CA or serve plain HTTP" in output, output
    succeeded, output = output_of("new", "lead")
    assert succeeded and "new not read: ." in output, output
    succeeded, output = output_of("lead")
    assert succeeded and "lead not read: new." in output, output


@pytest.mark.once
def test_acme_opens_port_80(staged: Callable[[Sequence[str]], Any]) -> None:
    play = {
        "hosts": "gateway",
        "roles": ["site_variables"],
        "vars": {"instances": [], "models": {}},
        "tasks": [
            {
                "ansible.builtin.debug": {
                    "msg": "{{ gateway_tls }}: {{ __gateway_rules | map(attribute='port') | join(' ') }}"
                }
            }
        ],
    }
    hosts = "[gateway]\na ansible_host=192.0.2.1 gateway_tls=acme\nb ansible_host=192.0.2.2 gateway_tls=ca"
    succeeded, output = staged([]).run([play], hosts)
    assert succeeded and "acme: 8000 80" in output and 'ca: 8000"' in output.replace("'", '"'), output


def test_keys_and_authorities_of_images_are_read_on_the_controller(
    staged: Callable[[Sequence[str]], Any], tmp_path: Path
) -> None:
    """Keys and CAs are texts or files. Without keys, the roles get neither."""
    pem, key = "-----BEGIN CERTIFICATE-----\nAA==\n", tmp_path / "cosign.pub"
    key.write_text("-----BEGIN PUBLIC KEY-----\nBB==\n")
    play = {
        "hosts": "a",
        "roles": ["site_variables"],
        "vars": {
            "instances": [],
            "models": {},
            "engine_image": "registry.example.com/vllm",
            "docker_registry_cas": [
                {"registry": "registry.example.com", "ca": pem},
                {"registry": "r", "state": "absent"},
            ],
            "docker_no_proxy": ["a", "b"],
        },
        "tasks": [
            {"ansible.builtin.debug": {"msg": "{{ model_store_hub_image_signatures == {} }} none"}},
            {
                "ansible.builtin.debug": {"msg": "{{ vllm_image_signatures | to_json }}"},
                "vars": {"engine_image_keys": [{"key": str(key), "prefix": "registry.example.com"}, {"key": "text"}]},
            },
        ],
    }
    succeeded, output = staged([]).run([play], "[inference]\na")
    assert succeeded and "True none" in output, output
    words = output.replace('\\"', '"').replace("\\\\n", "\\n")
    kept = json.dumps([{"key": key.read_text(), "prefix": "registry.example.com"}, {"key": "text"}])
    assert f'"keys": {kept}' in words, words
    assert f'"ca": {json.dumps(pem)}' in words and '"no_proxy": ["a", "b"]' in words, words


@pytest.mark.once
def test_keys_of_images_in_another_form_reach_the_module(staged: Callable[[Sequence[str]], Any]) -> None:
    """The module's error names the mistake. An error of Ansible's filters would not."""
    forms: list[Any] = ["/keys/cosign.pub", ["/keys/cosign.pub", {"key": "text"}, 3], {"key": "text"}]
    play = {
        "hosts": "a",
        "roles": ["site_variables"],
        "vars": {"instances": [], "models": {}},
        "tasks": [
            {
                "ansible.builtin.debug": {"msg": "{{ (vllm_image_signatures['keys'] | to_json) }}"},
                "vars": {"engine_image_keys": form},
            }
            for form in forms
        ],
    }
    succeeded, output = staged([]).run([play], "[inference]\na")
    assert succeeded, output
    for form in forms:
        assert json.dumps(form) in output.replace('\\"', '"'), output


@pytest.mark.once
def test_engines_of_a_node_may_connect_only_where_the_site_allows(staged: Callable[[Sequence[str]], Any]) -> None:
    """This holds for engines with a user of their own, too. A host without engines restricts no user."""
    message = (
        "{{ inventory_hostname }}: {{ common_firewall_engine_users | join(' ') }} to"
        " {{ common_firewall_engine_allow | map(attribute='name') | join(' and ') }}."
    )
    play = {
        "hosts": "all",
        "roles": ["site_variables"],
        "vars": {
            "instances": [{"name": "main"}, {"name": "other", "user": 3000}, {"name": "old", "state": "absent"}],
            "models": {},
            "firewall_engine_allow": [{"name": "hub", "port": 443}],
        },
        "tasks": [
            {"ansible.builtin.debug": {"msg": message}},
            # baremetal.inference.decommission sets this variable for a node that it removes.
            {
                "ansible.builtin.debug": {"msg": f"left {message}"},
                "vars": {"common_firewall_engine_users": []},
                "when": "inventory_hostname == 'a'",
            },
        ],
    }
    succeeded, output = staged([]).run(
        [play], "[inference]\na ansible_host=192.0.2.1\n[gateway]\nb ansible_host=192.0.2.2"
    )
    assert succeeded and "left a: to ." in output, output
    assert "a: inference 3000 to hub." in output and "b: to ." in output, output
