# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module model_fetch: one turn of a transfer, from the network or another node, and its result."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import basic

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError, Problem
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.hub import Hub
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.transfer import Progress, TransferError
from ansible_collections.baremetal.inference.plugins.modules import model_fetch

RunModule = Callable[..., dict[str, Any]]

ENTRY = {"model": "acme/tiny", "revision": "0123456789" * 4}
REVISION = "ab12cd34ef56"
PEER = {"host": "node2", "url": "http://192.0.2.7:5003", "token": "the-token", "manifest": {"revision": REVISION}}
HALF = Progress(1 << 20, 2 << 20, 0, 0, done=False)
WHOLE = Progress(2 << 20, 2 << 20, 1 << 20, 1, done=True)


class Transfer:
    """Replaces Fetcher: records its calls, and returns a progress or raises an error."""

    def __init__(self) -> None:
        self.made: tuple[Any, ...] = ()
        self.calls: list[tuple[Any, ...]] = []
        self.progress = WHOLE
        self.errors: list[Exception] = []

    def __call__(self, *given: Any, adapter: bool) -> Transfer:
        self.made = given
        self.adapter = adapter
        return self

    def end_download(self) -> None:
        self.calls.append(("end",))

    def from_peer(self, *given: Any) -> Progress:
        return self._turn("peer", *given)

    def from_network(self, hub: Hub, image: str) -> tuple[Progress, str | None]:
        progress = self._turn("network", hub.endpoint, hub.token, image)
        return progress, REVISION if progress.done else None

    def _turn(self, *call: Any) -> Progress:
        self.calls.append(call)
        for error in self.errors:
            raise error
        return self.progress


@pytest.fixture
def transfer(monkeypatch: pytest.MonkeyPatch) -> Transfer:
    transfer = Transfer()
    monkeypatch.setattr(model_fetch, "Fetcher", transfer)
    monkeypatch.setattr(basic.AnsibleModule, "get_bin_path", lambda module, name: f"/usr/bin/{name}")
    return transfer


@pytest.fixture
def fetch(run_module: RunModule, tmp_path: Path) -> RunModule:
    def run(check: bool = False, **arguments: Any) -> dict[str, Any]:
        given = {"store": str(tmp_path / "store"), "name": "m", "entry": ENTRY, **arguments}
        return run_module(model_fetch, check, **given)

    return run


def test_a_turn_from_the_network_returns_the_revision(transfer: Transfer, fetch: RunModule, tmp_path: Path) -> None:
    given = {"seconds": 7, "image": "vllm@sha256:1", "hub_endpoint": "https://hub.example.org", "hub_token": "hf_x"}
    result = fetch(**given)
    assert transfer.calls == [("network", "https://hub.example.org", "hf_x", "vllm@sha256:1")]
    store, name, remote, seconds, _paths, _run, docker = transfer.made
    assert (store.root, name, remote.location, seconds) == (tmp_path / "store", "m", "acme/tiny", 7)
    assert docker == "/usr/bin/docker"
    assert (result["changed"], result["done"], result["revision"], result["problem"]) == (True, True, REVISION, "")
    assert (result["have"], result["total"]) == (2 << 20, 2 << 20)
    assert result["text"].startswith("m: 2.0 MiB of 2.0 MiB, ")


def test_a_turn_that_was_too_short_returns_no_revision(transfer: Transfer, fetch: RunModule) -> None:
    transfer.progress = HALF
    result = fetch()
    assert (result["done"], result["revision"], result["text"]) == (False, None, "m: 1.0 MiB of 2.0 MiB")
    assert transfer.calls == [("network", "https://huggingface.co", "", "")]


def test_a_turn_from_another_node_ends_the_download_first(transfer: Transfer, fetch: RunModule) -> None:
    result = fetch(peer=PEER)
    assert transfer.calls == [("end",), ("peer", "node2", PEER["url"], "the-token", PEER["manifest"])]
    assert (result["done"], result["revision"]) == (True, REVISION)
    assert result["text"].startswith("m from node2: 2.0 MiB of 2.0 MiB")
    transfer.progress = HALF
    assert fetch(peer=PEER)["revision"] is None


@pytest.mark.parametrize(
    "error", [TransferError("it breaks off"), InputError([Problem("x", "it breaks off")]), ValueError("it breaks off")]
)
def test_a_failed_transfer_from_another_node_is_no_failure(
    transfer: Transfer, fetch: RunModule, error: Exception
) -> None:
    transfer.errors = [error]
    result = fetch(peer=PEER)
    assert not result.get("failed") and (result["done"], result["revision"]) == (False, None)
    assert result["problem"].endswith("it breaks off")
    assert result["text"] == f"m from node2: {result['problem']}"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (TransferError("the hub says 404"), "models.m: the hub says 404"),
        (OSError("disk full"), "models.m: disk full"),
        (InputError([Problem("models.m", "is not complete")]), "models.m: is not complete"),
    ],
)
def test_a_transfer_from_the_network_that_fails_is_a_failure(
    transfer: Transfer, fetch: RunModule, error: Exception, message: str
) -> None:
    transfer.errors = [error]
    result = fetch()
    assert result["failed"] and result["name"] == "m" and message in result["msg"]


def test_a_disk_that_fails_is_a_failure_also_with_another_node_as_source(transfer: Transfer, fetch: RunModule) -> None:
    transfer.errors = [OSError("disk full")]
    assert fetch(peer=PEER)["msg"] == "models.m: disk full"


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"model": "/srv/m"}, "models.m: model must be an archive"),
        ({"model": "https://example.org/m.tar"}, "models.m: "),
    ],
)
def test_an_entry_that_cannot_be_fetched_is_refused(
    transfer: Transfer, fetch: RunModule, entry: dict[str, str], message: str
) -> None:
    result = fetch(entry=entry)
    assert result["failed"] and result["msg"].startswith(message) and transfer.calls == []


def test_check_mode_fetches_nothing(transfer: Transfer, fetch: RunModule, tmp_path: Path) -> None:
    result = fetch(check=True)
    assert (result["changed"], result["done"], result["text"]) == (True, True, "m: would be fetched")
    assert transfer.made == () and not (tmp_path / "store").exists()


@pytest.mark.parametrize("more", [{}, {"base": "large", "adapter": ENTRY["model"]}])
def test_an_adapter_is_checked_as_an_adapter(transfer: Transfer, fetch: RunModule, more: dict[str, str]) -> None:
    fetch(entry={**ENTRY, **more})
    assert transfer.adapter == bool(more)
