# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The server that shares a model with other nodes: it sends only listed files, and only to clients with the token."""

from __future__ import annotations

import urllib.error

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.store.sources import transfer

from .conftest import TOKEN, Nodes


def test_a_client_without_the_token_gets_nothing(nodes: Nodes) -> None:
    peer = nodes.start()
    for headers in ({}, {"Authorization": "Bearer "}, {"Authorization": TOKEN}, {"Authorization": f"Bearer {TOKEN}x"}):
        with pytest.raises(urllib.error.HTTPError, match="403"):
            transfer.ask(f"{peer.url}/config.json", headers, direct=True)


@pytest.mark.parametrize(
    "path",
    [
        "/../../../../../../etc/passwd",
        "/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/./config.json",
        "/weights/../config.json",
        "/config.json?x",
        "/",
        "/manifest.json",
    ],
)
def test_only_listed_files_are_sent(nodes: Nodes, path: str) -> None:
    peer = nodes.start()
    with pytest.raises(urllib.error.HTTPError, match="404"):
        transfer.ask(f"{peer.url}{path}", {"Authorization": f"Bearer {TOKEN}"}, direct=True)


@pytest.mark.parametrize("asked", ["bytes=2-", "bytes=99-", "bytes=0-1", "bytes=-1", "lines=1-"])
def test_any_range_but_the_rest_of_a_file_is_refused(nodes: Nodes, asked: str) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Range": asked}
    with pytest.raises(urllib.error.HTTPError, match="416"):
        transfer.ask(f"{nodes.start().url}/config.json", headers, direct=True)


def test_the_rest_of_a_file_is_sent(nodes: Nodes) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Range": "bytes=1-"}
    with transfer.ask(f"{nodes.start().url}/config.json", headers, direct=True) as answer:
        assert (answer.status, answer.headers["Content-Range"], answer.read()) == (206, "bytes 1-1/2", b"}")
