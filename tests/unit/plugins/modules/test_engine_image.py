# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module engine_image: each image is pulled once, check mode predicts pulls, and every bad image is named."""

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
OTHER = "registry.example.com/vllm@sha256:01"
THIRD = "other.example.com/vllm@sha256:02"
DOCKER = "/usr/bin/docker"


class Docker:
    """A client of Docker, and a systemd. Every pull succeeds, except for the images in `refusals`."""

    def __init__(self) -> None:
        self.present: set[str] = set()
        self.refusals: dict[str, str] = {}
        self.under_way: set[str] = set()
        """The units that pull in the background."""
        self.systemd = ""
        """Why systemd starts no unit."""
        self.changes: list[tuple[list[str], dict[str, str]]] = []
        """The commands that change the node, each with its environment."""

    def run(self, argv: list[str], environ_update: dict[str, str] | None = None) -> tuple[int, str, str]:
        name = argv[-1]
        if argv[0] == "systemctl":
            return (0 if name in self.under_way else 3), "", ""
        if argv[1] == "image":
            return (0, f"id of {name}\n", "") if name in self.present else (1, "", "No such image")
        self.changes.append((argv, environ_update or {}))
        if argv[0] == "systemd-run":
            self.under_way |= set() if self.systemd else {engine_image.unit(name)}
            return (1 if self.systemd else 0), "", self.systemd
        if name in self.refusals:
            return 1, "", self.refusals[name]
        self.present.add(name)
        return 0, "", ""

    def pulled(self) -> list[str]:
        """The images that were pulled in the foreground, in this order."""
        return [argv[-1] for argv, _environment in self.changes if argv[:2] == [DOCKER, "pull"]]

    def begun(self) -> list[str]:
        """The images whose pull began in the background, in this order."""
        return [argv[-1] for argv, _environment in self.changes if argv[0] == "systemd-run"]

    def end(self, *names: str) -> None:
        """End the pulls of these images in the background, with success."""
        self.under_way -= {engine_image.unit(name) for name in names}
        self.present |= set(names)


@pytest.fixture
def docker(monkeypatch: pytest.MonkeyPatch) -> Docker:
    found = Docker()
    monkeypatch.setattr(basic.AnsibleModule, "get_bin_path", lambda *_given: DOCKER)
    monkeypatch.setattr(basic.AnsibleModule, "run_command", found.run)
    return found


def outcome(result: dict[str, Any]) -> tuple[bool, list[str], list[str]]:
    """The result of a call: whether it changed the node, the images that the node lacked, and the pulls of the call."""
    return result["changed"], result["missing"], result["pulls"]


def test_only_missing_images_are_pulled_and_only_once(docker: Docker, run_module: RunModule) -> None:
    docker.present.add(OTHER)
    names = [IMAGE, OTHER, THIRD, IMAGE]
    foreseen = run_module(engine_image, check=True, names=names)
    assert outcome(foreseen) == (True, [IMAGE, THIRD], [IMAGE, THIRD]) and docker.changes == []
    found = run_module(engine_image, names=names, client_config="/etc/docker-client/config.json")
    assert outcome(found) == outcome(foreseen) and docker.pulled() == [IMAGE, THIRD]
    assert found["ids"] == {name: f"id of {name}" for name in (IMAGE, OTHER, THIRD)}
    assert docker.changes[0] == ([DOCKER, "pull", "--quiet", IMAGE], {"DOCKER_CONFIG": "/etc/docker-client"})
    again = run_module(engine_image, names=names)
    assert outcome(again) == (False, [], []) and again["ids"] == found["ids"] and len(docker.changes) == 2


@pytest.mark.parametrize(
    ("refusal", "advice"),
    [
        ("Error: manifest unknown", "has no image with this digest: correct engine_image, or image of the instance."),
        (
            "x509: signed by unknown authority",
            "does not trust the image registry's certificate: set docker_registry_cas.",
        ),
        ("EOF", "Check the image's name, and whether the node reaches the image registry."),
    ],
)
def test_a_refusal_of_the_image_registry_comes_with_advice(
    docker: Docker, run_module: RunModule, refusal: str, advice: str
) -> None:
    docker.refusals[IMAGE] = refusal
    said = run_module(engine_image, names=[IMAGE])
    assert said["failed"] and refusal in said["msg"] and said["msg"].endswith(advice)
    assert outcome(said) == (False, [IMAGE], [])


def test_other_images_are_pulled_before_the_failed_images_are_named(docker: Docker, run_module: RunModule) -> None:
    docker.refusals = {IMAGE: "no such host", THIRD: "Error: manifest unknown"}
    said = run_module(engine_image, names=[IMAGE, OTHER, THIRD])
    first, hint, second, other_hint = said["msg"].splitlines()
    assert first == f"The image {IMAGE} cannot be pulled: no such host" and "check its DNS" in hint
    assert second == f"The image {THIRD} cannot be pulled: Error: manifest unknown" and "this digest" in other_hint
    assert said["failed"] and docker.present == {OTHER} and outcome(said) == (True, [IMAGE, OTHER, THIRD], [OTHER])


def test_each_pull_begins_once_in_the_background(docker: Docker, run_module: RunModule) -> None:
    arguments = {"names": [IMAGE, OTHER], "client_config": "/etc/docker-client/config.json", "background": True}
    foreseen = run_module(engine_image, check=True, **arguments)
    assert outcome(foreseen) == (True, [IMAGE, OTHER], [IMAGE, OTHER]) and docker.changes == []
    found = run_module(engine_image, **arguments)
    assert outcome(found) == outcome(foreseen) and found["ids"] == {}
    assert docker.begun() == [IMAGE, OTHER] and docker.pulled() == []
    words = docker.changes[0][0]
    assert words[-4:] == [DOCKER, "pull", "--quiet", IMAGE] and "--collect" in words
    assert "--setenv=DOCKER_CONFIG=/etc/docker-client" in words
    # Both pulls are under way: from this run, or from an earlier run that was killed.
    for check in (True, False):
        assert outcome(run_module(engine_image, check=check, **arguments)) == (False, [IMAGE, OTHER], [])
    docker.end(IMAGE, OTHER)
    there = run_module(engine_image, **arguments)
    assert outcome(there) == (False, [], []) and set(there["ids"]) == {IMAGE, OTHER}
    assert len(docker.changes) == 2


def test_a_pull_that_began_in_the_background_is_one_change(docker: Docker, run_module: RunModule) -> None:
    run_module(engine_image, names=[IMAGE, OTHER], background=True)
    docker.end(OTHER)
    # Docker joins this pull with the pull in the background.
    waited = run_module(engine_image, names=[IMAGE, OTHER])
    assert outcome(waited) == (False, [IMAGE], []) and docker.pulled() == [IMAGE]
    docker.present.clear()
    run_module(engine_image, names=[IMAGE], background=True)
    assert outcome(run_module(engine_image, names=[IMAGE, OTHER])) == (True, [IMAGE, OTHER], [OTHER])


def test_a_call_with_a_time_limit_ends_with_the_last_pull_and_pulls_nothing(
    docker: Docker, run_module: RunModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_module(engine_image, names=[IMAGE, OTHER], background=True)
    passed: list[float] = []
    monkeypatch.setattr(engine_image.time, "monotonic", lambda: sum(passed))
    monkeypatch.setattr(engine_image.time, "sleep", passed.append)
    docker.end(OTHER)
    waited = run_module(engine_image, names=[IMAGE, OTHER, THIRD], wait_seconds=20)
    assert outcome(waited) == (False, [IMAGE, THIRD], []) and docker.pulled() == []
    assert waited["under_way"] == [IMAGE] and engine_image.unit(IMAGE) in waited["msg"]
    assert 20 <= sum(passed) < 21
    # The call ends with the pull.
    passed.clear()

    def sleep(seconds: float) -> None:
        passed.append(seconds)
        docker.end(IMAGE)

    monkeypatch.setattr(engine_image.time, "sleep", sleep)
    waited = run_module(engine_image, names=[IMAGE, OTHER], wait_seconds=20)
    assert outcome(waited) == (False, [], []) and waited["under_way"] == [] and "msg" not in waited
    assert sum(passed) < 1 and docker.pulled() == []


def test_a_call_with_a_time_limit_leaves_a_pull_that_failed_to_a_later_call(
    docker: Docker, run_module: RunModule
) -> None:
    run_module(engine_image, names=[IMAGE], background=True)
    docker.under_way.clear()
    waited = run_module(engine_image, names=[IMAGE], wait_seconds=20)
    assert outcome(waited) == (False, [IMAGE], []) and waited["under_way"] == [] and docker.pulled() == []


def test_a_pull_that_failed_in_the_background_is_still_one_change(docker: Docker, run_module: RunModule) -> None:
    begun = run_module(engine_image, names=[IMAGE], background=True)["pulls"]
    docker.under_way.clear()
    waited = run_module(engine_image, names=[IMAGE, OTHER], begun=begun)
    assert outcome(waited) == (True, [IMAGE, OTHER], [OTHER]) and docker.pulled() == [IMAGE, OTHER]
    docker.present.remove(IMAGE)
    assert outcome(run_module(engine_image, names=[IMAGE], begun=begun)) == (False, [IMAGE], [])


def test_a_pull_that_cannot_begin_fails_where_the_image_is_needed(docker: Docker, run_module: RunModule) -> None:
    docker.systemd = "Failed to connect to bus"
    found = run_module(engine_image, names=[IMAGE, OTHER], background=True)
    assert outcome(found) == (False, [IMAGE, OTHER], [])
    for name in (IMAGE, OTHER):
        assert f"{name} is not pulled in the background: Failed to connect to bus" in str(found["warnings"])
    docker.refusals[IMAGE] = "Error: manifest unknown"
    said = run_module(engine_image, names=[IMAGE, OTHER])
    assert "manifest unknown" in said["msg"] and outcome(said) == (True, [IMAGE, OTHER], [OTHER])


def test_each_image_has_a_unit_of_its_own() -> None:
    units = {engine_image.unit(name) for name in (IMAGE, OTHER)}
    assert len(units) == 2 and all(unit.startswith("inference-pull-") for unit in units)


def test_without_docker_check_mode_predicts_pulls_and_a_run_is_an_error(
    docker: Docker, monkeypatch: pytest.MonkeyPatch, run_module: RunModule
) -> None:
    monkeypatch.setattr(basic.AnsibleModule, "get_bin_path", lambda *_given: None)
    docker.present.add(IMAGE)
    for background in (False, True):
        foreseen = run_module(engine_image, check=True, names=[IMAGE], background=background)
        assert outcome(foreseen) == (True, [IMAGE], [IMAGE]) and foreseen["ids"] == {}
        assert "run the role docker first" in run_module(engine_image, names=[IMAGE], background=background)["msg"]
    assert docker.changes == []


class Verification:
    """Replaces the verification of signatures: records its calls, and refuses the images in `refusals`."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[dict[str, Any]], Access, Path, bool]] = []
        self.refusals: dict[str, str] = {}

    def verify(
        self, name: str, entries: list[dict[str, Any]], access: Access, record: Path, *, keep: bool
    ) -> image_signatures.Key | None:
        self.asked.append((name, entries, access, record, keep))
        if name in self.refusals:
            raise image_signatures.SignatureError(self.refusals[name])
        named = name.startswith(entries[0]["prefix"])
        return image_signatures.Key(1, "public", f"key of {name}", False) if named else None


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
    assert run_module(engine_image, names=[IMAGE], signatures={})["changed"]
    assert run_module(engine_image, names=[IMAGE], signatures={**SIGNATURES, "keys": []})["keys"] == {}
    assert verification.asked == []


def test_images_are_verified_before_any_image_is_pulled(
    docker: Docker, verification: Verification, run_module: RunModule, tmp_path: Path
) -> None:
    verification.refusals = {OTHER: "no signature", THIRD: "no answer"}
    # An image that the node already has is verified, too.
    docker.present.add(OTHER)
    for more in ({}, {"background": True}, {"verify_only": True}):
        said = run_module(engine_image, names=[IMAGE, OTHER, THIRD], signatures=SIGNATURES, **more)
        assert said["failed"] and said["msg"].splitlines() == ["no signature", "no answer"] and docker.changes == []
    name, entries, access, record, keep = verification.asked[0]
    assert (name, entries, keep) == (IMAGE, [{"prefix": "", "key": "public"}], True)
    assert record == tmp_path / "var/lib/inference/image-signatures.json"
    assert access.logins == {"registry.example.com": image_registry.login("ann", "s3cret")}
    assert access.authorities == {"registry.example.com": "pem"} and access.insecure == ["10.0.0.0/8"]
    assert (access.proxies, access.no_proxy) == ({"https": "http://proxy"}, ["registry.example.com"])
    assert access.client_config == Path("/root/.docker/config.json")


def test_the_result_has_the_key_of_each_verified_image(
    docker: Docker, verification: Verification, run_module: RunModule
) -> None:
    names = [IMAGE, OTHER]
    keys = {name: f"key of {name}" for name in names}
    found = run_module(engine_image, check=True, names=names, signatures=SIGNATURES, verify_only=True)
    assert (found["changed"], found["keys"], docker.changes) == (False, keys, [])
    assert not verification.asked[-1][-1], "check mode records no result"
    found = run_module(engine_image, names=names, signatures=SIGNATURES)
    assert outcome(found) == (True, names, names) and found["keys"] == keys


def test_images_named_by_no_entry_are_reported_once(
    docker: Docker, verification: Verification, run_module: RunModule
) -> None:
    assert "warnings" not in run_module(engine_image, names=[IMAGE], signatures=SIGNATURES, verify_only=True)
    some = {**SIGNATURES, "keys": [{"prefix": "registry.example.com", "key": "public"}]}
    pulled = run_module(engine_image, names=[IMAGE, THIRD], signatures=some)
    assert list(pulled["keys"]) == [IMAGE] and "warnings" not in pulled
    found = run_module(engine_image, names=[IMAGE, THIRD], signatures=some, verify_only=True)
    assert found["keys"] == {IMAGE: f"key of {IMAGE}"} and len(found["warnings"]) == 1
    assert f"No entry of engine_image_keys names {THIRD}: its signature is not verified." in str(found["warnings"])


def test_keys_of_another_form_are_refused_once(verification: Verification, run_module: RunModule) -> None:
    given = {**SIGNATURES, "keys": ["/site-keys/cosign.pub"]}
    said = run_module(engine_image, names=[IMAGE, OTHER], signatures=given, verify_only=True)
    assert said["msg"].endswith("mappings with key and prefix; entry 1 is a string.") and verification.asked == []
    assert said["msg"].count("engine_image_keys") == 1


def test_no_secret_is_shown(docker: Docker, verification: Verification, run_module: RunModule) -> None:
    verification.refusals[IMAGE] = "s3cret and http://proxy of registry.example.com"
    said = run_module(engine_image, names=[IMAGE], signatures=SIGNATURES)
    assert "s3cret" not in str(said) and "http://proxy" not in str(said) and "registry.example.com" in said["msg"]
    for keys in ([{"prefix": "", "key": "PRIVATE KEY"}], ["PRIVATE KEY"], "PRIVATE KEY"):
        said = run_module(engine_image, names=[IMAGE], signatures={**SIGNATURES, "keys": keys})
        assert said["failed"] and "PRIVATE KEY" not in str(said)
