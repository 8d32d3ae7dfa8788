# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of the README, in their order: discover, answers, site, the CA's certificate, a question over TLS.

Then site and discover once more.
"""

from __future__ import annotations

import json
import subprocess

import pytest
import yaml
from boots import Boots
from newcomer import ADMIN, CACHE, DECIDE, MODEL, MODELS, Controller
from node import EPHEMERAL, Node, changes

pytestmark = pytest.mark.full


def test_1_discover_writes_the_inventory(controller: Controller, gateway: Node, gpu: Node) -> None:
    before = [machine.run("dpkg-query -W; ls /etc /etc/apt/*") for machine in (gateway, gpu)]
    hosts = "".join(f"{address}," for address in controller.addresses)
    said = controller.playbook(
        "baremetal.inference.discover", "-i", hosts, "-u", ADMIN, "-e", "out=mysite", "-e", f"serve={MODEL}"
    )
    assert [machine.run("dpkg-query -W; ls /etc /etc/apt/*") for machine in (gateway, gpu)] == before
    groups = controller.read("hosts.yml")["all"]
    assert groups["vars"] == {"ansible_user": ADMIN, "ansible_python_interpreter": "/usr/bin/python3"}
    assert list(groups["children"]["inference"]["hosts"]) == ["deb13"]
    assert list(groups["children"]["gateway"]["hosts"]) == ["deb12"]
    common = controller.read("group_vars/inference/main.yml")
    assert common["nvidia_driver_version"] == "580" and common["instances"][0]["gpus"] == 1
    assert "1 x H100-PCIe-80GB" in said


def test_2_site_refuses_open_questions(controller: Controller) -> None:
    said = controller.set_up(check=False)
    for question in controller.read(DECIDE)["decide"]:
        assert question.partition(":")[0] in said


def test_3_a_person_answers(controller: Controller) -> None:
    """Every answer is a line of the file that discover wrote, enabled and with the site's values."""
    path = controller.site / DECIDE
    asked = {question.partition(" ")[0] for question in controller.read(DECIDE)["decide"]}
    enabled = "\n".join(line.removeprefix("# ") for line in path.read_text().splitlines() if line.startswith("# "))
    answers = yaml.safe_load(enabled.partition("set your values.\n")[2])
    # That models go to the root file system needs no variable.
    assert asked == {*answers, "common_disks"}
    answers["common_admins"][0]["keys"] = [(EPHEMERAL / "id_ed25519.pub").read_text().strip()]
    answers["common_firewall_ssh_sources"] = answers["gateway_clients"] = ["172.16.0.0/12"]
    answers["engine_image"] = json.loads((CACHE / "engine-image.json").read_text())["reference"]
    path.write_text(yaml.safe_dump(answers))
    # Flags of the engine for this small machine.
    models = controller.read(MODELS)["models"]
    models["tiny-a"] |= {"max-model-len": 512, "enforce-eager": True}
    (controller.site / MODELS).write_text(yaml.safe_dump({"models": models}))


def test_4_site_sets_up_both_machines_and_reboots_the_one_with_nouveau(
    controller: Controller, gateway: Node, gpu: Node
) -> None:
    assert gpu.run("ls -d /sys/module/nouveau")
    with Boots(gpu) as boots, Boots(gateway) as others:
        said = controller.set_up()
    assert (boots.count, others.count) == (1, 0), said
    assert gpu.run("cat /sys/module/nvidia/version").startswith("580.")


def test_5_the_model_answers_over_tls(controller: Controller) -> None:
    address = controller.read("hosts.yml")["all"]["children"]["gateway"]["hosts"]["deb12"]["ansible_host"]
    authority = controller.home / "site-ca.pem"
    authority.write_text(controller.ssh(address, "cat /etc/haproxy/site-ca.pem"))
    key = controller.read("group_vars/all/vault.yml")["vault_gateway_client_key"]
    question = {"model": "main", "messages": [{"role": "user", "content": "Who are you?"}]}
    command = [
        *("curl", "--noproxy", "*", "--silent", "--show-error", "--cacert", str(authority)),
        f"https://{address}:8000/v1/chat/completions",
        *("-H", "Content-Type: application/json", "-H", f"Authorization: Bearer {key}", "-d", json.dumps(question)),
    ]
    said = subprocess.run(command, capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    assert json.loads(said.stdout)["choices"][0]["message"]["content"].strip() == "I am tiny-a.", said.stdout


def test_6_site_again_changes_nothing(controller: Controller) -> None:
    said = controller.set_up()
    assert changes(said) == 0, said


def test_7_discover_again_finds_no_difference(controller: Controller) -> None:
    files = {path: path.read_bytes() for path in controller.site.rglob("*") if path.is_file()}
    said = controller.playbook("-i", "mysite", "baremetal.inference.discover", "-e", "out=mysite")
    assert "nothing has changed" in said, said
    assert {path: path.read_bytes() for path in controller.site.rglob("*") if path.is_file()} == files
