# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificate authorities of image registries, and logins of a client."""

from __future__ import annotations

import json

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian import docker_registries as registries
from ansible_collections.baremetal.inference.plugins.module_utils.debian.service_files import ServiceError

PEM = "-----BEGIN CERTIFICATE-----\n"
SECRET = "cm9vdDpodW50ZXIy"


def auths(text: str | None) -> dict[str, str]:
    """The logins of a client's configuration."""
    return {name: login["auth"] for name, login in json.loads(text or "{}").get("auths", {}).items()}


@pytest.mark.parametrize("name", ["https://registry", "..", "a/b", "", "registry:", "-x"])
def test_a_registry_that_is_not_a_host_is_a_problem(name: str) -> None:
    for state in ("present", "absent"):
        found = registries.authority_problems([{"registry": name, "ca": PEM, "state": state}])
        assert len(found) == 1 and "HOST or HOST:PORT" in found[0]


def test_an_authority_without_a_certificate_is_a_problem() -> None:
    good = {"registry": "registry.example.com:5000", "ca": PEM, "state": "present"}
    assert registries.authority_problems([good, {**good, "state": "absent", "ca": ""}]) == []
    assert 'found "/no/file"' in registries.authority_problems([{**good, "ca": "/no/file"}])[0]


def test_all_incomplete_logins_are_named() -> None:
    assert registries.login_problems({"good": SECRET}) == []
    found = registries.login_problems({"good": SECRET, "b": "", "a": ""})
    assert len(found) == 1 and "a, b must have" in found[0] and SECRET not in found[0]


def test_other_logins_stay_when_logins_are_added_and_removed() -> None:
    old = json.dumps({"auths": {"other": {"auth": "x"}, "gone": {"auth": "y"}}, "credsStore": "pass"})
    new = registries.client_config(old, "/c", {"mine": SECRET}, ["gone", "never-there"])
    assert auths(new) == {"other": "x", "mine": SECRET}
    assert json.loads(new or "")["credsStore"] == "pass"


def test_a_text_with_the_wanted_logins_stays_as_it_is() -> None:
    old = json.dumps({"auths": {"mine": {"auth": SECRET}}}, indent=7)
    assert registries.client_config(old, "/c", {"mine": SECRET}, ["gone"]) == old
    assert registries.client_config(None, "/c", {}, ["gone"]) is None
    assert auths(registries.client_config(old, "/c", {"mine": "other"}, [])) == {"mine": "other"}


@pytest.mark.parametrize("text", ["{", "[]", '{"auths": []}', f'{{"auths": "{SECRET}"}}', f"{SECRET}"])
def test_a_file_that_cannot_be_read_is_not_shown(text: str) -> None:
    with pytest.raises(ServiceError, match="/root/c cannot be used") as caught:
        registries.client_config(text, "/root/c", {"mine": "z"}, [])
    assert SECRET not in str(caught.value)
