# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of an inventory for discovered machines, checked as the roles check them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
from ansible_collections.baremetal.inference.plugins.module_utils.debian import apt_sources, disks, nftables, ssh_keys
from ansible_collections.baremetal.inference.plugins.module_utils.debian.kernel_cmdline import render
from ansible_collections.baremetal.inference.plugins.module_utils.engine.input_check import image_problems
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instances import load_instances
from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover.inventory import (
    Discovery,
    Options,
    discover,
    vault,
)
from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover.layout import Wanted
from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover.names import DECIDE
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.choice import Node, Wish
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.compatibility import load
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.plan import decide
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import ModelFacts
from ansible_collections.baremetal.inference.plugins.module_utils.models.flags.catalogue import choose
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.entries import read as read_registry
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.source import load_sources

Facts = dict[str, Any]
Results = Callable[..., Facts]
Model = Callable[..., ModelFacts]

COMMIT = "ab" * 20
IMAGE = f"vllm/vllm-openai:v0.33.0@sha256:{'12' * 32}"
DISK_DEFAULTS: Facts = {"join": "none", "options": ["noatime"], "directories": [], "adopt": False}


def options(facts: ModelFacts | None = None, **changes: Any) -> Options:
    wanted = Wanted("example/Qwen3-8B", COMMIT, facts.to_dict(), cuda="") if facts else None
    return Options(**{"login": "admin", "wanted": wanted, **changes})


def variables(found: Discovery, host: str = "", group: str = "inference") -> Facts:
    """The variables that a host gets: those of all machines, of its group, and its own."""
    folders = ["group_vars/all/", f"group_vars/{group}/", f"host_vars/{host}/"]
    got: Facts = {}
    for folder in folders:
        for path, content in found.files.items():
            if path.startswith(folder):
                got |= yaml.safe_load(content) or {}
    return got


def check(found: Discovery, host: str, gpus: list[Facts]) -> Facts:
    """Check the variables of a node by the pure checks of the roles' preflights. Returns the variables."""
    got = variables(found, host)
    registry = read_registry(got["models"], choose())
    assert registry.problems == []
    assert [item.model for item in load_instances(got["instances"], registry, gpus)] == [
        item["model"] for item in got["instances"]
    ]
    _sources, problems = load_sources(got["models"])
    assert problems == []
    # The role would read a key on the controller, and check the key's fingerprint. The test has no key: a path on the
    # node is not checked.
    apt_sources.read_sources([{**source, "key": "/srv/key.asc"} for source in got.get("common_apt_sources", [])])
    assert render(got.get("common_kernel_cmdline", []))
    if "engine_image" in got:
        assert image_problems(got["engine_image"]) == []
    return got


def enabled(content: str, mark: str = "FORMATS") -> Facts:
    """The variables of a file when a person has enabled the lines below the mark: by default, those with disks."""
    lines = content.split(mark)[1].splitlines()[1:]
    return yaml.safe_load("\n".join(line.removeprefix("# ") for line in lines))


@pytest.mark.parametrize("kind", ["hgx-h100", "hgx-h200", "hgx-b200", "a100", "l40s"])
def test_a_machine_of_each_kind_passes_the_checks_of_the_roles(kind: str, results: Results, model: Model) -> None:
    machine = results(kind)
    found = discover({"10.0.0.11": machine}, options(model("qwen3-8b"), image=IMAGE))
    name = f"{kind}-11"
    got = check(found, name, machine["gpu"]["gpus"])
    assert got["inference_address"] == "10.0.0.11"
    assert got["instances"] == [{"name": "main", "model": "qwen3-8b", "port": 5005, "gpus": 1}]
    assert got["models"]["qwen3-8b"] == {"model": "example/Qwen3-8B", "revision": COMMIT}
    wish = Wish(got["nvidia_driver_source"], got["nvidia_driver_version"], cuda="13.0")
    switched = bool(machine["gpu"]["nvswitches"] or machine["gpu"]["nvswitch_managers"])
    debian = machine["host"]["system"]["debian"]
    assert decide(wish, Node(debian, machine["gpu"]["gpus"], switched), load()).problems == []
    assert f"debian{debian}/" in got["common_apt_sources"][0]["uris"][0]
    wanted, problems = disks.declared_disks(
        [{**DISK_DEFAULTS, **one} for one in enabled(found.files[f"host_vars/{name}/main.yml"])["common_disks"]]
    )
    assert problems == [] and [one.path for one in wanted] == ["/mnt/models"]
    hosts = yaml.safe_load(found.files["hosts.yml"])["all"]
    assert hosts["vars"] == {"ansible_user": "admin", "ansible_python_interpreter": "/usr/bin/python3"}
    assert hosts["children"]["inference"] == {"hosts": {name: {"ansible_host": "10.0.0.11"}}}
    # The first node is the gateway, if no other machine is there.
    assert list(hosts["children"]["gateway"]["hosts"]) == [name]


def test_questions_are_asked_once_and_in_one_place(results: Results, model: Model) -> None:
    found = discover({"a": results("l40s"), "b": results("l40s", 12)}, options(model("qwen3-8b")))
    asked = yaml.safe_load(found.files[DECIDE])["decide"]
    assert [text.split(" ")[0] for text in asked] == [
        "common_admins",
        "common_firewall_ssh_sources",
        "gateway_clients",
        "engine_image",
        "common_disks",
        "common_disks",
    ]
    assert "nvme-a" in asked[-1] and "host_vars/l40s-12/main.yml" in asked[-1]
    # No disk is declared, and no person may log in, before a person has decided so.
    assert not {"common_disks", "common_admins", "engine_image"} & set(variables(found, "l40s-11"))


def test_the_example_of_an_admin_has_the_name_of_the_login_unless_that_is_root(results: Results) -> None:
    for login, name in (("root", "admin"), ("", "admin"), ("debian", "debian")):
        found = discover({"a": results("l40s")}, Options(login=login))
        (admin,) = enabled(found.files[DECIDE], "Answers for all machines")["common_admins"]
        assert admin["name"] == name


def test_examples_that_a_person_enables_without_an_answer_are_refused(results: Results) -> None:
    examples = enabled(discover({"a": results("l40s")}, options()).files[DECIDE], "Answers for all machines")
    assert set(examples) == {"common_admins", "common_firewall_ssh_sources", "gateway_clients", "engine_image"}
    (key,) = examples["common_admins"][0]["keys"]
    with pytest.raises(ssh_keys.KeyProblem):
        ssh_keys.parse(key)
    assert image_problems(examples["engine_image"])
    clients = {"name": "gateway", "port": 8000, "sources": examples["gateway_clients"]}
    firewall: Facts = {"name": "site", "ssh_ports": [], "trusted_interfaces": [], "log": True, "seconds": 60}
    with pytest.raises(InputError) as refused:
        nftables.parse({**firewall, "allow": [clients], "ssh_sources": examples["common_firewall_ssh_sources"]})
    assert str(refused.value).count("ADDRESS/24") == 2


def test_without_any_gpu_the_report_says_that_no_machine_serves(results: Results) -> None:
    words = "no machine has an NVIDIA GPU for engines"
    assert any(line.startswith(words) for line in discover({"a": results("none")}, options()).lines)
    for machines in ({"a": results("l40s"), "b": results("none", 12)}, {"a": results("gb10")}):
        assert not any(words in line for line in discover(machines, options()).lines)


def test_programs_that_the_site_itself_has_set_up_are_no_findings(results: Results) -> None:
    """A later discovery must not advise to stop the gateway or an engine."""
    service = {"kind": "", "pid": 9, "container": ""}
    services = [
        {**service, "program": "haproxy", "port": 8000, "unit": "haproxy.service"},
        {**service, "program": "nginx", "port": 9100, "unit": "nginx.service"},
        {**service, "kind": "vllm", "port": 5005, "unit": "", "container": "vllm-main", "models": ["main"]},
    ]

    def said(**more: Any) -> tuple[list[str], list[str]]:
        found = discover({"a": results("l40s", services=services)}, options(**more))
        lines = [word for word in ("haproxy", "nginx", "vllm-main") if word in str(found.lines)]
        return lines, [one.variable for one in found.questions if one.variable == "services"]

    assert said() == (["haproxy", "nginx", "vllm-main"], ["services"])
    assert said(names={"10.0.0.11": "l40s-11", "l40s-11": "l40s-11"}) == (["nginx"], [])


def test_secrets_differ_and_are_in_the_vault_alone(results: Results) -> None:
    found = discover({"a": results("none")}, options())
    numbers = itertools.count(1)
    secrets = yaml.safe_load(vault(lambda: f"{next(numbers):064x}"))
    assert len(set(secrets.values())) == 2 and all(len(value) == 64 for value in secrets.values())
    assert "group_vars/all/vault.yml" not in found.files
    asked = "".join(found.files.values())
    assert all(f"{{{{ {name} }}}}" in asked for name in secrets)
    assert variables(found)["gateway_keys"] == [{"name": "client-1", "key": "{{ vault_gateway_client_key }}"}]


def test_a_machine_without_gpu_becomes_the_gateway(results: Results, model: Model) -> None:
    machines = {"a": results("hgx-h100"), "b": results("none", 12), "c": results("none", 13)}
    found = discover(machines, options(model("qwen3-8b")))
    groups = yaml.safe_load(found.files["hosts.yml"])["all"]["children"]
    assert [list(groups[name]["hosts"]) for name in ("inference", "gateway", "spare")] == [
        ["hgx-h100-11"],
        ["none-12"],
        ["none-13"],
    ]
    # Ansible warns about a group of a play that the inventory does not have.
    assert groups["monitoring"] == {"hosts": {}}
    assert "instances" not in yaml.safe_load(found.files["host_vars/none-12/main.yml"])


def test_another_port_of_the_login_is_in_the_inventory(results: Results, model: Model) -> None:
    machines = {"a": {**results("hgx-h100"), "port": 2222}, "b": {**results("none", 12), "port": 22}}
    groups = yaml.safe_load(discover(machines, options(model("qwen3-8b"))).files["hosts.yml"])["all"]["children"]
    assert groups["inference"]["hosts"] == {"hgx-h100-11": {"ansible_host": "10.0.0.11", "ansible_port": 2222}}
    assert groups["gateway"]["hosts"] == {"none-12": {"ansible_host": "10.0.0.12"}}


def test_machines_that_cannot_be_nodes_get_a_line(results: Results, model: Model) -> None:
    machines = {
        "a": results("gb10"),
        "b": {"address": "10.0.0.9", "error": "cannot be reached: no route to host"},
        "c": results("l40s", 12),
    }
    found = discover(machines, options(model("qwen3-8b")))
    assert "b: is left out: cannot be reached: no route to host" in found.lines
    assert "gb10-11: is left out of all groups: is aarch64: only x86_64 is supported" in found.lines
    assert "# left out: gb10-11" in found.files["hosts.yml"]
    assert list(yaml.safe_load(found.files["hosts.yml"])["all"]["children"]["inference"]["hosts"]) == ["l40s-12"]


def test_unlike_machines_have_their_own_variables(results: Results, model: Model) -> None:
    machines = {"a": results("hgx-h100"), "b": results("l40s", 12), "c": results("v100s", 13)}
    found = discover(machines, options(model("qwen3-30b-a3b"), cuda="13.0"))
    common = yaml.safe_load(found.files["group_vars/inference/main.yml"])
    assert "nvidia_driver_version" not in common and common["nvidia_driver_source"] == "nvidia"
    for name, number in (("hgx-h100-11", 11), ("l40s-12", 12), ("v100s-13", 13)):
        kind = name.rpartition("-")[0]
        check(found, name, results(kind, number)["gpu"]["gpus"])
    assert variables(found, "hgx-h100-11")["nvidia_driver_version"] == "580.105.08"
    assert variables(found, "l40s-12")["nvidia_driver_version"] == "580"


def test_without_a_model_the_inventory_asks_for_one(results: Results) -> None:
    found = discover({"a": results("a100")}, options())
    got = check(found, "a100-11", results("a100")["gpu"]["gpus"])
    assert got["models"] == {} and got["instances"] == []
    assert any(question.variable == "models" and "which model" in question.text for question in found.questions)


def test_without_any_machine_the_inventory_has_no_node() -> None:
    found = discover({"a": {"error": "cannot be reached"}}, options())
    assert yaml.safe_load(found.files["hosts.yml"])["all"]["children"]["inference"] == {"hosts": {}}


def test_host_names_that_yaml_reads_as_other_types_stay_texts(results: Results, model: Model) -> None:
    machines = {"a": results("l40s", hostname="007"), "b": results("l40s", 12, hostname="on")}
    groups = yaml.safe_load(discover(machines, options(model("qwen3-8b"))).files["hosts.yml"])["all"]["children"]
    assert list(groups["inference"]["hosts"]) == ["007", "on"]
