# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""HAProxy's files as a whole."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.gateway.backends import Replica
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.errors import BUILT_IN, quoted
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.files import Plan, plan
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.unit import drop_in

KEYS = [{"name": "alice", "key": "a-key-of-20-letters-"}]


def section(config: str, title: str) -> list[str]:
    """The lines of a section."""
    start = config.index(f"\n{title}\n") + len(title) + 2
    return [line.strip() for line in config[start:].split("\n\n")[0].splitlines()]


def made(settings: dict[str, Any], replicas: list[Replica], **changes: Any) -> Plan:
    found = plan({**settings, **changes}, replicas, KEYS)
    assert not found.problems
    return found


def test_servers_are_checked_once_and_followed_where_they_are_borrowed(
    settings: dict[str, Any], replicas: list[Replica]
) -> None:
    config = made(settings, replicas).config
    own = section(config, "backend set_chat")
    assert "server gpu1 192.0.2.11:5005" in own and "server gpu2 192.0.2.12:5005" in own
    assert any(line.startswith("default-server") and 'agent-send "chat\\n"' in line for line in own)
    borrowed = section(config, "backend model_large")
    assert "server chat.gpu1 192.0.2.11:5005 track set_chat/gpu1" in borrowed
    assert "server batch.gpu2 192.0.2.12:5006 track set_batch/gpu2" in borrowed
    assert not any(" check " in line for line in borrowed)
    assert "server gpu3 [2001:db8::3]:5005" in section(config, "backend set_code")


def test_a_bridge_is_a_server_that_asks_for_itself(settings: dict[str, Any], replicas: list[Replica]) -> None:
    replicas = [replace(replicas[0], bridge_port=5105), *replicas[1:]]
    config = made(settings, replicas).config
    assert 'server chat_bridge.gpu1 192.0.2.11:5105 agent-send "chat_bridge\\n"' in section(config, "backend set_chat")
    borrowed = section(config, "backend model_large")
    assert "server chat_bridge.gpu1 192.0.2.11:5105 track set_chat/chat_bridge.gpu1" in borrowed
    assert config.count("_bridge.") == 3
    assert "agent-send" not in made(settings, replicas, agent_port=0).config
    assert made(settings, replicas).backends["chat"] == ["gpu1", "gpu2"]


def test_no_secret_is_in_the_configuration(settings: dict[str, Any], replicas: list[Replica]) -> None:
    found = made(settings, replicas)
    assert found.maps["engines.map"] == "".join(
        f"{name} engine-secret\n" for name in ("set_batch", "set_chat", "model_large")
    )
    for text in (found.config, *found.files.values()):
        assert "engine-secret" not in text and KEYS[0]["key"] not in text


def test_all_files_that_the_configuration_names_are_there(settings: dict[str, Any], replicas: list[Replica]) -> None:
    found = made(settings, replicas, clients=["192.0.2.0/24"])
    for name in {*found.maps, *found.files} - {"too-large.json", "states.awk"}:
        assert name in found.config
    assert found.files["clients.acl"] == "192.0.2.0/24\n"
    assert "too-large.json" in found.files["gateway.lua"]
    assert [model["id"] for model in json.loads(found.files["models.json"])["data"]] == [
        *("Org/Coder", "batch", "chat", "code", "large")
    ]
    assert (
        "Known: Org/Coder, batch, chat, code, large"
        in json.loads(found.files["unknown-model.json"])["error"]["message"]
    )


@pytest.mark.parametrize(
    ("changes", "there", "gone"),
    [
        (
            {},
            ["balance leastconn", "retry-on conn-failure\n", "lua.hold 120"],
            ["ssl crt", "clients.acl", "str(anonymous)"],
        ),
        ({"tls": True}, ["bind 0.0.0.0:8000 ssl crt tls.pem alpn h2,http/1.1 id 1"], []),
        ({"bind_address": "::"}, ["bind :::8000 v4v6 id 1", "bind :::8404 v4v6"], []),
        ({"bind_address": "2001:db8::1"}, ["bind [2001:db8::1]:8000"], []),
        ({"anonymous": True}, ["str(anonymous) unless"], ['"invalid_api_key"']),
        ({"retry_sent": True}, ["retry-on conn-failure empty-response 500"], []),
        ({"hold_seconds": 0, "slow_start_seconds": 0, "agent_port": 0}, [], ["lua.hold", "slowstart", "agent-check"]),
        ({"affinity": "session"}, ["balance hash var(txn.affinity)", "X-Session-ID"], ["$.messages", "leastconn"]),
        ({"affinity": "prefix"}, ["balance hash var(txn.affinity)", "$.messages[1].content"], ["leastconn"]),
        ({"body_mib": 2}, ["tune.bufsize 2162688", "gt 2097152"], ["8388608"]),
    ],
)
def test_what_settings_do(
    settings: dict[str, Any], replicas: list[Replica], changes: dict[str, Any], there: list[str], gone: list[str]
) -> None:
    config = made(settings, replicas, **changes).config
    assert [text for text in there if text not in config] == []
    assert [text for text in gone if text in config] == []


def test_the_gateways_own_question_passes_whatever_paths_clients_have(
    settings: dict[str, Any], replicas: list[Replica]
) -> None:
    api = section(made(settings, replicas, paths=["/v1/embeddings"]).config, "frontend api")
    assert "acl api path -m str /v1/embeddings" in api
    refused = next(line for line in api if "unknown_url" in line)
    assert refused.endswith(" unless api or models or local { path -m str /v1/completions }")


def test_what_was_held_is_not_refused_by_a_full_queue(settings: dict[str, Any], replicas: list[Replica]) -> None:
    """It goes on all at once."""
    found = made(settings, replicas)
    refused = next(line for line in section(found.config, "backend set_chat") if "engines_busy" in line)
    assert refused.endswith(" if { queue ge 256 } !{ var(txn.held) -m bool }")
    assert 'set_var("txn.held", true)' in found.files["gateway.lua"]


def test_a_process_that_ends_outlasts_what_may_be_under_way(settings: dict[str, Any], replicas: list[Replica]) -> None:
    assert "hard-stop-after 2160s" in made(settings, replicas).config


def test_who_comes_without_a_key_has_limits_and_no_checksum(settings: dict[str, Any], replicas: list[Replica]) -> None:
    found = plan({**settings, "anonymous": True}, replicas, [])
    assert not found.problems and found.maps["keys.map"] == ""
    assert "anonymous 128\n" in found.maps["concurrency.map"] and "anonymous|set_chat 1\n" in found.maps["rights.map"]


def test_every_mistake_is_told_at_once(settings: dict[str, Any], replicas: list[Replica]) -> None:
    wrong = {
        **settings,
        "port": 0,
        "metrics_port": 0,
        "bind_address": "gw1",
        "clients": ["192.0.2.1/24"],
        "paths": ["/metrics", "/v1/models"],
        "affinity": "sticky",
        "queue_requests": 0,
        "slow_start_seconds": 181,
    }
    replicas.append(replace(replicas[0], host="gpu9", engine_key="another-secret"))
    found = plan(wrong, replicas, [{"name": "a"}])
    text = "\n".join(map(str, found.problems))
    for word in ("gateway_port", "gateway_metrics_port", "gateway_bind_address", "gateway_clients", "gateway_paths"):
        assert word in text
    for word in (
        "gateway_affinity",
        "gateway_queue_requests",
        "gateway_slow_start_seconds",
        "different keys",
        "gpu9",
        "gateway_keys[0] (a)",
    ):
        assert word in text
    assert "secret" not in text and found.config == ""


def test_a_gateway_that_nobody_could_use_is_refused(settings: dict[str, Any], replicas: list[Replica]) -> None:
    assert ["gateway_anonymous" in str(problem) for problem in plan(settings, replicas, []).problems] == [True]


def test_a_quote_stays_a_quote() -> None:
    assert quoted('it\'s {"a"}') == "'it'\"'\"'s {\"a\"}'"


def test_haproxys_own_errors_are_the_apis() -> None:
    for error in BUILT_IN:
        assert set(json.loads(error.body)["error"]) == {"message", "type", "param", "code"}


def test_states_are_saved_before_a_reload_and_a_stop() -> None:
    lines = drop_in("4G").splitlines()
    assert "MemoryMax=4G" in lines
    reload = [line for line in lines if line.startswith("ExecReload=")]
    assert (
        reload[0] == "ExecReload=" and "show servers state" in reload[2] and reload[4].endswith("kill -USR2 $MAINPID")
    )
    assert "states.awk" in reload[3]
    assert any(line.startswith("ExecStartPre=-") and "states.awk" in line for line in lines)
    assert any(line.startswith("ExecStop=-") and "show servers state" in line for line in lines)


STATES = """\
1
# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_fqdn srv_port srv_agent_addr srv_agent_port
5 set_chat 1 gpu1 192.0.2.11 2 8 - 5005 - 5004
5 set_chat 2 gpu2 192.0.2.12 2 0 - 5007 - 5004
5 set_chat 3 chat_bridge.gpu1 192.0.2.11 0 0 - 5105 - 5004
6 set_code 1 gpu3 2001:db8::3 2 0 - 5005 - 0
7 set_gone 1 gpu3 2001:db8::3 2 0 - 5005 - 5004
8 model_large 1 chat.gpu1 192.0.2.11 2 0 - 5005 - 0
8 model_large 2 chat.gpu2 192.0.2.12 2 0 - 5007 - 0

"""


@pytest.mark.parametrize(
    ("agent_port", "kept"),
    [(5004, {"gpu1", "chat_bridge.gpu1", "chat.gpu1"}), (5014, {"chat.gpu1"}), (0, {"gpu3", "chat.gpu1"})],
)
def test_a_server_whose_port_has_changed_begins_anew(
    tmp_path: Path, settings: dict[str, Any], replicas: list[Replica], agent_port: int, kept: set[str]
) -> None:
    """HAProxy would keep its old port, and its agent's, with its old state. A drain stays where nothing changed."""
    found = made(settings, [replace(replicas[0], bridge_port=5105), *replicas[1:]], agent_port=agent_port)
    texts = {"haproxy.cfg": found.config, "states.awk": found.files["states.awk"], "states": STATES}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    command = ["awk", "-f", "states.awk", "haproxy.cfg", "states"]
    lines = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines[:2] == STATES.splitlines()[:2]
    assert {line.split()[3] for line in lines[2:]} == kept
    assert set(lines) <= set(STATES.splitlines())


@pytest.mark.skipif(shutil.which("haproxy") is None, reason="no HAProxy here: the controllers' container has one")
@pytest.mark.parametrize("changes", [{}, {"affinity": "prefix"}, {"anonymous": True, "clients": ["192.0.2.1"]}])
def test_haproxy_takes_it(
    tmp_path: Path, settings: dict[str, Any], replicas: list[Replica], changes: dict[str, Any]
) -> None:
    found = made(settings, replicas, **changes)
    # The account haproxy exists where the package was installed, not on every controller.
    config = found.config.replace("user haproxy\n", f"uid {os.getuid()}\n")
    config = config.replace("group haproxy\n", f"gid {os.getgid()}\n")
    for name, text in {"haproxy.cfg": config, **found.maps, **found.files}.items():
        (tmp_path / name).write_text(text)
    command = ["haproxy", "-c", "-f", str(tmp_path / "haproxy.cfg")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
