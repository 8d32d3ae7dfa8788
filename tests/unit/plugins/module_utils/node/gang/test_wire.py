# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of the gang's channel: seals, nonces and limits."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.node.gang.wire import (
    FOLLOWER,
    LEADER,
    LONGEST,
    Lines,
    Seal,
    WireError,
    connection_key,
    gang_key,
    opening,
    read_opening,
)

KEY = connection_key(gang_key(b"0123456789abcdef", "big"), "1" * 32, "2" * 32)


def test_sealed_lines_open_in_their_order() -> None:
    sender, reader = Seal(KEY, LEADER), Seal(KEY, LEADER)
    for text in (b"one", b"two", b"", b"two"):
        assert reader.open(sender.close(text).removesuffix(b"\n")) == text


@pytest.mark.parametrize(
    "other",
    [
        connection_key(gang_key(b"another secret!!", "big"), "1" * 32, "2" * 32),
        connection_key(gang_key(b"0123456789abcdef", "small"), "1" * 32, "2" * 32),
        connection_key(gang_key(b"0123456789abcdef", "big"), "3" * 32, "2" * 32),
        connection_key(gang_key(b"0123456789abcdef", "big"), "1" * 32, "3" * 32),
    ],
    ids=["secret", "instance", "leader's nonce", "follower's nonce"],
)
def test_each_part_of_the_key_counts(other: bytes) -> None:
    with pytest.raises(WireError, match="another key"):
        Seal(other, LEADER).open(Seal(KEY, LEADER).close(b"down").removesuffix(b"\n"))


def test_a_line_cannot_be_repeated_moved_or_reflected() -> None:
    sender = Seal(KEY, LEADER)
    first, second = (sender.close(text).removesuffix(b"\n") for text in (b"one", b"two"))
    reader = Seal(KEY, LEADER)
    reader.open(first)
    for line in (first, Seal(KEY, FOLLOWER).close(b"two").removesuffix(b"\n")):
        again = Seal(KEY, LEADER)
        again.open(first)
        with pytest.raises(WireError):
            again.open(line)
    with pytest.raises(WireError):
        Seal(KEY, LEADER).open(second)


@given(st.binary(max_size=200))
def test_a_line_without_a_valid_seal_is_refused(line: bytes) -> None:
    with pytest.raises(WireError):
        Seal(KEY, LEADER).open(line)


def test_an_opening_has_version_and_nonce() -> None:
    assert read_opening(opening("ab" * 16)) == "ab" * 16


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"GET / HTTP/1.1", "does not use the protocol"),
        (b"\xff\x00", "does not use the protocol"),
        (b"[" * 2000, "does not use the protocol"),
        (b"[1]", "does not use the protocol"),
        (json.dumps({"v": 2, "nonce": "ab" * 16}).encode(), "uses version 2 .* this node uses version 1"),
        (json.dumps({"v": "x" * 99}).encode(), "uses version unknown"),
        (json.dumps({"v": 1, "nonce": "short"}).encode(), "sends no nonce"),
        (json.dumps({"v": 1, "nonce": 5}).encode(), "sends no nonce"),
    ],
)
def test_a_wrong_opening_is_refused(line: bytes, words: str) -> None:
    with pytest.raises(WireError, match=words):
        read_opening(line)


@given(st.lists(st.binary(max_size=50).map(lambda text: text.replace(b"\n", b"")), max_size=8), st.integers(1, 60))
def test_lines_come_out_whole_from_parts_of_any_size(texts: list[bytes], size: int) -> None:
    lines, data = Lines(), b"".join(text + b"\n" for text in texts)
    parts = [data[start : start + size] for start in range(0, len(data), size)]
    assert [line for part in parts for line in lines.feed(part)] == texts


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_line_that_is_too_long_is_refused(end: bytes) -> None:
    lines = Lines()
    assert lines.feed(b"x" * LONGEST) == []
    with pytest.raises(WireError, match="a line of more than"):
        lines.feed(b"x" + end)
