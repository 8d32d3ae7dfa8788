# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module engine_image: pulled once, foreseen in check mode, and what a refusal of the image registry means."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import basic

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import image_registry, image_signatures
from ansible_collections.baremetal.inference.plugins.module_utils.engine.image_registry import Access
from ansible_collections.baremetal.inference.plugins.modules import engine_image

from .conftest import RunModule

IMAGE = "registry.example.com/vllm@sha256:00"


class Docker:
    """A client of Docker whose image registry has the image, unless it refuses."""

    def __init__(self) -> None:
        self.present = False
        self.refusal = ""
        self.pulling = False
        self.systemd = ""
        self.calls: list[tuple[list[str], dict[str, str]]] = []

    def run(self, argv: list[str], environ_update: dict[str, str] | None = None) -> tuple[int, str, str]:
        if argv[0] == "systemctl":
            return (0 if self.pulling else 3), "", ""
        self.calls.append((argv[1:], environ_update or {}))
        if argv[0] == "systemd-run":
            self.pulling = not self.systemd
            return (1 if self.systemd else 0), "", self.systemd
        if argv[1] == "image":
            return (0, "sha256:abc\n", "") if self.present else (1, "", "No such image")
        self.present = not self.refusal
        return (1, "", self.refusal) if self.refusal else (0, "", "")


@pytest.fixture
def docker(monkeypatch: pytest.MonkeyPatch) -> Docker:
    found = Docker()
    monkeypatch.setattr(basic.AnsibleModule, "get_bin_path", lambda *_given: "/usr/bin/docker")
    monkeypatch.setattr(basic.AnsibleModule, "run_command", found.run)
    return found


def test_the_image_is_pulled_once(docker: Docker, run_module: RunModule) -> None:
    assert run_module(engine_image, check=True, name=IMAGE)["changed"] and not docker.present
    found = run_module(engine_image, name=IMAGE, client_config="/etc/docker-client/config.json")
    assert (found["changed"], found["id"]) == (True, "sha256:abc")
    assert docker.calls[-2] == (["pull", "--quiet", IMAGE], {"DOCKER_CONFIG": "/etc/docker-client"})
    again = run_module(engine_image, name=IMAGE)
    assert (again["changed"], again["id"]) == (False, "sha256:abc")


@pytest.mark.parametrize(
    ("refusal", "advice"),
    [
        ("Error: manifest unknown", "The image registry has no image with this digest: correct engine_image."),
        (
            "x509: signed by unknown authority",
            "does not trust the image registry's certificate: set docker_registry_cas.",
        ),
        ("EOF", "Check engine_image, and whether the node reaches the image registry."),
    ],
)
def test_what_a_refusal_means(docker: Docker, run_module: RunModule, refusal: str, advice: str) -> None:
    docker.refusal = refusal
    said = run_module(engine_image, name=IMAGE)
    assert said["failed"] and refusal in said["msg"] and said["msg"].endswith(advice)


def test_a_pull_begins_once_in_the_background(docker: Docker, run_module: RunModule) -> None:
    arguments = {"name": IMAGE, "client_config": "/etc/docker-client/config.json", "background": True}
    found = run_module(engine_image, check=True, **arguments)
    assert (found["changed"], found["pulling"], docker.pulling) == (True, IMAGE, False)
    found = run_module(engine_image, **arguments)
    assert (found["changed"], found["pulling"]) == (True, IMAGE) and not docker.present
    words = docker.calls[-1][0]
    assert words[-4:] == ["/usr/bin/docker", "pull", "--quiet", IMAGE] and "--collect" in words
    assert "--setenv=DOCKER_CONFIG=/etc/docker-client" in words
    # A run that was killed has left it, or the same run asks again.
    again = run_module(engine_image, **arguments)
    assert (again["changed"], again["pulling"], docker.calls[-1][0][0]) == (False, IMAGE, "image")
    docker.present = True
    there = run_module(engine_image, **arguments)
    assert (there["changed"], there["id"], "pulling" in there) == (False, "sha256:abc", False)


def test_a_pull_that_cannot_begin_fails_where_the_image_is_needed(docker: Docker, run_module: RunModule) -> None:
    docker.systemd = "Failed to connect to bus"
    found = run_module(engine_image, name=IMAGE, background=True)
    assert (found["changed"], "pulling" in found) == (False, False)
    assert "not pulled in the background: Failed to connect to bus" in str(found["warnings"])
    docker.refusal = "Error: manifest unknown"
    assert "manifest unknown" in run_module(engine_image, name=IMAGE)["msg"]


def test_each_image_has_a_unit_of_its_own() -> None:
    units = {engine_image.unit(name) for name in (IMAGE, f"{IMAGE}1")}
    assert len(units) == 2 and all(unit.startswith("inference-pull-") for unit in units)


def test_a_node_without_docker(monkeypatch: pytest.MonkeyPatch, run_module: RunModule) -> None:
    monkeypatch.setattr(basic.AnsibleModule, "get_bin_path", lambda *_given: None)
    assert run_module(engine_image, check=True, name=IMAGE)["changed"]
    assert run_module(engine_image, check=True, name=IMAGE, background=True)["pulling"] == IMAGE
    assert "run the role docker first" in run_module(engine_image, name=IMAGE)["msg"]


class Verification:
    """Stands for the verification of signatures: keeps what it was asked, and refuses where a test says so."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[dict[str, Any]], Access, Path, bool]] = []
        self.refusal = ""

    def verify(
        self, name: str, entries: list[dict[str, Any]], access: Access, record: Path, *, keep: bool
    ) -> image_signatures.Key | None:
        self.asked.append((name, entries, access, record, keep))
        if self.refusal:
            raise image_signatures.SignatureError(self.refusal)
        return image_signatures.Key(1, "public", "00ff", False) if entries[0]["prefix"] == "" else None


@pytest.fixture
def verification(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Verification:
    found = Verification()
    monkeypatch.setattr(image_signatures, "verify", found.verify)
    monkeypatch.setattr(engine_image, "Paths", lambda: Paths(tmp_path))
    return found


SIGNATURES = {
    "keys": [{"key": "public"}],
    "credentials": [
        {"registry": "registry.example.com", "username": "ann", "password": "s3cret"},
        {"registry": "old.example.com", "state": "absent"},
    ],
    "authorities": [{"registry": "registry.example.com", "ca": "pem"}, {"registry": "old", "state": "absent"}],
    "insecure": ["10.0.0.0/8"],
    "proxies": {"https": "http://proxy"},
    "no_proxy": ["registry.example.com"],
}


def test_without_keys_nothing_is_verified(docker: Docker, verification: Verification, run_module: RunModule) -> None:
    assert run_module(engine_image, name=IMAGE, signatures={})["changed"]
    assert run_module(engine_image, name=IMAGE, signatures={**SIGNATURES, "keys": []})["id"]
    assert verification.asked == []


def test_an_image_is_verified_before_it_is_pulled(
    docker: Docker, verification: Verification, run_module: RunModule, tmp_path: Path
) -> None:
    verification.refusal = "no signature"
    for more in ({}, {"background": True}, {"verify_only": True}):
        said = run_module(engine_image, name=IMAGE, signatures=SIGNATURES, **more)
        assert said["failed"] and said["msg"] == "no signature" and docker.calls == []
    name, entries, access, record, keep = verification.asked[0]
    assert (name, entries, keep) == (IMAGE, [{"prefix": "", "key": "public"}], True)
    assert record == tmp_path / "var/lib/inference/image-signatures.json"
    assert access.logins == {"registry.example.com": image_registry.login("ann", "s3cret")}
    assert access.authorities == {"registry.example.com": "pem"} and access.insecure == ["10.0.0.0/8"]
    assert (access.proxies, access.no_proxy) == ({"https": "http://proxy"}, ["registry.example.com"])
    assert access.client_config == Path("/root/.docker/config.json")
    # Also an image that the node already has.
    docker.present = True
    assert run_module(engine_image, name=IMAGE, signatures=SIGNATURES)["msg"] == "no signature"


def test_a_verified_image(docker: Docker, verification: Verification, run_module: RunModule) -> None:
    found = run_module(engine_image, check=True, name=IMAGE, signatures=SIGNATURES, verify_only=True)
    assert (found["changed"], found["key"], docker.calls) == (False, "00ff", [])
    assert not verification.asked[-1][-1]
    found = run_module(engine_image, name=IMAGE, signatures=SIGNATURES)
    assert (found["changed"], found["id"], found["key"]) == (True, "sha256:abc", "00ff")
    other = {**SIGNATURES, "keys": [{"prefix": "other", "key": "public"}]}
    unnamed = run_module(engine_image, name=IMAGE, signatures=other)
    assert "key" not in unnamed and "warnings" not in unnamed


def test_an_image_that_no_entry_names_is_reported_once(verification: Verification, run_module: RunModule) -> None:
    assert "warnings" not in run_module(engine_image, name=IMAGE, signatures=SIGNATURES, verify_only=True)
    other = {**SIGNATURES, "keys": [{"prefix": "other", "key": "public"}]}
    found = run_module(engine_image, name=IMAGE, signatures=other, verify_only=True)
    assert f"No entry of engine_image_keys names {IMAGE}: its signature is not verified." in str(found["warnings"])


def test_keys_of_another_form_are_refused(verification: Verification, run_module: RunModule) -> None:
    given = {**SIGNATURES, "keys": ["/site-keys/cosign.pub"]}
    said = run_module(engine_image, name=IMAGE, signatures=given, verify_only=True)
    assert said["msg"].endswith("mappings with key and prefix; entry 1 is a string.") and verification.asked == []


def test_no_secret_is_shown(docker: Docker, verification: Verification, run_module: RunModule) -> None:
    verification.refusal = "s3cret and http://proxy of registry.example.com"
    said = run_module(engine_image, name=IMAGE, signatures=SIGNATURES)
    assert "s3cret" not in str(said) and "http://proxy" not in str(said) and "registry.example.com" in said["msg"]
    for keys in ([{"prefix": "", "key": "PRIVATE KEY"}], ["PRIVATE KEY"], "PRIVATE KEY"):
        said = run_module(engine_image, name=IMAGE, signatures={**SIGNATURES, "keys": keys})
        assert said["failed"] and "PRIVATE KEY" not in str(said)
