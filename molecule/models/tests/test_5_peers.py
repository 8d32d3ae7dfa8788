# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two nodes need one model from the network: one node fetches the model, the other node gets it from this peer.

The scenario does not set up deb12, which has no firewall. deb12 runs the web server, and fetches first.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from node import EPHEMERAL, PROJECT, Node, changes, playbook, wait_for

PORT = 8088
ROOT, LOG = "/srv/web", "/srv/web.log"
PEERS = str(PROJECT / "molecule/models/peers.yml")
FETCH, SHARE = "baremetal.inference.model_fetch", "baremetal.inference.model_share"
UNIT = "inference-share.service"

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def web(deb12: Node, deb13: Node) -> Iterator[dict[str, str]]:
    """An entry of the model registry with an archive on deb12, at the address in the inventory."""
    inventory = EPHEMERAL / "inventory/peers.yml"
    known = {deb12.name: {"inference_address": deb12.address, "common_firewall_enabled": False}}
    inventory.write_text(json.dumps({"all": {"hosts": known}}))
    # deb12 is a copy of a snapshot with a firewall. By this inventory, deb12 has no firewall.
    deb12.run("nft delete table inet inference", check=False)
    program = (PROJECT / "molecule/shared/remote_models.py").read_text()
    subprocess.run(deb12.argv("sh", "-c", "cat > /srv/remote.py"), input=program, text=True, check=True)
    pack = deb13.argv("sh", "-c", "cd /mnt/models/tiny-a/*/ && tar -c --exclude=manifest.json .")
    tar = subprocess.run(pack, capture_output=True, check=True).stdout
    subprocess.run(deb12.argv("sh", "-c", f"mkdir -p {ROOT} && cat > {ROOT}/tiny.tar"), input=tar, check=True)
    url = f"http://{deb12.address}:{PORT}"
    deb12.run(f"systemd-run --collect --unit web python3 /srv/remote.py {PORT} {ROOT} {LOG} {deb12.address}")
    wait_for("the web server", lambda: deb13.run(f"curl --silent {url}/x; echo $?", check=False)[-1:] == "0")
    yield {"model": f"{url}/tiny.tar", "checksum": f"sha256:{deb12.run(f'sha256sum {ROOT}/tiny.tar').split()[0]}"}
    deb12.run(f"systemctl stop web; rm -rf {ROOT} {LOG} /srv/remote.py /mnt/models")
    deb13.run("rm -rf /mnt/models/web /run/fast/web /run/fast/.copies/web")
    inventory.unlink()


@pytest.fixture
def given(web: dict[str, str]) -> dict[str, Any]:
    """The variables with the models of both nodes."""
    models = {"web": {**web, "dtype": "float32", "max-model-len": 512, "enforce-eager": True}}
    instances = [{"name": "third", "model": "web", "port": 5007, "accelerator": "cpu"}]
    return {"models": models, "instances": instances, "model_store_allow_unplanned": True}


def fetches(node: Node) -> list[str]:
    """The requests for the archive, from the web server's log."""
    return [line for line in node.run(f"cat {LOG}").splitlines() if line.startswith("GET /tiny.tar")]


def both(deb12: Node, deb13: Node) -> str:
    return f"{deb12.name},{deb13.name}"


def revision(node: Node) -> str:
    return node.run("ls /mnt/models/web")


def test_one_node_fetches_and_the_other_takes_the_model_from_this_peer(
    deb12: Node, deb13: Node, given: dict[str, Any]
) -> None:
    check = " ".join(playbook(both(deb12, deb13), "--check", name=PEERS, **given).split())
    assert "web from http://" in check
    assert f"web from {deb12.name}, or from another node that has the model then" in check
    assert fetches(deb12) == []
    output = playbook(both(deb12, deb13), name=PEERS, **given)
    assert f"web from {deb12.name}: " in output
    assert len(fetches(deb12)) == 1
    assert revision(deb12) == revision(deb13) == deb13.run("ls /mnt/models/tiny-a")
    for node in (deb12, deb13):
        assert node.run(f"systemctl is-active {UNIT}", check=False) == "inactive"
        assert node.run("ls /run/inference-share/given.json 2>/dev/null", check=False) == ""
        assert node.run("ls -A /mnt/models/.incoming") == ""
    assert changes(playbook(both(deb12, deb13), name=PEERS, **given)) == 0


def test_a_node_that_lost_the_model_takes_it_from_its_peer(deb12: Node, deb13: Node, given: dict[str, Any]) -> None:
    """The peer's firewall accepts other nodes, and no other host."""
    assert f"ip saddr {{ {deb12.address} }} " in deb13.run("cat /etc/nftables.d/50-inference-site.nft")
    deb12.run("rm -r /mnt/models/web")
    output = playbook(both(deb12, deb13), name=PEERS, **given)
    assert f"web from {deb13.name}: " in output
    assert len(fetches(deb12)) == 1
    assert revision(deb12) == revision(deb13)


def test_each_node_fetches_for_itself_without_peers(deb12: Node, deb13: Node, given: dict[str, Any]) -> None:
    deb12.run("rm -r /mnt/models/web")
    playbook(both(deb12, deb13), name=PEERS, model_store_peers=False, **given)
    assert len(fetches(deb12)) == 2
    # This run opens the port again.
    playbook(both(deb12, deb13), name=PEERS, **given)


def test_a_share_needs_the_token_and_ends_by_itself(deb12: Node, deb13: Node, web: dict[str, str]) -> None:
    """A node does not trust its peer: the node reports an altered file, and publishes no model with this file."""
    models = {"web": revision(deb13)}
    shared = deb13.module(SHARE, store="/mnt/models", models=models, address=deb13.address, seconds=30)
    assert shared["problem"] == ""
    pid = deb13.run(f"systemctl show --value --property=MainPID {UNIT}")
    assert int(deb13.run(f"stat --format %u /proc/{pid}")) >= 1000
    seen = f"cat /proc/{pid}/cmdline /proc/{pid}/environ; systemctl cat {UNIT}; grep -r . /run/inference-share"
    assert shared["token"] not in deb13.run(seen)
    assert deb13.run(f"ls /proc/{pid}/root/mnt/models") == "web"
    url = f"{shared['url']}/web/{models['web']}"

    def status(path: str, token: str) -> str:
        options = f"--silent --path-as-is --output /dev/null --write-out '%{{http_code}}' --header @- {url}{path}"
        return deb12.run(f"echo 'Authorization: Bearer {token}' | curl {options}")

    assert status("/config.json", "another") == "403"
    assert status("/config.json", shared["token"]) == "200"
    assert status("/../../../../etc/passwd", shared["token"]) == "404"

    peer = {
        "host": deb13.name,
        "url": shared["url"],
        "token": shared["token"],
        "manifest": shared["manifests"]["web"],
    }
    deb12.run("rm -r /mnt/models/web")
    weights = f"/mnt/models/web/{models['web']}/model.safetensors"
    deb13.run(f"cp {weights} /srv/kept && printf X | dd of={weights} bs=1 seek=5000 conv=notrunc status=none")
    result = deb12.module(FETCH, store="/mnt/models", name="web", entry=web, peer=peer)
    assert not result["done"]
    assert "model.safetensors arrived wrong and was removed" in result["problem"]
    assert deb12.run("ls /mnt/models/web 2>/dev/null", check=False) == ""
    deb13.run(f"mv /srv/kept {weights}")
    assert deb12.module(FETCH, store="/mnt/models", name="web", entry=web, peer=peer)["done"]
    wait_for("the unit ends", lambda: deb13.run(f"systemctl is-active {UNIT}", check=False) == "inactive", seconds=60)
