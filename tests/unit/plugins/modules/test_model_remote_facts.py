# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is known of a model before it is on a node: from a small server that speaks the hub's API, with ranges."""

from __future__ import annotations

import json
import re
import shutil
import struct
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import gather
from ansible_collections.baremetal.inference.plugins.module_utils.store import plan_cache
from ansible_collections.baremetal.inference.plugins.modules import model_remote_facts

COMMIT = "0123456789" * 4
SHARD = "model-00001-of-00002.safetensors"


class Hub(ThreadingHTTPServer):
    """The repository acme/tiny, whose weights another server has, as a hub's are."""

    def __init__(self, root: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.root = root
        self.token = ""
        self.ranges = True
        self.requests: list[tuple[str, str]] = []
        """Path and Authorization of each."""
        self.sent = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_GET(self) -> None:
        path, authorization = self.path.partition("?")[0], self.headers.get("Authorization", "")
        self.server.requests.append((path, authorization))
        files = f"/acme/tiny/resolve/{COMMIT}/"
        if not path.startswith("/cdn/") and self.server.token and authorization != f"Bearer {self.server.token}":
            self.send_error(401)
        elif path == f"/api/models/acme/tiny/revision/{COMMIT}":
            found = [file for file in sorted(self.server.root.rglob("*")) if file.is_file()]
            root = self.server.root
            listed = [{"rfilename": each.relative_to(root).as_posix(), "size": each.stat().st_size} for each in found]
            self._send(200, json.dumps({"siblings": listed}).encode())
        elif path.startswith(files) and path.endswith(".safetensors"):
            self.send_response(302)
            # By another name of the same machine: another host to whoever follows.
            self.send_header("Location", f"http://localhost:{self.server.server_port}/cdn/{path.removeprefix(files)}")
            self.end_headers()
        elif path.startswith((files, "/cdn/")):
            self._file(self.server.root / path.removeprefix(files).removeprefix("/cdn/").replace("%20", " "))
        else:
            self.send_error(404)

    def _file(self, path: Path) -> None:
        content = path.read_bytes()
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if asked and self.server.ranges:
            self._send(206, content[int(asked[1]) : int(asked[2]) + 1])
        else:
            self._send(200, content)

    def _send(self, status: int, content: bytes) -> None:
        self.server.sent += len(content)
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        try:
            self.wfile.write(content)
        except OSError:
            # Whoever asked has read what it wanted.
            self.close_connection = True

    def log_message(self, *_arguments: object) -> None:
        """Nothing."""


@pytest.fixture
def hub(tmp_path: Path, write_model: Callable[..., Path]) -> Iterator[Hub]:
    root = write_model(tmp_path / "acme")
    (root / "tokenizer.json").write_text("{}")
    (root / "chat_template.jinja").write_text("{{ messages }}")
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 2, "vocab_size": 300}
    (root / "config.json").write_text(json.dumps({**config, "hidden_size": 128, "num_attention_heads": 2}))
    hub = Hub(root)
    thread = Thread(target=hub.serve_forever, daemon=True)
    thread.start()
    yield hub
    hub.shutdown()
    hub.server_close()
    thread.join()


Run = Callable[..., dict[str, Any]]


@pytest.fixture
def run(tmp_path: Path, hub: Hub, run_module: Run) -> Run:
    def call(models: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        given = {
            "models": models or {"tiny": {"model": "acme/tiny", "revision": COMMIT}},
            "hub_endpoint": hub.url,
            "cache": str(tmp_path / "plans"),
            **more,
        }
        return run_module(model_remote_facts, **given)

    return call


def of_files(root: Path) -> dict[str, Any]:
    return {**json.loads(json.dumps(gather(root).to_dict())), "path": None}


@pytest.mark.parametrize("ranges", [True, False])
def test_the_facts_are_those_of_the_files(run: Run, hub: Hub, ranges: bool) -> None:
    """Also from a server that sends all of a file whatever was asked for."""
    hub.ranges = ranges
    result = run()
    assert result["unknown"] == {}
    assert {**result["facts"]["tiny"], "path": None} == of_files(hub.root)
    assert result["facts"]["tiny"]["weights"]["bytes"] == 8000


def test_weights_stay_where_they_are(run: Run, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a file of weights its header alone is sent, in two answers where it is longer than what is asked for first."""
    monkeypatch.setattr(plan_cache, "FIRST", 16)
    (hub.root / "original").mkdir()
    shutil.copy(hub.root / SHARD, hub.root / "original" / SHARD)
    assert {**run()["facts"]["tiny"], "path": None, "weights": None}.items() >= {
        "shards": list(gather(hub.root).shards)
    }.items()
    header = struct.unpack("<Q", (hub.root / SHARD).read_bytes()[:8])[0] + 8
    texts = sum(path.stat().st_size for path in hub.root.rglob("*") if path.is_file() and path.name in plan_cache.TEXTS)
    listing = 2000
    assert hub.sent < 2 * (header + 16) + texts + listing
    assert not [path for path, _who in hub.requests if path.endswith(("tokenizer.json", "chat%20%5B1%5D.jinja"))]


def test_a_commit_is_asked_for_once(run: Run, hub: Hub) -> None:
    first = run()
    hub.requests.clear()
    assert run()["facts"] == first["facts"]
    assert hub.requests == []


def test_the_token_is_shown_to_the_hub_and_to_nobody_else(run: Run, hub: Hub) -> None:
    hub.token = "hf_secret-5c1d"
    refused = run()
    assert "refuses it (401) with no token" in refused["unknown"]["tiny"]
    assert refused["facts"] == {}
    result = run(hub_token=hub.token)
    assert "tiny" in result["facts"]
    assert {who for path, who in hub.requests if path.startswith("/cdn/")} == {""}
    assert hub.token not in json.dumps(result)


def test_what_was_cut_off_is_not_kept(run: Run, hub: Hub, tmp_path: Path) -> None:
    shard = hub.root / SHARD
    content = shard.read_bytes()
    hub.token = "some-token"
    run()
    assert not [path for path in (tmp_path / "plans").iterdir() if not path.name.startswith(".")]
    hub.token = ""
    shard.write_bytes(content[:-100])
    facts = run()["facts"]["tiny"]
    assert facts["cut_shards"] == [SHARD]


def test_what_nobody_can_tell_is_unknown_with_the_reason(run: Run, hub: Hub) -> None:
    archive = {"model": f"{hub.url}/m.tar", "checksum": f"sha256:{'0' * 64}"}
    gone = {"model": "acme/other", "revision": COMMIT}
    result = run({"archive": archive, "gone": gone, "here": {"model": "/srv/m"}, "wrong": {"model": "?"}})
    assert result["facts"] == {}
    assert set(result["unknown"]) == {"archive", "gone"}
    assert "before it is fetched" in result["unknown"]["archive"]
    assert result["problems"][0].startswith("models.archive: nobody can tell whether it fits")
    assert "model_store_allow_unplanned: true" in result["problems"][0]
    assert "no such model or revision (404)" in result["unknown"]["gone"]
    unreachable = run({"tiny": {"model": "acme/tiny", "revision": COMMIT}}, hub_endpoint="http://127.0.0.1:9")
    assert "cannot be asked" in unreachable["unknown"]["tiny"]


def test_a_model_on_the_controller_is_read_where_it_lies(run: Run, hub: Hub) -> None:
    result = run({"near": {"model": f"controller:{hub.root}"}})
    assert {**result["facts"]["near"], "path": None} == of_files(hub.root)


def test_a_hub_that_names_files_outside_of_the_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(plan_cache.TransferError, match="outside of the model"):
        plan_cache.fetch(tmp_path / "m", {"../up": 1}, lambda file, first, last: b"x")
    assert not (tmp_path / "up").exists()
