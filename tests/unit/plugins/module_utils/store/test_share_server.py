# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The server that gives other nodes a model: the files that it lists, to a client with the token, and nothing else."""

from __future__ import annotations

import urllib.error

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.store.sources import transfer

from .conftest import TOKEN, Nodes


def test_who_does_not_know_the_token_gets_nothing(nodes: Nodes) -> None:
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
def test_only_what_is_listed_is_given(nodes: Nodes, path: str) -> None:
    peer = nodes.start()
    with pytest.raises(urllib.error.HTTPError, match="404"):
        transfer.ask(f"{peer.url}{path}", {"Authorization": f"Bearer {TOKEN}"}, direct=True)


@pytest.mark.parametrize("asked", ["bytes=2-", "bytes=99-", "bytes=0-1", "bytes=-1", "lines=1-"])
def test_a_range_that_is_not_there_is_refused(nodes: Nodes, asked: str) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Range": asked}
    with pytest.raises(urllib.error.HTTPError, match="416"):
        transfer.ask(f"{nodes.start().url}/config.json", headers, direct=True)


def test_a_range_is_the_rest_of_the_file(nodes: Nodes) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Range": "bytes=1-"}
    with transfer.ask(f"{nodes.start().url}/config.json", headers, direct=True) as answer:
        assert (answer.status, answer.headers["Content-Range"], answer.read()) == (206, "bytes 1-1/2", b"}")
