# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The image registry that nodes pull the engine from, as the nodes of a site pull from the site's registry."""

from __future__ import annotations

import ipaddress
import json
import re
import subprocess
import time
import urllib.request
from pathlib import Path

from . import engine
from .tools import CACHE, IMAGES, BuildError, content_hash, debootstrap, image_exists, run, say, succeeds

NAME = "inference-registry"
NETWORK = "inference"
PORT = 5000
RECORD = CACHE / "engine-image.json"
STORAGE = "/var/lib/docker-registry"
CONFIGURATION = IMAGES / "registry/config.yml"
PACKAGES = ("docker-registry", "ca-certificates")


def build() -> str:
    """Start the registry, push the engine, and record its digest in engine-image.json."""
    if not succeeds("docker", "network", "inspect", NETWORK):
        create_network()
    image = f"{NAME}:{content_hash(CONFIGURATION, *PACKAGES)}"
    if not image_exists(image):
        say("bootstrapping the registry")
        debootstrap("bookworm", PACKAGES, image, f"copy-in {CONFIGURATION} /etc/docker/registry/")
    serve(image)
    return push()


def create_network() -> None:
    """Create the Docker network. Docker assigns addresses of its lower half, tests fixed ones of its upper half."""
    # Docker allows fixed addresses only in a network with a declared subnet. To find a free one, let Docker choose it.
    run("docker", "network", "create", NETWORK)
    network = json.loads(run("docker", "network", "inspect", NETWORK))[0]
    run("docker", "network", "rm", NETWORK)
    subnet = next(entry["Subnet"] for entry in network["IPAM"]["Config"] if "." in entry["Subnet"])
    lower = next(ipaddress.ip_network(subnet).subnets())
    run("docker", "network", "create", "--subnet", subnet, "--ip-range", str(lower), NETWORK)


def serve(image: str) -> None:
    """Start the registry from an image, unless it already runs. Raises BuildError if it does not answer."""
    running = subprocess.run(
        ["docker", "inspect", "--format", "{{.Config.Image}} {{.State.Running}}", NAME], capture_output=True, text=True
    ).stdout.strip()
    if running != f"{image} true" or storage_is_gone():
        subprocess.run(["docker", "rm", "--force", NAME], capture_output=True)
        (CACHE / "registry").mkdir(parents=True, exist_ok=True)
        run(
            *("docker", "run", "--detach", "--name", NAME, "--network", NETWORK),
            *("--publish", f"127.0.0.1:{PORT}:{PORT}"),
            *("--volume", f"{CACHE / 'registry'}:{STORAGE}", image),
            *("docker-registry", "serve", "/etc/docker/registry/config.yml"),
            advice=f"Is port {PORT} of this machine taken? See: ss -tlnp sport = {PORT}",
        )
    for _ in range(30):
        if answers("/v2/"):
            return
        time.sleep(0.5)
    raise BuildError(f"The registry does not answer. Its log: docker logs {NAME}")


def storage_is_gone() -> bool:
    """Whether the running registry's directory was removed. The registry would still write to the removed one."""
    return run("docker", "exec", NAME, "stat", "--format", "%h", STORAGE) == "0"


def push(image: str = engine.NAME, tag: str = engine.VERSION, kept: Path = RECORD) -> str:
    """Push an image of the engine unless the registry has it, and record it in a file of the cache. Returns the
    reference for nodes. Raises BuildError."""
    local = run("docker", "image", "inspect", "--format", "{{.Id}}", image)
    record = json.loads(kept.read_text()) if kept.exists() else {}
    if record.get("id") == local and has(record["digest"]):
        return str(record["reference"])
    say("pushing the engine to the registry (1 to 2 minutes)")
    pushed = f"127.0.0.1:{PORT}/vllm-cpu:{tag}"
    run("docker", "tag", image, pushed)
    match = re.search(r"sha256:[0-9a-f]{64}", run("docker", "push", pushed))
    if match is None:
        raise BuildError("docker push printed no digest of the engine's image. Run the build again.")
    reference = f"{NAME}:{PORT}/vllm-cpu@{match[0]}"
    kept.write_text(
        json.dumps({"reference": reference, "digest": match[0], "id": local, "version": engine.VERSION}) + "\n"
    )
    return reference


def has(digest: str) -> bool:
    """Whether the registry holds the engine's image of a digest."""
    return answers(f"/v2/vllm-cpu/manifests/{digest}", Accept="application/vnd.docker.distribution.manifest.v2+json")


def answers(path: str, **headers: str) -> bool:
    """Whether the registry answers a HEAD request with success."""
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}", headers=headers, method="HEAD")
    try:
        # Not through a proxy: a proxy cannot reach this machine's loopback address.
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10).close()
    except OSError:
        return False
    return True
