# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the certificate comes from, and the mistakes of the inventory."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.gateway import forms

GIVEN: dict[str, Any] = {
    "declared": "auto",
    "certificate": "",
    "key": "",
    "names": [],
    "own_names": ["gw1", "192.0.2.1", ""],
    "email": "",
    "server": forms.PUBLIC_SERVER,
    "port": 8000,
    "metrics_port": 8404,
    "floating": False,
    "serves": "",
    "own": "gw1",
    "lead": "gw1",
    "authorities": {},
    "unread": [],
}


@pytest.mark.parametrize(
    ("changes", "form"),
    [
        ({}, "ca"),
        ({"serves": "tls"}, "ca"),
        # An upgraded site keeps plain HTTP until its inventory asks for something else.
        ({"serves": "plain"}, "kept"),
        ({"serves": "plain", "certificate": "/x.pem"}, "certificate"),
        ({"serves": "plain", "declared": "ca"}, "ca"),
        ({"serves": "plain", "declared": "none"}, "none"),
        ({"serves": "tls", "declared": "none"}, "none"),
        ({"declared": "acme"}, "acme"),
    ],
)
def test_the_form_depends_on_the_inventory_and_on_what_gateways_serve(changes: dict[str, Any], form: str) -> None:
    found = forms.resolve(GIVEN | changes)
    assert (found["form"], found["tls"]) == (form, form not in ("none", "kept"))


def test_the_sites_own_ca_signs_also_for_the_names_of_the_host() -> None:
    given = GIVEN | {"names": ["LLM.example.com", "2001:DB8::0:1", "*.llm.example.com"]}
    names = ["*.llm.example.com", "192.0.2.1", "2001:db8::1", "gw1", "llm.example.com"]
    assert forms.resolve(given)["names"] == names
    assert forms.resolve(given | {"declared": "acme"})["names"] == [
        name for name in names if name not in ("gw1", "192.0.2.1")
    ]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, []),
        ({"declared": "none"}, []),
        ({"declared": "yes"}, ["gateway_tls: 'yes': must be one of auto, ca, certificate, acme, none"]),
        ({"declared": "certificate"}, ["needs gateway_tls_certificate"]),
        ({"declared": "none", "certificate": "/x"}, ["contradicts gateway_tls_certificate"]),
        ({"key": "k.pem"}, ["belongs to no certificate", "gateway_tls_key: 'k.pem': must be an absolute path"]),
        ({"certificate": "x.pem"}, ["gateway_tls_certificate: 'x.pem': must be an absolute path"]),
        ({"names": ["https://x"]}, ["must be a host name or an address, without a scheme"]),
        # YAML reads such a name as a number.
        ({"names": [10.5]}, []),
        ({"own_names": ["not a name"]}, ["gateway_tls_names: is empty, and the host has no name"]),
        (
            {"declared": "acme", "port": 80, "server": "http://x", "floating": True},
            [
                "gateway_acme_email: '': must be an e-mail address: certbot registers an account",
                "gateway_acme_server",
                "gateway_tls_names",
                "gateway_port: 80",
                "gateway_floating_address",
            ],
        ),
        (
            {"declared": "acme", "email": "a@b.cd", "names": ["192.0.2.1", "gw", "*.x.org", "a.internal"]},
            [
                "'192.0.2.1': must be a full name",
                "'gw': must be a full name",
                "'*.x.org': needs the DNS",
                "'a.internal': is no",
            ],
        ),
        ({"declared": "acme", "email": "a@b.cd", "names": ["llm.example.com"]}, []),
    ],
)
def test_mistakes_are_named_together(changes: dict[str, Any], words: list[str]) -> None:
    found = list(map(str, forms.problems(GIVEN | changes)))
    assert len(found) == len(words) and all(word in line for word, line in zip(words, found, strict=True)), found


def authority(lead: bool, root: str) -> dict[str, Any]:
    return {"lead": lead, "root": root}


def test_all_gateways_must_have_one_ca() -> None:
    sound = {"gw1": authority(True, "A"), "gw2": authority(False, "A"), "gw3": authority(False, "")}
    for own in sound:
        assert forms.problems(GIVEN | {"own": own, "authorities": sound}) == []
    lost = {**sound, "gw1": authority(False, "")}
    (problem,) = forms.problems(GIVEN | {"authorities": lost})
    assert "CA is missing on gw1, but the certificates of gw2 come" in problem.message
    # A gateway that has its issuer works without the CA.
    assert forms.problems(GIVEN | {"own": "gw2", "authorities": lost}) == []
    anew = {**sound, "gw1": authority(True, "B")}
    assert forms.problems(GIVEN | {"authorities": anew}) == []
    (problem,) = forms.problems(GIVEN | {"own": "gw2", "authorities": anew})
    assert "comes from another CA than that of gw1" in problem.message
    # A gateway that the run has not read is no mistake.
    assert forms.problems(GIVEN | {"own": "gw2", "lead": "gw9", "authorities": sound}) == []


def test_the_operator_decides_which_of_two_cas_stays() -> None:
    """No message asks an operator to remove the key of a CA that clients may trust."""
    two = {"gw1": authority(True, "A"), "gw2": authority(True, "B"), "gw3": authority(False, "B")}
    (problem,) = forms.problems(GIVEN | {"own": "gw2", "authorities": two})
    assert "gw2 and gw1 each have a CA of the site. Keep the one whose certificate clients trust" in problem.message
    assert "move /var/lib/inference/gateway-tls away" in problem.message and "Remove" not in problem.message
    for own in ("gw1", "gw3"):
        assert forms.problems(GIVEN | {"own": own, "authorities": two}) == []
    # A copy of the same CA on another gateway is no mistake.
    copied = {"gw1": authority(True, "A"), "gw2": authority(True, "A")}
    assert forms.problems(GIVEN | {"own": "gw2", "authorities": copied}) == []


def test_a_gateway_that_the_run_has_not_read_may_have_the_ca() -> None:
    """Otherwise, a run with -l could make a second CA, or serve TLS while other gateways serve plain HTTP."""
    known = {"gw2": authority(False, "")}
    new: dict[str, Any] = {"own": "gw2", "lead": "gw1", "authorities": known, "unread": ["gw1", "gw3"]}
    (problem,) = forms.problems(GIVEN | new)
    assert "the run has not read gw1, gw3, which may have the CA or serve plain HTTP" in problem.message
    assert "Run baremetal.inference.site without -l, or with -l gateway" in problem.message
    # The first gateway is refused as well, since it would make the CA.
    assert forms.problems(GIVEN | new | {"lead": "gw2"}) != []
    # Nothing is in doubt: the lead was read, the gateway has an issuer, it needs no CA, or the run reads no gateway.
    sound: list[dict[str, Any]] = [
        {"authorities": {"gw1": authority(True, "A"), **known}, "unread": ["gw3"]},
        {"authorities": {"gw2": authority(False, "A")}},
        {"declared": "none"},
        {"authorities": {}},
        {"unread": []},
    ]
    for changes in sound:
        assert forms.problems(GIVEN | new | changes) == [], changes
