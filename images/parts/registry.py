# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The registry that nodes pull the engine from, as a site's nodes pull from theirs."""

from __future__ import annotations

import json
import re
import subprocess
import time

from . import engine
from .tools import CACHE, IMAGES, BuildError, content_hash, debootstrap, image_exists, run, say, succeeds

NAME = "inference-registry"
NETWORK = "inference"
PORT = 5000
RECORD = CACHE / "engine-image.json"
CONFIGURATION = IMAGES / "registry/config.yml"
PACKAGES = ("docker-registry", "ca-certificates")


def build() -> str:
    """Start the registry, push the engine, and record its digest in engine-image.json."""
    if not succeeds("docker", "network", "inspect", NETWORK):
        run("docker", "network", "create", NETWORK)
    image = f"{NAME}:{content_hash(CONFIGURATION, *PACKAGES)}"
    if not image_exists(image):
        say("bootstrapping the registry")
        debootstrap("bookworm", PACKAGES, image, f"copy-in {CONFIGURATION} /etc/docker/registry/")
    serve(image)
    return push()


def serve(image: str) -> None:
    """Have the registry answer, from this image."""
    running = subprocess.run(
        ["docker", "inspect", "--format", "{{.Config.Image}} {{.State.Running}}", NAME], capture_output=True, text=True
    ).stdout.strip()
    if running != f"{image} true":
        subprocess.run(["docker", "rm", "--force", NAME], capture_output=True)
        (CACHE / "registry").mkdir(parents=True, exist_ok=True)
        run(
            *("docker", "run", "--detach", "--name", NAME, "--network", NETWORK),
            *("--publish", f"127.0.0.1:{PORT}:{PORT}"),
            *("--volume", f"{CACHE / 'registry'}:/var/lib/docker-registry", image),
            *("docker-registry", "serve", "/etc/docker/registry/config.yml"),
            advice=f"Is port {PORT} of this machine taken? See: ss -tlnp sport = {PORT}",
        )
    for _ in range(30):
        if succeeds("curl", "--silent", "--fail", "--noproxy", "*", f"http://127.0.0.1:{PORT}/v2/"):
            return
        time.sleep(0.5)
    raise BuildError(f"The registry does not answer. Its log: docker logs {NAME}")


def push() -> str:
    """Push the engine unless the registry has it. Returns the reference by which nodes pull it."""
    local = run("docker", "image", "inspect", "--format", "{{.Id}}", engine.NAME)
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    if record.get("id") == local and has(record["digest"]):
        return str(record["reference"])
    say("pushing the engine to the registry (1 to 2 minutes)")
    pushed = f"127.0.0.1:{PORT}/vllm-cpu:{engine.VERSION}"
    run("docker", "tag", engine.NAME, pushed)
    match = re.search(r"sha256:[0-9a-f]{64}", run("docker", "push", pushed))
    if match is None:
        raise BuildError("The registry told no digest of the engine's image.")
    reference = f"{NAME}:{PORT}/vllm-cpu@{match[0]}"
    RECORD.write_text(
        json.dumps({"reference": reference, "digest": match[0], "id": local, "version": engine.VERSION}) + "\n"
    )
    return reference


def has(digest: str) -> bool:
    """Whether the registry holds the engine's image of a digest."""
    url = f"http://127.0.0.1:{PORT}/v2/vllm-cpu/manifests/{digest}"
    accept = "Accept: application/vnd.docker.distribution.manifest.v2+json"
    return succeeds("curl", "--silent", "--fail", "--noproxy", "*", "--head", "--header", accept, url)
