# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of the README, in their order: discover, answers, site, the CA's certificate, a question over TLS.

The site has a key for its images, which the README does not ask for. Then site and discover once more.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from boots import Boots
from newcomer import ADMIN, CACHE, DECIDE, MODEL, MODELS, Controller
from node import EPHEMERAL, Node, changes, wait_for
from scan import scan
from signing import SigningKey, publish

pytestmark = pytest.mark.full

ENGINE: dict[str, str] = json.loads((CACHE / "engine-image.json").read_text())
"""The engine's image: its reference and digest."""

SERVES = """
import http.server

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"data": [{"id": "old-chat"}]}')

http.server.HTTPServer(("", 8000), Handler).serve_forever()
"""
"""Answers each GET with a list of models, as an engine does."""

VERIFIED = "/var/lib/inference/image-signatures.json"


def keys(key: SigningKey) -> list[dict[str, Any]]:
    """The variable engine_image_keys with one key."""
    return [{"prefix": "inference-registry:5000", "key": str(key.public)}]


def test_0_discover_names_a_program_that_serves_today(controller: Controller, gpu: Node) -> None:
    """The report names the program's model, which needs no second download. The program only lists models."""
    gpu.run(f"mkdir /srv/old-model; cat > /usr/local/bin/vllm <<'END'\n{SERVES}END")
    gpu.run("systemd-run --unit old-engine python3 /usr/local/bin/vllm serve /srv/old-model")
    wait_for("the program listens", lambda: gpu.run("ss -Htnl 'sport = :8000'"), 30)
    try:
        said = controller.playbook(
            "baremetal.inference.discover", "-i", f"{gpu.address},", "-u", ADMIN, "-e", "out=before"
        )
    finally:
        gpu.run("systemctl stop old-engine; rm -r /usr/local/bin/vllm /srv/old-model")
    assert "vllm (old-engine.service, port 8000) serves already: old-chat" in said
    assert "set its entry of models to model: /srv/old-model" in said
    asked = yaml.safe_load((controller.home / "before" / DECIDE).read_text())["decide"]
    (question,) = (text for text in asked if text.startswith("services "))
    assert "be stopped (systemctl disable --now old-engine.service)" in question and "Stop it last" in question


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
    # The answer to common_disks needs no variable: models go to the root file system.
    assert asked == {*answers, "common_disks"}
    answers["common_admins"][0]["keys"] = [(EPHEMERAL / "id_ed25519.pub").read_text().strip()]
    answers["common_firewall_ssh_sources"] = answers["gateway_clients"] = ["172.16.0.0/12"]
    answers["engine_image"] = ENGINE["reference"]
    # Scenarios that run at the same time sign the same image, so they use the same key.
    key = SigningKey(CACHE / "signing")
    publish(key, "http://127.0.0.1:5000", "vllm-cpu", ENGINE["digest"])
    answers["engine_image_keys"] = keys(key)
    path.write_text(yaml.safe_dump(answers))
    # Flags of the engine for this small machine.
    models = controller.read(MODELS)["models"]
    models["tiny-a"] |= {"max-model-len": 512, "enforce-eager": True}
    (controller.site / MODELS).write_text(yaml.safe_dump({"models": models}))


def test_4_a_bare_machine_refuses_an_image_that_no_key_of_the_site_has_signed(
    controller: Controller, gpu: Node, tmp_path: Path
) -> None:
    """The run refuses the image before its first change: the machine gets no image and no firewall."""
    others = json.dumps({"engine_image_keys": keys(SigningKey(tmp_path))})
    said = " ".join(controller.set_up("-e", others, check=False).replace("\\n", " ").split())
    assert f"The image {ENGINE['reference']} must have a signature by a key of engine_image_keys" in said
    assert "Found: 1 of other keys." in said
    assert gpu.run("docker images --quiet; command -v nft; ls -d /var/lib/inference 2>/dev/null", check=False) == ""


def test_5_site_sets_up_both_machines_and_reboots_the_machine_with_nouveau(
    controller: Controller, gateway: Node, gpu: Node
) -> None:
    """In this run, the machine with a GPU also pulls the image for the first time, and verifies its signature."""
    assert gpu.run("ls -d /sys/module/nouveau")
    with Boots(gpu) as boots, Boots(gateway) as others:
        said = controller.set_up()
    assert (boots.count, others.count) == (1, 0), said
    assert "This run reboots the host in a later task." in said and "The run waits for the node" in said
    # A new operator has no ansible.cfg. Ansible must print no warning that looks like a fault.
    assert "[WARNING]: Using a template" not in said and "[WARNING]: Could not match" not in said, said
    # The end of the output shows how to ask the model.
    address = controller.read("hosts.yml")["all"]["children"]["gateway"]["hosts"]["deb12"]["ansible_host"]
    end = said.rpartition("TASK [")[2]
    assert f"Clients ask https://{address}:8000 for main. KEY is vault_gateway_client_key in" in end, end
    assert f"ssh {ADMIN}@{address} cat /etc/haproxy/site-ca.pem > site-ca.pem" in end
    assert controller.read("group_vars/all/vault.yml")["vault_gateway_client_key"] not in said
    assert gpu.run("cat /sys/module/nvidia/version").startswith("580.")
    assert list(json.loads(gpu.run(f"cat {VERIFIED}"))) == [ENGINE["digest"]]
    assert gpu.run("docker inspect --format '{{.Config.Image}}' vllm-main") == ENGINE["reference"]


def test_6_the_model_answers_over_tls(controller: Controller) -> None:
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


def test_7_a_client_without_tls_gets_no_answer(controller: Controller, gateway: Node) -> None:
    asked = ["curl", "--noproxy", "*", "--silent", f"http://{gateway.address}:8000/v1/models"]
    said = subprocess.run(asked, capture_output=True, text=True)
    # "Empty reply from server", or "Connection reset by peer".
    assert said.returncode in (52, 56) and said.stdout == "", said


def test_8_each_machine_has_the_open_ports_of_the_guide(gateway: Node, gpu: Node) -> None:
    """docs/security.md lists these ports. Each machine tries all ports of the other machine."""
    every = range(1, 65536)
    assert scan(gpu, gateway.address, every) == [22, 8000, 8404]
    assert scan(gateway, gpu.address, every) == [22, 5004, 5005]


def test_9_site_again_changes_nothing(controller: Controller) -> None:
    said = controller.set_up()
    assert changes(said) == 0, said


def test_10_discover_again_finds_no_difference(controller: Controller) -> None:
    files = {path: path.read_bytes() for path in controller.site.rglob("*") if path.is_file()}
    said = controller.playbook("-i", "mysite", "baremetal.inference.discover", "-e", "out=mysite")
    # The report does not advise to stop the gateway, whose port the machine uses.
    assert "nothing has changed" in said and "listens on the port of" not in said, said
    assert {path: path.read_bytes() for path in controller.site.rglob("*") if path.is_file()} == files
