# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages as JSON, and JSON that is no message."""

from __future__ import annotations

import contextlib
import json
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.node.gang.messages import (
    KINDS,
    LONGEST_TEXT,
    Exited,
    Go,
    Hello,
    Message,
    decode,
    encode,
)
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang.wire import LONGEST


@pytest.mark.parametrize("kind", KINDS.values())
def test_each_message_can_be_encoded_and_decoded(kind: type[Message]) -> None:
    message = kind(**{item.name: 5 if item.type == "int" else "a text" for item in fields(kind)})
    assert decode(encode(message)) == message


def test_unknown_fields_are_left_out() -> None:
    assert decode(b'{"t": "go", "epoch": 3, "later": true}') == Go(3)


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"null", b"[]", b'"go"', b"\xff", b"[" * 1900, b'{"t": "sudo"}', b'{"t": ["go"]}', b'{"t": "go"}'),
        *(b'{"t": "go", "epoch": "3"}', b'{"t": "go", "epoch": true}', b'{"t": "down", "reason": null}'),
    ],
)
def test_a_text_that_is_no_message_is_an_error(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"^sent a message "):
        decode(text)


@given(st.binary(max_size=300))
def test_a_text_is_a_message_or_an_error(text: bytes) -> None:
    with contextlib.suppress(ValueError):
        decode(text)


def test_long_texts_are_cut_and_fit_into_a_line() -> None:
    text = encode(Hello("n" * 999, 1, "d" * 999, 3, "e" * 999))
    assert len(text) < LONGEST - 65
    assert len(json.loads(text)["node"]) == LONGEST_TEXT


def test_a_text_becomes_one_line() -> None:
    message = decode(json.dumps({"t": "exited", "epoch": 1, "detail": "one\ntwo\t  three"}).encode())
    assert message == Exited(1, "one two three")


@pytest.mark.parametrize("character", ["\u0416", "\U0001f600", "\udcff"])
def test_long_texts_beyond_ascii_fit_into_a_line(character: str) -> None:
    """A longer line would make the other end close the connection, and the gang would end."""
    text = encode(Hello("n" * 64, 1, "d" * 64, 3, character * 999))
    assert len(text) < LONGEST - 65
    assert len(json.loads(text)["detail"]) == LONGEST_TEXT and isinstance(decode(text), Hello)
