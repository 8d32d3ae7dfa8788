# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The example inventory, filled in from a file, passes the checks of the roles on recorded machines."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml

from ansible_collections.baremetal.inference.plugins.module_utils.backup import settings as backup
from ansible_collections.baremetal.inference.plugins.module_utils.core.secrets import weak
from ansible_collections.baremetal.inference.plugins.module_utils.debian import apt_sources, disks, ssh_keys
from ansible_collections.baremetal.inference.plugins.module_utils.debian.kernel_cmdline import render
from ansible_collections.baremetal.inference.plugins.module_utils.engine.input_check import image_problems
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instances import load_instances
from ansible_collections.baremetal.inference.plugins.module_utils.engine.served import served_models
from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover import drivers
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.keys import KEY
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.choice import Node, Wish
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.compatibility import load
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.plan import decide
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu import report
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu.products import BY_PRODUCT
from ansible_collections.baremetal.inference.plugins.module_utils.models.flags.catalogue import choose
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.entries import read as read_registry
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.source import load_sources

HERE = Path(__file__).parent
EXAMPLE = HERE.parents[2] / "inventories/example"
ARMOUR = "-----BEGIN PGP PUBLIC KEY BLOCK-----"
DISK_DEFAULTS = {"join": "none", "options": ["noatime"], "directories": [], "adopt": False}
PRODUCTS = {"hgx-h100": ("H100-80GB", 8), "pcie-l40s": ("L40S", 1)}
RECORDINGS = {
    "hgx-h100": "h100-80gb-hbm3-x8__580.105.08__dtd13.xml",
    "pcie-l40s": "l40s__595.91.07__dtd13.xml",
}

Variables = dict[str, Any]


def filled(answers: Variables) -> Variables:
    """The variables of a node: those of the example, with the answers, and without templates."""
    got: Variables = {}
    for folder in ("all", "inference"):
        for path in sorted((EXAMPLE / "group_vars" / folder).glob("*.yml")):
            name = str(path.relative_to(EXAMPLE))
            got |= {**(yaml.safe_load(path.read_text()) or {}), **(answers.get(name) or {})}

    def rendered(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: rendered(item) for key, item in value.items()}
        if isinstance(value, list):
            return [rendered(item) for item in value]
        return jinja2.Template(value).render(got) if isinstance(value, str) else value

    return {name: rendered(value) for name, value in got.items()}


def gpus(kind: str, *, recorded: bool) -> list[Variables]:
    """The GPUs of a machine: as recorded, or a sample of our own."""
    product, count = PRODUCTS[kind]
    known = BY_PRODUCT[product]
    facts: Variables = {"product": product, "compute_capability": known.compute_capability, "excluded": False}
    if recorded:
        text = (Path(os.environ["INFERENCE_SAMPLES"]) / "nvidia_smi_xml" / RECORDINGS[kind]).read_text()
        found = [asdict(gpu) for gpu in report.parse(text).gpus]
        assert len(found) == count
        return [{**gpu, **facts} for gpu in found]
    shared = {**facts, "architecture": known.architecture, "name": None, "driver": None, "reported": False}
    return [{**shared, "index": None, "pci_bus_id": f"0000:{0x1A + one:02x}:00.0"} for one in range(count)]


@pytest.mark.parametrize("kind", PRODUCTS)
def test_each_file_with_a_change_mark_has_an_entry(kind: str) -> None:
    answers = yaml.safe_load((HERE / f"{kind}.yml").read_text())
    marked = {str(path.relative_to(EXAMPLE)) for path in EXAMPLE.rglob("*.yml") if "CHANGE:" in path.read_text()}
    assert marked <= set(answers), marked - set(answers)
    for name, values in answers.items():
        known = yaml.safe_load((EXAMPLE / name).read_text()) or {}
        assert set(values) <= set(known), name


@pytest.mark.parametrize(
    "recorded",
    [
        False,
        pytest.param(
            True,
            marks=pytest.mark.skipif(not os.environ.get("INFERENCE_SAMPLES"), reason="INFERENCE_SAMPLES is not set"),
        ),
    ],
    ids=["own sample", "recorded"],
)
@pytest.mark.parametrize("kind", PRODUCTS)
def test_the_filled_example_passes_the_checks_of_the_roles(kind: str, recorded: bool) -> None:
    got = filled(yaml.safe_load((HERE / f"{kind}.yml").read_text()))
    machine = gpus(kind, recorded=recorded)
    assert weak(got) == []
    assert all(KEY.fullmatch(entry["key"]) for entry in got["gateway_keys"])
    registry = read_registry(got["models"], choose())
    assert registry.problems == []
    assert len(load_instances(got["instances"], registry, machine)) == len(got["instances"])
    assert load_sources(served_models(got["models"], got["instances"]))[1] == []
    # The example has no keys of the repositories.
    apt_sources.read_sources([{**source, "key": ARMOUR, "fingerprints": []} for source in got["common_apt_sources"]])
    assert {source["name"]: source["fingerprints"] for source in got["common_apt_sources"]} == {
        "nvidia": [drivers.CUDA_FINGERPRINTS[12]],
        "nvidia-container-toolkit": [drivers.TOOLKIT_FINGERPRINT],
    }
    assert render(got["common_kernel_cmdline"]) and image_problems(got["engine_image"]) == []
    assert [ssh_keys.parse(key).kind for admin in got["common_admins"] for key in admin["keys"]] == ["ssh-ed25519"]
    wanted, problems = disks.declared_disks([{**DISK_DEFAULTS, **one} for one in got["common_disks"]])
    assert problems == [] and disks.path_problems(wanted, []) == []
    settings = backup.Settings(got["backup_repository"], "gpu1", ("/etc/inference",), keep={"daily": 7})
    assert backup.problems(settings, {}, password=got["backup_password"]) == []
    wish = Wish(got["nvidia_driver_source"], got["nvidia_driver_version"], cuda="13.0")
    assert decide(wish, Node(12, machine, kind == "hgx-h100"), load()).problems == []


def test_every_secret_of_the_unchanged_example_is_reported_as_a_placeholder() -> None:
    lines = weak(filled({}))
    assert {line.partition(":")[0].partition("[")[0] for line in lines} == {
        "vllm_api_key",
        "gateway_keys",
        "backup_password",
        "backup_sftp_key",
    }


def test_the_ssh_key_of_the_example_is_refused() -> None:
    (admin,) = filled({})["common_admins"]
    for key in admin["keys"]:
        with pytest.raises(ssh_keys.KeyProblem, match="is the key of the example inventory"):
            ssh_keys.parse(key)
