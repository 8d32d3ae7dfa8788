# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two nodes serve one name."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

from ansible.release import __version__
from node import PROJECT, Node


def test_this_ran_on_the_controller_it_asks_for() -> None:
    wanted = Path(PROJECT / "molecule/rolling/controller").read_text().strip()
    assert __version__.startswith(f"{wanted}.")


def test_a_declared_address_is_reached_from_outside(node: Node) -> None:
    body = {
        "model": "main",
        "messages": [{"role": "user", "content": "Who are you?"}],
        "max_tokens": 30,
        "temperature": 0,
    }
    request = urllib.request.Request(
        f"http://{node.address}:5005/v1/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as response:
        assert json.load(response)["choices"][0]["message"]["content"] == "I am tiny-a."


def test_another_model_is_pending_on_both(deb12: Node, deb13: Node) -> None:
    """The name stays while the model behind it changes; nothing changes until it is rolled out."""
    instances = [{"name": "main", "model": "tiny-b", "port": 5005, "accelerator": "cpu"}]
    pids = [node.engine_pid() for node in (deb12, deb13)]
    output = deb12.site("--limit", "deb12,deb13", instances=instances)
    assert output.count("is staged and pending") == 2
    assert [node.engine_pid() for node in (deb12, deb13)] == pids
    assert deb12.ask() == deb13.ask() == "I am tiny-a."
