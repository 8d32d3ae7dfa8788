# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The routing that entries of the model registry ask for."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.flags.catalogue import choose
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.entries import read
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.routing import Routing, of

LARGE: dict[str, Any] = {"model": "/srv/large"}


def refused(**entry: Any) -> list[str]:
    return list(map(str, read({"large": {**LARGE, **entry}}, choose()).problems))


@pytest.mark.parametrize(
    ("entry", "routing"),
    [
        ({}, None),
        ({"routing": "least-connections"}, Routing()),
        ({"routing": "affinity"}, Routing(("prefix",))),
        ({"routing": "affinity", "affinity-prefix": 512, "affinity-load": 200}, Routing(("prefix",), "", 512, 200)),
        ({"routing": "affinity", "affinity-key": "user"}, Routing(("user",))),
        (
            {"routing": "affinity", "affinity-key": ["header", "prefix"], "affinity-header": "X-Session-ID"},
            Routing(("header", "prefix"), "X-Session-ID"),
        ),
    ],
)
def test_the_routing_of_an_entry_is_read(entry: dict[str, Any], routing: Routing | None) -> None:
    assert refused(**entry) == []
    found = of({"large": {**LARGE, **entry}}, "large")
    assert found == routing
    assert found is None or Routing.from_dict(asdict(found)) == found


def test_variants_and_adapters_have_the_routing_of_their_base() -> None:
    models = {
        "large": {**LARGE, "routing": "affinity"},
        "bot": {"base": "large", "system-prompt": "Be brief."},
        "bulk": {"base": "large", "routing": "least-connections"},
        "legal": {"base": "large", "adapter": "/srv/legal"},
    }
    assert not read(models, choose()).problems
    assert of(models, "bot") == of(models, "legal") == of(models, "large") == Routing(("prefix",))
    assert of(models, "bulk") == Routing()
    assert of(models, "gone") is None


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"routing": "sticky"}, "must be one of least-connections, affinity"),
        ({"routing": "affinity", "affinity-key": "cookie"}, "must be one of header, user, prefix, or a list"),
        ({"routing": "affinity", "affinity-key": []}, "must be one of header, user, prefix, or a list"),
        ({"routing": "affinity", "affinity-key": ["user", "user"]}, "names a source twice"),
        ({"routing": "affinity", "affinity-key": "header"}, "no header is named: set affinity-header"),
        ({"routing": "affinity", "affinity-header": "X-Session-ID"}, "does nothing unless affinity-key has header"),
        (
            {"routing": "affinity", "affinity-key": "header", "affinity-header": "two words"},
            "must be the name of a header",
        ),
        (
            {"routing": "affinity", "affinity-key": "header", "affinity-header": "Authorization"},
            "the gateway removes this header",
        ),
        (
            {"routing": "affinity", "affinity-key": "header", "affinity-header": "X-Request-Id"},
            "each request has another value",
        ),
        ({"routing": "affinity", "affinity-prefix": 0}, "from 1 to 65536: bytes of the prompt"),
        ({"routing": "affinity", "affinity-prefix": True}, "from 1 to 65536"),
        (
            {"routing": "affinity", "affinity-key": "user", "affinity-prefix": 9},
            "does nothing unless affinity-key has prefix",
        ),
        ({"routing": "affinity", "affinity-load": 100}, "from 110 to 1000: percent of the mean load"),
        ({"affinity-load": 150}, "does nothing without routing: affinity"),
        ({"routing": "least-connections", "affinity-key": "user"}, "does nothing without routing: affinity"),
    ],
)
def test_a_wrong_value_or_keys_that_do_not_fit_each_other_are_refused(entry: dict[str, Any], words: str) -> None:
    (problem,) = refused(**entry)
    assert words in problem and problem.startswith("models.large: ")
    # The check of the model registry reports the mistake: a gateway does not guess.
    if "affinity-prefix" in entry and words.startswith("from"):
        assert of({"large": {**LARGE, **entry}}, "large") is None


def test_all_problems_of_routing_are_reported_at_once() -> None:
    wrong = {"routing": "affinity", "affinity-key": "header", "affinity-prefix": 0, "affinity-load": "much"}
    assert len(refused(**wrong)) == 4


def test_an_adapter_has_no_routing_of_its_own() -> None:
    models = {"large": LARGE, "legal": {"base": "large", "adapter": "/srv/legal", "routing": "affinity"}}
    (problem,) = map(str, read(models, choose()).problems)
    assert "models.legal: routing: 'affinity': is no key of an adapter" in problem


def test_affinity_without_prefix_caching_is_a_warning() -> None:
    for off in ({"enable-prefix-caching": False}, {"no-enable-prefix-caching": True}):
        found = read({"large": {**LARGE, "routing": "affinity", **off}}, choose())
        assert any("enable-prefix-caching is off" in str(warning) for warning in found.warnings)
    assert not read({"large": {**LARGE, "routing": "affinity"}}, choose()).warnings
