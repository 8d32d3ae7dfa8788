# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests with a token, and progress as text."""

from __future__ import annotations

import urllib.request

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.store.sources import transfer
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.transfer import Progress


@pytest.mark.parametrize(
    ("target", "kept"),
    [("https://hub/b", True), ("http://hub/b", False), ("https://cdn/b", False)],
)
def test_after_a_redirect_the_token_goes_only_to_the_same_server_by_https(target: str, kept: bool) -> None:
    asked = urllib.request.Request("https://hub/a", headers={"Authorization": "Bearer token"})
    request = transfer._Redirects().redirect_request(asked, None, 302, "", {}, target)
    assert request.has_header("Authorization") is kept


def test_the_text_of_progress_has_amount_speed_and_time() -> None:
    assert (
        str(Progress(3 << 30, 15 << 30, 1 << 30, 10, done=False))
        == "3.0 GiB of 15.0 GiB, 102.4 MiB a second, 2 min left"
    )
    assert str(Progress(1 << 20, 2 << 40, 1 << 20, 1, done=False)).endswith("582 h 33 min left")
    assert str(Progress(5, 10, 0, 10, done=False)) == "5 bytes of 10 bytes"
