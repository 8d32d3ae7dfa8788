# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""HAProxy's configuration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.gateway.backends import Place, Replica
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.files import Plan


def section(config: str, title: str) -> list[str]:
    """The lines of a section."""
    start = config.index(f"\n{title}\n") + len(title) + 2
    return [line.strip() for line in config[start:].split("\n\n")[0].splitlines()]


def test_a_server_is_checked_in_its_set_and_tracked_in_other_backends(
    settings: dict[str, Any], replicas: list[Replica], made: Callable[..., Plan]
) -> None:
    config = made(settings, replicas).config
    own = section(config, "backend set_chat")
    assert "server gpu1 192.0.2.11:5005" in own and "server gpu2 192.0.2.12:5005" in own
    assert any(line.startswith("default-server") and 'agent-send "chat\\ngateway1\\n"' in line for line in own)
    borrowed = section(config, "backend model_large")
    assert "server chat.gpu1 192.0.2.11:5005 track set_chat/gpu1" in borrowed
    assert "server batch.gpu2 192.0.2.12:5006 track set_batch/gpu2" in borrowed
    assert not any(" check " in line for line in borrowed)
    assert "server gpu3 [2001:db8::3]:5005" in section(config, "backend set_code")


def test_a_bridge_is_a_server_with_its_own_request_to_the_agent(
    settings: dict[str, Any], replicas: list[Replica], made: Callable[..., Plan]
) -> None:
    replicas = [replace(replicas[0], bridge_port=5105), *replicas[1:]]
    config = made(settings, replicas).config
    asking = 'server chat_bridge.gpu1 192.0.2.11:5105 agent-send "chat_bridge\\ngateway1\\n"'
    assert asking in section(config, "backend set_chat")
    borrowed = section(config, "backend model_large")
    assert "server chat_bridge.gpu1 192.0.2.11:5105 track set_chat/chat_bridge.gpu1" in borrowed
    assert config.count("_bridge.") == 3
    assert "agent-send" not in made(settings, replicas, agent_port=0).config
    assert 'agent-send "chat\\ngate_way_\\n"' in made(settings, replicas, name='gate way"').config
    assert made(settings, replicas).backends["chat"] == ["gpu1", "gpu2"]


def test_an_engine_that_will_be_reached_elsewhere_has_two_servers(
    settings: dict[str, Any], replicas: list[Replica], made: Callable[..., Plan]
) -> None:
    coming = Place("192.0.2.99", 5055, "192.0.2.99/5055")
    moves = replace(replicas[0], words="192.0.2.11/5005", coming=coming, bridge_port=5105, agent_address="192.0.2.99")
    found = made(settings, [moves, *replicas[1:]])
    own = section(found.config, "backend set_chat")
    assert [line for line in own if line.startswith("server ")] == [
        'server gpu1 192.0.2.11:5005 agent-addr 192.0.2.99 agent-send "chat\\ngateway1\\n192.0.2.11/5005\\n"',
        "server gpu2 192.0.2.12:5005",
        'server chat_next.gpu1 192.0.2.99:5055 agent-send "chat\\ngateway1\\n192.0.2.99/5055\\n"',
        'server chat_bridge.gpu1 192.0.2.99:5105 agent-send "chat_bridge\\ngateway1\\n"',
    ]
    borrowed = section(found.config, "backend model_large")
    assert "server chat_next.gpu1 192.0.2.99:5055 track set_chat/chat_next.gpu1" in borrowed
    assert "server chat_bridge.gpu1 192.0.2.99:5105 track set_chat/chat_bridge.gpu1" in borrowed
    assert found.files["agents.txt"].splitlines() == [
        "set_chat/gpu1 192.0.2.99 192.0.2.11/5005",
        "set_chat/chat_next.gpu1 192.0.2.99 192.0.2.99/5055",
    ]
    assert made(settings, replicas).files["agents.txt"] == ""
    assert "agent" not in section(made(settings, [moves], agent_port=0).config, "backend set_chat")[-1]


@pytest.mark.parametrize(
    ("changes", "there", "gone"),
    [
        (
            {},
            ["balance leastconn", "retry-on conn-failure\n", "lua.hold 120 5004"],
            ["ssl crt", "clients.acl", "str(anonymous)", "lua.prefer", "use-server"],
        ),
        ({"tls": True}, ["bind 0.0.0.0:8000 ssl crt tls.pem alpn h2,http/1.1 id 1"], []),
        ({"bind_address": "::"}, ["bind :::8000 v4v6 id 1", "bind :::8404 v4v6"], []),
        ({"bind_address": "2001:db8::1"}, ["bind [2001:db8::1]:8000"], []),
        ({"anonymous": True}, ["str(anonymous) unless"], ['"invalid_api_key"']),
        ({"retry_sent": True}, ["retry-on conn-failure empty-response 500"], []),
        ({"hold_seconds": 0}, ["lua.hold 0 5004"], []),
        ({"agent_port": 0}, ["lua.hold 120 0"], []),
        ({"hold_seconds": 0, "slow_start_seconds": 0, "agent_port": 0}, [], ["lua.hold", "slowstart", "agent-check"]),
        ({"affinity": "session"}, ["lua.prefer 150 230", "X-Session-ID"], ["$.messages", "balance hash"]),
        ({"affinity": "prefix"}, ["req.fhdr(X-Session-ID)", "$.messages[1].content"], ["balance hash"]),
        ({"body_mib": 2}, ["tune.bufsize 2162688", "gt 2097152"], ["8388608", "26214400"]),
    ],
)
def test_settings_change_the_configuration(
    settings: dict[str, Any],
    replicas: list[Replica],
    changes: dict[str, Any],
    there: list[str],
    gone: list[str],
    made: Callable[..., Plan],
) -> None:
    config = made(settings, replicas, **changes).config
    assert [text for text in there if text not in config] == []
    assert [text for text in gone if text in config] == []


def test_the_gateways_own_request_passes_whatever_paths_clients_have(
    settings: dict[str, Any], replicas: list[Replica], made: Callable[..., Plan]
) -> None:
    api = section(made(settings, replicas, paths=["/v1/embeddings"]).config, "frontend api")
    assert "acl api path -m str /v1/embeddings" in api
    refused = next(line for line in api if "unknown_url" in line)
    assert refused.endswith(" unless api or models or local { path -m str /v1/completions }")


def test_the_limit_of_audio_counts_once_an_engine_transcribes(
    settings: dict[str, Any], replicas: list[Replica], made: Callable[..., Plan]
) -> None:
    def limits(config: str) -> list[str]:
        return [
            line.split(" if ")[1]
            for line in section(config, "frontend api")
            if "_too_large" in line or "too_large if" in line
        ]

    silent = made(settings, replicas)
    assert limits(silent.config)[:2] == ["!audio { req.body_size gt 8388608 }", "audio { req.body_size gt 8388608 }"]
    assert "8 MiB" in silent.files["audio-too-large.json"]
    heard = made(settings, [*replicas[:3], replace(replicas[3], tasks=("transcribe",))])
    assert limits(heard.config)[:2] == ["!audio { req.body_size gt 8388608 }", "audio { req.body_size gt 26214400 }"]
    # Another engine of the same set has not reported its tasks.
    (one, *others) = replicas
    mixed = made(settings, [replace(one, tasks=("transcribe",)), replace(one, host="other", tasks=()), *others])
    assert limits(mixed.config)[1] == "audio { req.body_size gt 26214400 }"
    # The same limits apply before and after the body has arrived.
    assert limits(heard.config)[2:] == limits(heard.config)[:2]
    assert "tune.bufsize 26279936\n" in heard.config
    assert "25 MiB" in heard.files["audio-too-large.json"] and "8 MiB" in heard.files["too-large.json"]


def test_a_request_with_two_models_is_refused_before_its_rights_count(
    settings: dict[str, Any], replicas: list[Replica], made: Callable[..., Plan]
) -> None:
    api = section(made(settings, replicas).config, "frontend api")
    asked = api.index("http-request lua.model_twice if { var(txn.backend),map(several.map) -m found }")
    (refused,) = (number for number, line in enumerate(api) if '"model_twice"' in line)
    (rights,) = (number for number, line in enumerate(api) if '"model_not_allowed"' in line)
    assert asked < refused < rights
    several = "{ var(txn.backend),map(several.map) -m found }"
    assert api[refused].endswith(f" if {{ var(txn.model_twice) -m bool }} {several}")


def test_a_held_request_is_not_refused_by_a_full_queue(
    settings: dict[str, Any], replicas: list[Replica], made: Callable[..., Plan]
) -> None:
    """All held requests continue at the same time."""
    found = made(settings, replicas)
    refused = next(line for line in section(found.config, "backend set_chat") if "engines_busy" in line)
    assert refused.endswith(" if { queue ge 256 } !{ var(txn.held) -m bool }")
    assert 'set_var("txn.held", true)' in found.files["gateway.lua"]


def test_an_old_process_may_finish_the_longest_request(
    settings: dict[str, Any], replicas: list[Replica], made: Callable[..., Plan]
) -> None:
    assert "hard-stop-after 2160s" in made(settings, replicas).config


def test_nodes_read_the_servers_of_each_set_on_the_metrics_port(
    settings: dict[str, Any], replicas: list[Replica], made: Callable[..., Plan]
) -> None:
    """Only replica sets have such answers: the backend of a model borrows engines of sets."""
    metrics = section(made(settings, replicas, hold_seconds=90).config, "frontend metrics")
    sets = [line.split()[-1] for line in metrics if line.startswith("acl set ")]
    assert sets == ["/sets/batch", "/sets/chat", "/sets/code"]
    assert metrics[-2:] == [
        "http-request set-var(txn.key_mark) path,map(marks.map)",
        "http-request use-service lua.set_view",
    ]
    # Nodes report deaths by POST.
    (method,) = (line for line in metrics if "method_not_allowed" in line)
    assert method.endswith(" unless { method GET } or deaths { method POST }")
    (unknown,) = (line for line in metrics if "unknown_set" in line)
    assert "status 404" in unknown and unknown.endswith(" if { path -m beg /sets/ } !set")
    # After a reload, the old process has old states, so it refuses such requests.
    assert metrics[-3] == "http-request set-var(txn.hold_seconds) int(90)"
    (old,) = (line for line in metrics if line.endswith(" if { stopping }"))
    assert old.startswith("http-request return status 503 ")
    assert metrics.index(old) < metrics.index("http-request use-service lua.deaths if deaths") < len(metrics) - 3


def test_a_gateway_without_engines_has_no_set(settings: dict[str, Any], made: Callable[..., Plan]) -> None:
    """The condition `set` must exist all the same, because HAProxy would refuse to start without it."""
    metrics = section(made(settings, []).config, "frontend metrics")
    assert "acl set always_false" in metrics and not [line for line in metrics if "acl set path" in line]
