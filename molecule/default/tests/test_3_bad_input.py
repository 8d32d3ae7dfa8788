# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistakes in the input: a clear error, while the engine serves."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from node import Node, changes, wait_for
from signing import SigningKey, publish

MAIN = {"name": "main", "model": "tiny-a", "port": 5005, "accelerator": "cpu"}


@pytest.fixture(autouse=True)
def untouched(deb12: Node, api_key: str) -> Iterator[None]:
    """After each mistake, the same process serves the same model."""
    pid = deb12.engine_pid()
    yield
    assert deb12.engine_pid() == pid
    assert deb12.ask(key=api_key) == "I am tiny-a."


def refused(node: Node, **extra: Any) -> str:
    """Run site.yml with a mistake. The run must fail before any change. Returns its output as one line."""
    output = node.site(check=False, **extra)
    assert changes(output) == 0, output[-3000:]
    return " ".join(output.replace("\\n", " ").split())


@dataclass(frozen=True)
class Signed:
    """The engine's image, with a signature by one of two keys."""

    reference: str
    digest: str
    ours: SigningKey
    other: SigningKey


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Signed:
    cache = Path(os.environ.get("INFERENCE_CACHE") or Path.home() / ".cache/baremetal-inference")
    # Scenarios that run at the same time sign the same image: they have the same key.
    ours, other = SigningKey(cache / "signing"), SigningKey(tmp_path_factory.mktemp("keys") / "other")
    engine = json.loads((cache / "engine-image.json").read_text())
    publish(ours, "http://127.0.0.1:5000", "vllm-cpu", engine["digest"])
    return Signed(engine["reference"], engine["digest"], ours, other)


def test_all_mistakes_in_instances_and_models_are_reported_at_once(
    deb12: Node, models: dict[str, Any], signed: Signed
) -> None:
    """One mistake is a port that another process has. The image has a valid signature, so the run reports them."""
    instances = [
        {**MAIN, "model": "tiny-aa"},
        {**MAIN, "port": 5006},
        {**MAIN, "name": "other", "port": 5006},
        {**MAIN, "name": "low", "port": 80},
        {**MAIN, "name": "late", "port": 5099},
    ]
    odd = {"model": "/x", "max_model_len": 5, "dtypee": "half", "seed": "none"}
    keys = [{"prefix": "inference-registry:5000", "key": str(signed.other.public)}, {"key": signed.ours.pem}]
    deb12.run("systemd-run --unit=stranger python3 -m http.server --bind 127.0.0.1 5099")
    wait_for("the other process listens", lambda: deb12.run("ss -Htnl sport = 5099"), 10)
    try:
        output = refused(
            deb12, instances=instances, models={**models, "odd": odd}, vllm_shm_size="big", engine_image_keys=keys
        )
    finally:
        deb12.run("systemctl stop stranger")
    assert "'tiny-aa': is not in the model registry: did you mean 'tiny-a'? known: odd, tiny-a" in output
    assert "name: 'main': is used twice" in output
    assert "port: 5006: is used twice" in output
    assert "from 1024 to 65535" in output
    assert "write 'max-model-len'" in output
    assert "did you mean 'dtype'?" in output
    assert "seed: 'none': must be a whole number" in output
    assert "vllm_shm_size: 'big'" in output
    assert "port: 5099: is taken by pid" in output and "http.server" in output
    assert "must have a signature" not in output
    assert signed.digest in deb12.run("cat /var/lib/inference/image-signatures.json")
    deb12.run("rm /var/lib/inference/image-signatures.json")


def test_instances_that_do_not_fit_are_refused(deb12: Node, models: dict[str, Any]) -> None:
    """`late` has too long requests, and needs more memory than any machine has. `main` runs, so it is not checked."""
    long = {**models, "tiny-b": {**models["tiny-b"], "max-model-len": 99999}}
    late = {**MAIN, "name": "late", "model": "tiny-b", "port": 5007}
    space = {"VLLM_CPU_KVCACHE_SPACE": "100000"}
    output = refused(deb12, instances=[MAIN, late], models=long, vllm_environment=space)
    assert "deb12: engines that this run would start here do not fit. Nothing was changed. late: does not fit" in output
    assert "max-model-len: 99999: is more than the model's 8192 tokens. For more, write hf-overrides" in output
    assert "would fit: max-model-len: 8192" in output
    assert "VLLM_CPU_KVCACHE_SPACE: 100000: together with" in output and "main: does not fit" not in output
    assert "-e vllm_check_fit=false" in output
    assert "tiny-b" not in deb12.run("ls /mnt/models")


# Ansible checks the options of all roles in the same way, and `make lint` compares their specifications. Unit tests
# show an unknown key of an instance: engine/test_instances.py.
@pytest.mark.full
@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"vllm_start_timeout": "soon"}, "vllm_start_timeout"),
        ({"docker_live_restore": "perhaps"}, "docker_live_restore"),
        ({"instances": [{**MAIN, "prot": 1}]}, "prot"),
        ({"model_store_reserve_gib": "much"}, "model_store_reserve_gib"),
    ],
)
def test_a_wrong_type_or_an_unknown_key_is_named(deb12: Node, changed: dict[str, Any], name: str) -> None:
    assert name in refused(deb12, **changed)


@pytest.mark.full
def test_a_missing_model_directory_is_refused(deb12: Node, models: dict[str, Any]) -> None:
    entry = {**models["tiny-a"], "model": "controller:/nowhere/tiny-a"}
    assert "/nowhere/tiny-a" in refused(deb12, models={**models, "tiny-a": entry})
    entry["model"] = "/nowhere/on-the-node"
    assert "/nowhere/on-the-node" in refused(deb12, models={**models, "tiny-a": entry})


# Unit tests show the same refusal: models/test_safetensors.py.
@pytest.mark.full
def test_a_truncated_weight_file_is_refused(deb12: Node, models: dict[str, Any], tmp_path: Path) -> None:
    copy = tmp_path / "tiny-a"
    shutil.copytree(models["tiny-a"]["model"].removeprefix("controller:"), copy)
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    output = refused(deb12, models={**models, "tiny-a": {**models["tiny-a"], "model": f"controller:{copy}"}})
    assert "model.safetensors" in output
    assert str(weights.stat().st_size) in output.replace(",", "")


@pytest.mark.full
def test_a_port_of_an_instance_that_left_the_inventory_is_refused(deb12: Node) -> None:
    """The inventory has a new name with the same port. The old instance still serves, and must be stopped first."""
    output = refused(deb12, instances=[{**MAIN, "name": "chat"}])
    assert "is held by instance main, which the inventory no longer declares" in output


@pytest.mark.full
def test_gpus_that_docker_cannot_hand_out_are_refused(deb12: Node) -> None:
    """Debian 12's Docker has no CDI: the run refuses an instance with GPUs before Docker would."""
    gpu = {"name": "gpu", "model": "tiny-b", "port": 5008, "gpus": [0]}
    output = refused(deb12, instances=[MAIN, gpu])
    assert "instance gpu: gpus: ['0']: cannot get its GPUs" in output
    assert "docker_version" in output


@pytest.mark.full
def test_too_little_disk_space_is_refused(deb12: Node, models: dict[str, Any]) -> None:
    image = f"inference-registry:5000/vllm-cpu@sha256:{'a' * 64}"
    assert "the image needs 100000 GiB" in refused(deb12, engine_image=image, vllm_image_gib=100000)
    # The check of the store's space needs a model that is not in the store.
    instances = [MAIN, {**MAIN, "name": "next", "model": "tiny-b", "port": 5007}]
    assert "model_store_path" in refused(deb12, instances=instances, model_store_reserve_gib=100000)
    # Docker's disk has space for the image or for the model, but not for both.
    free = int(deb12.run("df --output=avail -BG /var/lib/docker | tail -n1").strip("G "))
    output = refused(
        deb12,
        instances=instances,
        engine_image=image,
        vllm_image_gib=free * 2 // 3,
        model_store_reserve_gib=free * 2 // 3,
        model_store_path="/var/lib/docker/models",
    )
    assert "not enough space" in output


@pytest.mark.full
def test_an_image_without_digest_or_that_does_not_exist_is_refused(deb12: Node) -> None:
    assert "must name the image by digest" in refused(deb12, engine_image="inference-registry:5000/vllm-cpu:0.32.0")
    output = deb12.site(check=False, engine_image=f"inference-registry:5000/vllm-cpu@sha256:{'a' * 64}")
    assert "manifest unknown" in output, "the message of the image registry is missing"
    assert "correct engine_image" in output


# Unit tests show the same with a simulated image registry: engine/test_image_signatures.py. In CI,
# test_all_mistakes_in_instances_and_models_are_reported_at_once asks the real image registry for a valid
# signature.
@pytest.mark.full
def test_images_without_a_valid_signature_are_refused(deb12: Node, signed: Signed) -> None:
    """The node asks the image registry before the first change, for all images."""
    unsigned = f"inference-registry:5000/vllm-cpu@sha256:{'a' * 64}"
    keys = [{"prefix": "inference-registry:5000", "key": str(signed.other.public)}]
    late = {**MAIN, "name": "late", "port": 5007, "image": unsigned}
    output = refused(deb12, instances=[MAIN, late], engine_image_keys=keys)
    assert f"The image {signed.reference} must have a signature by a key of engine_image_keys: entry 1" in output
    assert "Found: 1 of other keys." in output
    assert f"The image {unsigned} must have a signature" in output
    assert "Found: none at inference-registry:5000/vllm-cpu." in output


def test_an_operating_system_that_is_not_supported_is_refused(deb12: Node) -> None:
    """The run refuses the operating system before it installs the first package."""
    deb12.run("apt-get -qq remove --yes python3-debian")
    deb12.run("cp /usr/lib/os-release /root/; sed -i 's/12/11/; s/bookworm/bullseye/' /usr/lib/os-release")
    try:
        output = refused(deb12)
    finally:
        deb12.run("cat /root/os-release > /usr/lib/os-release")
    assert "Debian GNU/Linux 11" in output
    assert "Supported: Debian 12 and 13" in output
    assert "ii" not in deb12.run("dpkg-query -W -f '${db:Status-Abbrev}' python3-debian", check=False)
