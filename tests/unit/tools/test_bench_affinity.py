# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The load of `make bench` whose requests share their beginnings."""

from __future__ import annotations

import asyncio
import threading

import bench_affinity
import pytest
from nodes import NodeError
from paced_engine import Engine


@pytest.fixture
def engine() -> str:
    """A paced engine with a prefix cache, in a thread: HOST:PORT."""
    ready, found = threading.Event(), []

    async def serve() -> None:
        server = await asyncio.start_server(Engine(bench_affinity.BLOCKS).serve, "127.0.0.1", 0)
        found.append(f"127.0.0.1:{server.sockets[0].getsockname()[1]}")
        ready.set()
        await server.serve_forever()

    threading.Thread(target=lambda: asyncio.run(serve()), daemon=True).start()
    assert ready.wait(10)
    return found[0]


def test_the_rows_compare_both_kinds_of_routing(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"SECONDS": 0.5, "ROUNDS": 1, "DOCUMENTS": 2, "CLIENTS": 2}.items():
        monkeypatch.setattr(bench_affinity, name, value)
    rows: list[tuple[str, float, float | None]] = []
    bench_affinity.bench(engine, {}, lambda *row: rows.append(row))
    (least, first, none), (affinity, second, ratio) = rows
    assert least.startswith("2 documents, first token: least connections, ") and none is None
    assert affinity.startswith("2 documents, first token: affinity, ") and ratio == second / first
    # The only cache has both documents: the engine computes the question alone.
    assert least.endswith(("99% cached", "100% cached")) and 0 < first < 0.4


def test_a_failed_request_ends_the_measurement() -> None:
    with pytest.raises((NodeError, OSError, EOFError)):
        bench_affinity.bench("127.0.0.1:1", {}, lambda *_row: None)


def test_both_kinds_of_routing_have_engines_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    class Process:
        def __init__(self, command: list[object]) -> None:
            commands.append(command)

        def terminate(self) -> None:
            pass

        def wait(self) -> None:
            pass

    commands: list[list[object]] = []
    monkeypatch.setattr(bench_affinity.subprocess, "Popen", Process)
    with bench_affinity.engines("192.0.2.1") as replicas:
        pass
    assert len({replica["port"] for replica in replicas}) == len(commands) == 2 * bench_affinity.ENGINES
    assert [replica.get("routing") for replica in replicas] == [None] * 3 + [{"sources": ["prefix"]}] * 3
    assert {(replica["name"], replica["model"]) for replica in replicas} == {
        ("spread", "model-spread"),
        ("together", "model-together"),
    }
