# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""HAProxy's files as a whole."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.environment import mark
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.backends import Place, Replica
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.files import Plan, plan

KEYS = [{"name": "alice", "key": "a-key-of-20-letters-"}]


def test_no_secret_is_in_the_configuration(
    settings: dict[str, Any], replicas: list[Replica], made: Callable[..., Plan]
) -> None:
    found = made(settings, replicas)
    assert found.maps["engines.map"] == "".join(
        f"{name} engine-secret\n" for name in ("set_batch", "set_chat", "model_large")
    )
    for text in (found.config, *found.files.values()):
        assert "engine-secret" not in text and KEYS[0]["key"] not in text


def test_the_configuration_or_gateway_lua_names_each_file_that_haproxy_reads(
    settings: dict[str, Any], replicas: list[Replica], made: Callable[..., Plan]
) -> None:
    found = made(settings, replicas, clients=["192.0.2.0/24"])
    for name in {*found.maps, *found.files} - {"too-large.json", "audio-too-large.json", "agents.txt", "states.awk"}:
        assert name in found.config
    assert found.files["clients.acl"] == "192.0.2.0/24\n"
    for name in ("too-large.json", "audio-too-large.json", "agents.txt"):
        assert f'"{name}"' in found.files["gateway.lua"]
    assert [model["id"] for model in json.loads(found.files["models.json"])["data"]] == [
        *("Org/Coder", "batch", "chat", "code", "large")
    ]
    assert (
        "Known: Org/Coder, batch, chat, code, large"
        in json.loads(found.files["unknown-model.json"])["error"]["message"]
    )


PATHS = ["/v1/chat/completions", "/v1/embeddings", "/v1/rerank", "/v1/own", "/pooling"]


def test_a_path_that_no_task_serves_is_answered_with_the_right_paths(
    settings: dict[str, Any], replicas: list[Replica], made: Callable[..., Plan]
) -> None:
    one, two, batch, code = replicas
    reported = [
        replace(one, tasks=("generate",)),
        replace(two, tasks=("generate",)),
        replace(batch, tasks=("embed", "score")),
        replace(code, tasks=("classify",)),
    ]
    chat = "Its task is generate. Paths: /v1/chat/completions"
    classify = "Its task is classify. Paths: /pooling"
    # The model that two sets serve has the tasks of both.
    assert made(settings, reported, paths=PATHS).maps["wrong_tasks.map"].splitlines() == [
        "set_batch|/v1/chat/completions Its tasks are embed, score. Paths: /v1/embeddings, /pooling, /v1/rerank",
        f"set_chat|/v1/embeddings {chat}",
        f"set_chat|/v1/rerank {chat}",
        f"set_chat|/pooling {chat}",
        *(f"set_code|{path} {classify}" for path in PATHS[:3]),
    ]
    assert made(settings, reported, paths=PATHS[:2]).maps["wrong_tasks.map"].splitlines()[-1] == (
        "set_code|/v1/embeddings Its task is classify. Paths: none of this gateway"
    )
    # The engine decides while a node has not reported.
    assert made(settings, replicas, paths=PATHS).maps["wrong_tasks.map"] == ""
    assert "set_chat" not in made(settings, [*reported[:1], two, *reported[2:]], paths=PATHS).maps["wrong_tasks.map"]


def test_only_engines_with_adapters_serve_several_models(
    settings: dict[str, Any], replicas: list[Replica], made: Callable[..., Plan]
) -> None:
    one, two, batch, code = replicas
    assert made(settings, replicas).maps["several.map"] == ""
    several = [replace(one, adapters=("legal",)), two, batch, replace(code, declared_adapters=("legal",))]
    found = made(settings, several).maps["several.map"]
    # The backends model_large and model_legal borrow such engines, so the map has these backends, too.
    assert found.splitlines() == ["set_chat 1", "set_code 1", "model_large 1", "model_legal 1"]


def test_clients_without_a_key_have_limits_and_no_checksum(settings: dict[str, Any], replicas: list[Replica]) -> None:
    found = plan({**settings, "anonymous": True}, replicas, [])
    assert not found.problems and found.maps["keys.map"] == ""
    assert "anonymous 128\n" in found.maps["concurrency.map"] and "anonymous|set_chat 1\n" in found.maps["rights.map"]


def test_every_mistake_is_reported_at_once(settings: dict[str, Any], replicas: list[Replica]) -> None:
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
        "do not all accept one key",
        "gpu9",
        "gateway_keys[0] (a)",
    ):
        assert word in text
    assert "secret" not in text and found.config == ""


OLD, NEW = "engine-secret", "engine-secret-2"
OLD_ONLY, BOTH, NEW_ONLY = (mark(OLD),), (mark(NEW), mark(OLD)), (mark(NEW),)


@pytest.mark.parametrize(
    ("keys", "first", "second", "sent"),
    [
        # For a node without a report, the inventory counts.
        ((OLD,), (None, None), (None, None), OLD),
        ((NEW, OLD), (None, None), (None, None), NEW),
        ((NEW, OLD), (None, None), (OLD_ONLY, BOTH), OLD),
        # Before the first swap, during the update, and at the end.
        ((NEW, OLD), (OLD_ONLY, BOTH), (OLD_ONLY, BOTH), OLD),
        ((NEW, OLD), (BOTH, None), (OLD_ONLY, BOTH), OLD),
        ((NEW, OLD), (BOTH, None), (BOTH, None), NEW),
        # The old key is removed; then a rollback.
        ((NEW,), (BOTH, NEW_ONLY), (BOTH, NEW_ONLY), NEW),
        ((NEW, OLD), (BOTH, OLD_ONLY), (NEW_ONLY, BOTH), NEW),
        ((NEW, OLD), (BOTH, OLD_ONLY), (BOTH, OLD_ONLY), OLD),
        # Engines without a key get one, and engines with a key lose it.
        ((NEW,), ((), NEW_ONLY), ((), NEW_ONLY), NEW),
        (("", OLD), (OLD_ONLY, ()), ((), None), OLD),
        (("",), ((), None), ((), None), ""),
        # No key fits both releases: the key of the running release counts, if the inventory has this key.
        ((NEW, OLD), (OLD_ONLY, NEW_ONLY), (OLD_ONLY, NEW_ONLY), OLD),
        ((NEW,), (OLD_ONLY, NEW_ONLY), (OLD_ONLY, NEW_ONLY), None),
        (("",), (OLD_ONLY, None), ((), None), None),
    ],
)
def test_engines_are_sent_a_key_that_all_of_them_accept(
    settings: dict[str, Any],
    keys: tuple[str, ...],
    first: tuple[tuple[str, ...] | None, tuple[str, ...] | None],
    second: tuple[tuple[str, ...] | None, tuple[str, ...] | None],
    sent: str | None,
) -> None:
    replicas = [
        Replica(host, "192.0.2.11", "chat", "m", 5005, keys[0], None, "m", keys[1:], running, coming)
        for host, (running, coming) in (("gpu1", first), ("gpu2", second))
    ]
    found = plan(settings, replicas, [{"name": "a", "key": "a-key-of-20-letters-"}])
    if sent is None:
        (problem,) = map(str, found.problems)
        assert "do not all accept one key of the inventory: gpu1, gpu2" in problem and "engine-secret" not in problem
        return
    assert found.maps["engines.map"] == (f"set_chat {sent}\n" if sent else "")
    assert found.maps["marks.map"] == (f"/sets/chat {mark(sent)}\n" if sent else "")


def test_a_gateway_without_keys_is_refused(settings: dict[str, Any], replicas: list[Replica]) -> None:
    assert ["gateway_anonymous" in str(problem) for problem in plan(settings, replicas, []).problems] == [True]


@pytest.mark.parametrize(
    ("listens", "nodes"),
    [("127.0.0.1", "gpu1, gpu2, gpu3"), ("::1", "gpu1, gpu2, gpu3"), ("192.0.2.21", ""), ("0.0.0.0", "")],
)
def test_nodes_must_reach_the_gateway(
    settings: dict[str, Any], replicas: list[Replica], listens: str, nodes: str
) -> None:
    """A node that is itself the gateway reaches the loopback address, too."""
    problems = [str(problem) for problem in plan({**settings, "bind_address": listens}, replicas, KEYS).problems]
    assert len(problems) == bool(nodes)
    for text in problems:
        assert "gateway_bind_address" in text and f"before each swap: {nodes}. Set 0.0.0.0" in text
    own = [replica for replica in replicas if replica.host == "gpu1"]
    assert not plan({**settings, "bind_address": listens, "name": "gpu1"}, own, KEYS).problems


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
def test_a_server_whose_port_has_changed_starts_without_its_old_state(
    tmp_path: Path,
    settings: dict[str, Any],
    replicas: list[Replica],
    agent_port: int,
    kept: set[str],
    made: Callable[..., Plan],
) -> None:
    """With the old state, HAProxy would keep the old ports of server and agent. An unchanged server stays drained."""
    found = made(settings, [replace(replicas[0], bridge_port=5105), *replicas[1:]], agent_port=agent_port)
    texts = {"haproxy.cfg": found.config, "states.awk": found.files["states.awk"], "states": STATES}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    lines = filtered(tmp_path)
    assert lines[:2] == STATES.splitlines()[:2]
    assert {line.split()[3] for line in lines[2:]} == kept
    assert set(lines) <= set(STATES.splitlines())


def filtered(directory: Path) -> list[str]:
    command = ["awk", "-f", "states.awk", "haproxy.cfg", "states"]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.parametrize("agent", ["-", "192.0.2.99"])
def test_a_server_whose_address_or_agent_has_moved_starts_without_its_old_state(
    tmp_path: Path, settings: dict[str, Any], replicas: list[Replica], agent: str, made: Callable[..., Plan]
) -> None:
    """HAProxy would ask the agent at the old address."""
    moved = [replace(replicas[0], agent_address="192.0.2.99"), replicas[1], replace(replicas[3], address="2001:db8::4")]
    found = made(settings, moved, agent_port=5004)
    states = STATES.replace("5005 - 5004", f"5005 {agent} 5004").replace(
        "gpu3 2001:db8::3 2 0 - 5005 - 0", "gpu3 2001:db8::3"
    )
    for name, text in {"haproxy.cfg": found.config, "states.awk": found.files["states.awk"], "states": states}.items():
        (tmp_path / name).write_text(text)
    kept = {line.split()[3] for line in filtered(tmp_path)[2:]}
    assert kept == ({"gpu1"} if agent != "-" else set())


@pytest.mark.skipif(shutil.which("haproxy") is None, reason="no HAProxy here: the controllers' container has one")
@pytest.mark.parametrize("changes", [{}, {"affinity": "prefix"}, {"anonymous": True, "clients": ["192.0.2.1"]}])
def test_haproxy_accepts_the_files(
    tmp_path: Path,
    settings: dict[str, Any],
    replicas: list[Replica],
    changes: dict[str, Any],
    made: Callable[..., Plan],
) -> None:
    coming = Place("2001:db8::9", 5055, "2001:db8::9/5055 ::/5055")
    moves = replace(replicas[0], words="192.0.2.11/5005", coming=coming, bridge_port=5105, agent_address="2001:db8::9")
    found = made(settings, [moves, *replicas[1:]], **changes)
    # The account haproxy exists where the package was installed, not on every controller.
    config = found.config.replace("user haproxy\n", f"uid {os.getuid()}\n")
    config = config.replace("group haproxy\n", f"gid {os.getgid()}\n")
    for name, text in {"haproxy.cfg": config, **found.maps, **found.files}.items():
        (tmp_path / name).write_text(text)
    command = ["haproxy", "-c", "-f", str(tmp_path / "haproxy.cfg")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
