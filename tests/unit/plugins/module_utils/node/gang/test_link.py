# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One end of a connection, with a simulated clock."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.node.gang.link import (
    HELLO_LIMIT,
    LONGEST_QUEUE,
    SILENCE,
    Link,
    LinkError,
)
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang.messages import (
    Down,
    Go,
    Hello,
    Message,
    Refused,
    Welcome,
)
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang.wire import FOLLOWER, LEADER, gang_key

KEY = gang_key(b"0123456789abcdef", "big")
HELLO = Hello("gpu-1", 1, "a" * 64, 3, "")


def ends(now: float = 0.0, key: bytes = KEY) -> tuple[Link, Link]:
    """The leader's end and the follower's end, before the first byte."""
    return Link(LEADER, KEY, "1" * 32, now), Link(FOLLOWER, key, "2" * 32, now, HELLO)


def carry(source: Link, target: Link, now: float) -> list[Message]:
    data, source.output = bytes(source.output), bytearray()
    return target.receive(data, now)


def connected() -> tuple[Link, Link]:
    leader, follower = ends()
    carry(leader, follower, 0.0)
    assert carry(follower, leader, 0.0) == [HELLO]
    leader.send(Welcome())
    assert carry(leader, follower, 0.0) == [Welcome()]
    return leader, follower


def test_the_leader_sends_the_first_line_and_the_follower_proves_itself_first() -> None:
    leader, follower = ends()
    assert follower.output == b"" and leader.output.endswith(b"\n")
    assert carry(leader, follower, 0.0) == []
    assert not leader.proved
    assert carry(follower, leader, 0.0) == [HELLO]
    assert leader.proved and not follower.proved
    leader.send(Welcome())
    assert carry(leader, follower, 0.0) == [Welcome()] and follower.proved


def test_a_follower_with_another_key_is_refused() -> None:
    leader, follower = ends(key=gang_key(b"another secret!!", "big"))
    carry(leader, follower, 0.0)
    with pytest.raises(LinkError, match="another key"):
        carry(follower, leader, 0.0)
    assert not leader.proved


def test_a_recorded_connection_cannot_be_replayed() -> None:
    leader, follower = ends()
    carry(leader, follower, 0.0)
    recorded = bytes(follower.output)
    leader.receive(recorded, 0.0)
    with pytest.raises(LinkError, match="another key"):
        Link(LEADER, KEY, "3" * 32, 0.0).receive(recorded, 0.0)


def test_a_leader_without_the_key_gives_no_order() -> None:
    follower = ends()[1]
    impostor = Link(LEADER, gang_key(b"another secret!!", "big"), "1" * 32, 0.0)
    carry(impostor, follower, 0.0)
    impostor.receive(b'{"v": 1, "nonce": "' + b"2" * 32 + b'"}\n', 0.0)
    impostor.send(Go(1))
    with pytest.raises(LinkError, match="another key"):
        carry(impostor, follower, 0.0)


def test_an_end_that_does_not_prove_itself_is_dropped_and_gets_no_beat() -> None:
    leader, follower = ends()
    carry(leader, follower, 0.0)
    leader.receive(bytes(follower.output).split(b"\n")[0] + b"\n", 0.0)
    leader.tick(HELLO_LIMIT - 0.1)
    assert leader.output == b""
    assert leader.due() == HELLO_LIMIT
    with pytest.raises(LinkError, match="did not prove itself within 5 s"):
        leader.tick(HELLO_LIMIT)


def test_beats_keep_both_ends_alive_for_ever() -> None:
    leader, follower = connected()
    for second in range(1, 100):
        for source, target in ((leader, follower), (follower, leader)):
            source.tick(float(second))
            assert source.output
            assert carry(source, target, float(second)) == []
    assert leader.due() == 100.0


def test_ten_seconds_of_silence_end_the_connection() -> None:
    leader, follower = connected()
    for end in (leader, follower):
        end.tick(SILENCE - 0.1)
        with pytest.raises(LinkError, match="was silent for 10 s"):
            end.tick(SILENCE)


def test_an_unsealed_line_ends_the_connection() -> None:
    leader = connected()[0]
    with pytest.raises(LinkError):
        leader.receive(b"still here\n", 9.0)


def test_an_end_that_does_not_read_is_dropped() -> None:
    leader, follower = connected()
    with pytest.raises(LinkError, match="does not read"):
        for second in range(1, LONGEST_QUEUE):
            before = len(leader.output)
            leader.tick(float(second))
            # The follower lives, and the kernel keeps what is sent to it.
            follower.receive(bytes(leader.output[before:]), float(second))
            follower.tick(float(second))
            carry(follower, leader, float(second))


def test_nothing_can_be_sent_before_the_handshake() -> None:
    with pytest.raises(LinkError, match="not connected yet"):
        ends()[1].send(Refused("no"))


def test_messages_that_arrive_in_parts_are_read_whole() -> None:
    leader, follower = connected()
    leader.send(Go(4))
    leader.send(Down("the end"))
    data = bytes(leader.output)
    heard = [message for position in range(len(data)) for message in follower.receive(data[position : position + 1], 1)]
    assert heard == [Go(4), Down("the end")]
