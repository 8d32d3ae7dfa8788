# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Models from the network: an archive and a hub's repository, interrupted and resumed. No incomplete model gets a name
in the store."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from node import PROJECT, Node, changes, wait_for
from remote_models import COMMIT, TOKEN

PORT = 8088
WEB = f"http://127.0.0.1:{PORT}"
ROOT, LOG = "/srv/web", "/srv/web.log"
FETCH = "baremetal.inference.model_fetch"


class Web:
    """The web server on the node."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def start(self) -> None:
        self._node.run(f"systemd-run --unit web python3 /srv/remote.py {PORT} {ROOT} {LOG}")
        wait_for("the web server", lambda: self._node.run(f"curl --silent {WEB}/x; echo $?", check=False)[-1:] == "0")

    def kill(self) -> None:
        self._node.run("systemctl kill --signal=KILL web; systemctl reset-failed web", check=False)

    def break_after(self, size: int) -> None:
        self._node.run(f"echo {size} > {ROOT}/slow")

    def stop_breaking(self) -> None:
        self._node.run(f"rm -f {ROOT}/slow")

    def requests(self, path: str) -> list[str]:
        return [line for line in self._node.run(f"cat {LOG}").splitlines() if path in line]


@pytest.fixture(scope="module")
def web(deb13: Node) -> Iterator[Web]:
    node = deb13
    program = (PROJECT / "molecule/shared/remote_models.py").read_text()
    subprocess.run(node.argv("sh", "-c", "cat > /srv/remote.py"), input=program, text=True, check=True)
    node.run(f"mkdir -p {ROOT}/hub && cp -rL /mnt/models/tiny-a/*/. {ROOT}/hub && rm {ROOT}/hub/manifest.json")
    node.run(f"echo pickled > {ROOT}/hub/pytorch_model.bin; tar -C {ROOT} -cf {ROOT}/tiny.tar --exclude=*.bin hub")
    web = Web(node)
    web.start()
    yield web
    web.kill()
    node.run(f"rm -rf {ROOT} {LOG} /srv/remote.py /mnt/models/web /mnt/models/hub /mnt/models/other")
    node.run("rm -rf /run/fast/web /run/fast/.copies/web")


@pytest.fixture(scope="module")
def archive(deb13: Node, web: Web) -> dict[str, str]:
    """An entry of the model registry with the archive."""
    return {
        "model": f"{WEB}/tiny.tar",
        "checksum": f"sha256:{deb13.run(f'sha256sum {ROOT}/tiny.tar').split()[0]}",
    }


def fetch(node: Node, name: str, entry: dict[str, str], **more: Any) -> dict[str, Any]:
    return node.module(FETCH, store="/mnt/models", name=name, entry=entry, **more)


def test_an_interrupted_archive_continues_where_it_stopped(node: Node, web: Web, archive: dict[str, str]) -> None:
    """The connection breaks, then the server is killed, then the server is back."""
    web.break_after(300_000)
    result = fetch(node, "web", archive, seconds=1)
    assert (result["done"], result["have"] >= 300_000) == (False, True)
    assert "MiB" in result["text"]
    assert "left" in result["text"]
    web.kill()
    with pytest.raises(AssertionError, match="cannot be reached from this node"):
        fetch(node, "web", archive, seconds=1)
    assert node.run("ls /mnt/models/web 2>/dev/null", check=False) == ""
    web.start()
    web.stop_breaking()
    result = fetch(node, "web", archive)
    assert (result["done"], result["have"]) == (True, result["total"])
    ranges = [line.split()[2] for line in web.requests("/tiny.tar") if line.startswith("GET")]
    assert ranges[0] == "-"
    assert int(ranges[-1].removeprefix("bytes=").rstrip("-")) >= 300_000
    same = node.run("ls /mnt/models/tiny-a")
    assert (node.run("ls /mnt/models/web"), result["revision"]) == (same, same)
    assert node.run("ls -A /mnt/models/.incoming") == ""


def test_an_archive_with_a_wrong_checksum_is_refused(node: Node, web: Web, archive: dict[str, str]) -> None:
    wrong = {**archive, "checksum": f"sha256:{'0' * 64}"}
    with pytest.raises(AssertionError, match="the archive has a wrong checksum"):
        fetch(node, "other", wrong)
    assert node.run("ls /mnt/models/other 2>/dev/null", check=False) == ""


def test_a_model_of_a_hub_is_fetched_by_the_client_in_the_engines_image(node: Node, web: Web) -> None:
    """No command line shows the token, an interrupted fetch continues, and pickled weights are not fetched."""
    entry = {"model": "acme/tiny", "revision": COMMIT}
    image = node.run("docker inspect --format '{{.Config.Image}}' vllm-main")
    given = {"image": image, "hub_endpoint": WEB}
    with pytest.raises(AssertionError, match=r"refuses the request \(401\) without a token"):
        fetch(node, "hub", entry, **given)
    web.break_after(400_000)
    given["hub_token"] = TOKEN
    result = fetch(node, "hub", entry, seconds=10, **given)
    assert (result["done"], 0 < result["have"] < result["total"]) == (False, True)
    assert node.run("stat --format %a /run/inference/hub-token-*") == "600"
    (container,) = node.run("docker ps --all --filter name=inference-fetch --format '{{.Names}}'").splitlines()
    assert TOKEN not in node.run(f"docker inspect {container}")
    # The client runs as Debian's user nobody. Root owns the files of a complete model.
    assert node.run(f"docker inspect --format '{{{{.Config.User}}}}' {container}") == "65534:65534"
    web.stop_breaking()
    result = fetch(node, "hub", entry, **given)
    assert result["done"]
    assert set(node.run("stat --format %u /mnt/models/hub /mnt/models/hub/*").split()) == {"0"}
    # The client continues incomplete files, and fetches no file twice.
    assert len([line for line in web.requests("/config.json") if line.startswith("GET")]) == 1
    assert not web.requests("pytorch_model.bin")
    assert node.run("ls /mnt/models/hub") == node.run("ls /mnt/models/tiny-a")
    assert node.run("ls -A /mnt/models/.incoming; ls /run/inference | grep hub-token", check=False) == ""
    assert node.run("docker ps --all --quiet --filter name=inference-fetch") == ""


def test_the_playbook_fetches_once_and_then_uses_the_store(node: Node, web: Web, archive: dict[str, str]) -> None:
    """A hub's model must have a revision, and a model that the plan cannot check needs a permission."""
    node.run("rm -rf /mnt/models/web")
    models = {
        "web": {**archive, "dtype": "float32", "max-model-len": 512, "enforce-eager": True},
        "hub": {"model": "acme/tiny", "revision": "main"},
    }
    instances = [{"name": "third", "model": "hub", "port": 5007, "accelerator": "cpu"}]
    output = node.site("--check", "--tags", "model_store", check=False, models=models, instances=instances)
    assert "models.hub: model: 'acme/tiny': needs the key revision, too" in output
    instances[0]["model"] = "web"
    output = node.site("--check", "--tags", "model_store", check=False, models=models, instances=instances)
    assert "models.web: cannot check that the model fits before it is fetched" in " ".join(output.split())
    given: dict[str, Any] = {"models": models, "instances": instances, "model_store_allow_unplanned": True}
    output = node.site("--check", "--tags", "model_store", **given)
    assert "Would copy or fetch, and then publish: web from" in output
    output = node.site("--tags", "model_store", **given)
    assert re.search(r"web: (\d\.\d MiB) of \1", output), output
    web.kill()
    # The web server is stopped from here on.
    assert changes(node.site("--tags", "model_store", models=models, instances=instances)) == 0
