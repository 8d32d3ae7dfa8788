# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters of the gateway: engines and keys of a site as HAProxy's files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleFilterError

from ansible_collections.baremetal.inference.plugins.filter.gateway import FilterModule

DEFAULTS = Path(__file__).parents[4] / "roles/gateway/defaults/main.yml"

HOSTVARS = {
    "gpu1": {
        "inference_address": "192.0.2.11",
        "vllm_api_key": "engine-secret",
        "instances": [
            {"name": "chat", "model": "large", "port": 5005, "bridge_port": 5105},
            {"name": "old", "model": "large", "port": 5006, "state": "absent"},
        ],
    },
    "gpu2": {"inference_address": "192.0.2.12", "instances": [{"name": "chat", "model": "large", "port": 5005}]},
}
KEYS = [{"name": "alice", "key": "a-key-of-20-letters-"}]

FILTERS = FilterModule().filters()


@pytest.fixture
def settings() -> dict[str, Any]:
    """The role's defaults without the prefix of its variables, and what the role adds to them."""
    defaults = yaml.safe_load(DEFAULTS.read_text())
    roles_own = {"agent_port": 5004, "tls": False, "name": "gateway1"}
    return {**{name.removeprefix("gateway_"): value for name, value in defaults.items()}, **roles_own}


def test_a_gateway_without_a_certificate_uses_the_sites_own_ca() -> None:
    given = {"declared": "auto", "certificate": "", "serves": "", "names": [], "own_names": ["gw1"]}
    assert FILTERS["gateway_tls"](given) == {"form": "ca", "tls": True, "names": ["gw1"]}


def replicas(*hosts: str, **more: Any) -> Any:
    return FILTERS["gateway_replicas"](hosts or ("gpu1", "gpu2"), HOSTVARS, "gw1", **more)


def test_replicas_are_plain_mappings() -> None:
    (found,) = replicas("gpu1")
    assert {key: value for key, value in found.items() if value not in (None, "", ())} == (
        {
            "host": "gpu1",
            "address": "192.0.2.11",
            "name": "chat",
            "model": "large",
            "port": 5005,
            "engine_key": "engine-secret",
            "bridge_port": 5105,
            "declared": "large",
        }
    )
    assert [item["host"] for item in replicas()] == ["gpu1", "gpu2"]
    assert [item["host"] for item in replicas(leaving={"gpu1": ["chat"]})] == ["gpu2"]


def test_a_host_without_an_address_is_an_error_of_the_filter() -> None:
    hostvars = {"gpu1": {**HOSTVARS["gpu1"], "inference_address": "no.such.host.invalid. "}}
    with pytest.raises(AnsibleFilterError, match=r"^gateway_replicas: .*gpu1"):
        FILTERS["gateway_replicas"](["gpu1"], hostvars, "gw1")


def test_endpoints_are_plain_mappings() -> None:
    hostvars = {"gw1": {"ansible_host": "192.0.2.21"}, "gw2": {"ansible_host": "192.0.2.22", "gateway_metrics_port": 1}}
    assert FILTERS["gateway_endpoints"](["gw1", "gw2"], hostvars, "gw2") == [
        {"name": "gw1", "address": "192.0.2.21", "port": 8404},
        {"name": "gw2", "address": "127.0.0.1", "port": 1},
    ]
    assert FILTERS["gateway_endpoints"]([], hostvars, "gpu1") == []
    with pytest.raises(AnsibleFilterError, match=r"^gateway_endpoints: gw1: gateway_bind_address is ::1"):
        FILTERS["gateway_endpoints"](["gw1"], {"gw1": {"gateway_bind_address": "::1"}}, "gpu1")


def test_a_plan_holds_all_files(settings: dict[str, Any]) -> None:
    made = FILTERS["gateway_plan"](settings, replicas(leaving={"gpu1": ["chat"]}), KEYS)
    assert made["problems"] == []
    assert made["backends"] == {"chat": ["gpu2"]}
    assert "192.0.2.12:5005" in made["config"]
    assert set(made["maps"]) == {name for name in made["maps"] if name in made["config"]}
    assert KEYS[0]["key"] not in str(made)


def test_a_key_may_name_a_declared_model_that_no_engine_serves(settings: dict[str, Any]) -> None:
    keys = [{**KEYS[0], "models": ["chat", "later"]}]
    engines = replicas("gpu2")
    (problem,) = FILTERS["gateway_plan"](settings, engines, keys)["problems"]
    assert "later" in problem
    assert FILTERS["gateway_plan"](settings, engines, keys, ["later"])["problems"] == []


def test_a_plan_with_mistakes_names_them_and_has_no_files(settings: dict[str, Any]) -> None:
    made = FILTERS["gateway_plan"]({**settings, "port": 0}, replicas(), [])
    assert any("gateway_port" in problem for problem in made["problems"])
    assert any("gateway_keys" in problem for problem in made["problems"])
    assert (made["config"], made["maps"], made["files"]) == ("", {}, {})


def test_missing_settings_are_mistakes(settings: dict[str, Any]) -> None:
    for name in ("agent_port", "tls"):
        del settings[name]
    problems = FILTERS["gateway_plan"](settings, replicas(), KEYS)["problems"]
    assert len(problems) == 2 and "gateway_agent_port" in str(problems) and "gateway_tls" in str(problems)


def test_a_plan_has_files_and_warnings(settings: dict[str, Any]) -> None:
    engines = [{**engine, "routing": {"sources": ["user"]}} for engine in replicas("gpu2")]
    made = FILTERS["gateway_plan"](settings, engines, KEYS)
    assert "lua.prefer" in made["config"] and made["problems"] == []
    (warning,) = made["warnings"]
    assert warning.startswith("replica set chat: routing: 'affinity': has no effect")
    assert FILTERS["gateway_plan"](settings, replicas("gpu2"), KEYS)["warnings"] == []


def test_a_floating_address_is_part_of_the_plan(settings: dict[str, Any]) -> None:
    floating: dict[str, Any] = {"address": "192.0.2.10/24", "interface": "eno1", "source": "", "peers": ["192.0.2.9"]}
    floating |= {"priority": 100, "router_id": 51}
    made = FILTERS["gateway_plan"](settings, replicas("gpu2"), KEYS, [], floating)
    assert "192.0.2.10/24" in made["floating"]
    assert FILTERS["gateway_plan"](settings, replicas("gpu2"), KEYS)["floating"] == ""
    wrong = FILTERS["gateway_plan"]({**settings, "port": 0}, replicas("gpu2"), KEYS, [], {**floating, "peers": []})
    assert len(wrong["problems"]) == 2 and wrong["floating"] == ""
