# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gangs of real processes: each member has a supervisor and a fake engine."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import gangs

from .machines import LIMIT, SILENCE, Unit, until

Make = Callable[..., list[Unit]]

KNOWN = 2.0
"""Seconds within which the other members must notice the loss of a member."""


def seen(unit: Unit) -> list[tuple[str, str]]:
    """The members with their states, as a unit has recorded them."""
    return [(member.node, member.state) for member in unit.state.members] if unit.state else []


def logs(units: list[Unit]) -> Callable[[], str]:
    return lambda: "\n".join(f"{unit.gang.me.node} {unit.phase}:\n{unit.log}" for unit in units)


def serve(units: list[Unit]) -> None:
    """Start all members, and wait until the gang serves."""
    for unit in units:
        if unit.code is not None or unit.process is None:
            unit.start()
    until(lambda: all(unit.notified("READY=1") for unit in units), report=logs(units))
    # A follower that was ready before stays ready for systemd.
    # On a busy machine, a member can be silent for so long that the gang ends, and starts once more.
    until(lambda: all(unit.phase == gangs.SERVING and unit.running for unit in units), report=logs(units))


def restart_leader(units: list[Unit]) -> None:
    """Start the leader again after its end, as systemd does."""
    until(lambda: units[0].code is not None, report=logs(units))
    units[0].start()


def test_no_engine_runs_before_the_last_member_is_there_and_a_stop_of_the_leader_ends_all(make_gang: Make) -> None:
    leader, early, late = units = make_gang(3)
    early.start()
    until(lambda: early.notified("waits for the leader gpu-0: gpu-0 cannot be reached (Connection refused)"))
    leader.start()
    until(lambda: early.phase == gangs.WAITING, report=logs(units))
    until(lambda: leader.notified("STATUS=waits for gpu-2 (rank 2)"), report=logs(units))
    time.sleep(0.5)
    assert not leader.running and not early.running
    assert any("EXTEND_TIMEOUT_USEC" in message for message in leader.messages + early.messages)
    late.start()
    serve(units)
    # The leader is ready before the last follower has reported that it serves.
    until(lambda: seen(leader) == [(f"gpu-{rank}", gangs.SERVING) for rank in range(3)], report=logs(units))
    assert leader.state is not None and leader.state.epoch == 1
    leader.signal(signal.SIGTERM)
    until(lambda: leader.code is not None, report=logs(units))
    assert leader.code == 0
    until(lambda: not early.running and not late.running, KNOWN, logs(units))
    assert early.code is None and late.code is None
    until(lambda: early.phase == late.phase == gangs.MISSING)
    assert leader.phase == gangs.STOPPED


def test_the_end_of_a_followers_engine_ends_the_gang_and_the_next_epoch_serves(make_gang: Make) -> None:
    leader, follower = units = make_gang()
    serve(units)
    follower.kill_engine()
    until(lambda: not leader.running, KNOWN, logs(units))
    restart_leader(units)
    assert "the engine of gpu-1 ended: exit code 137" in leader.log
    # The follower notices each welcome, although the epoch begins at once.
    until(lambda: follower.log.count("is accepted") == 2, report=logs(units))
    until(lambda: leader.notified("READY=1"), report=logs(units))
    until(lambda: follower.phase == gangs.SERVING and follower.running, report=logs(units))
    state = follower.state
    assert state is not None and state.epoch == 2
    assert follower.code is None


def offered(leader: Unit) -> tuple[int, int]:
    """The active and the proven release of the first follower, as its leader has recorded them."""
    state = leader.state
    return (state.members[1].active, state.members[1].current) if state and len(state.members) > 1 else (0, 0)


def test_followers_mark_a_proven_release_on_the_order_of_their_leader(make_gang: Make) -> None:
    leader, follower = units = make_gang()
    serve(units)
    until(lambda: offered(leader) == (3, 0), report=logs(units))
    (leader.directory / "proven").touch()
    until(lambda: offered(leader) == (3, 3), report=logs(units))
    assert leader.running and follower.running, "the mark disturbs no engine"


def test_followers_must_move_to_the_release_of_their_leader(make_gang: Make) -> None:
    leader, follower = units = make_gang()
    serve(units)
    leader.signal(signal.SIGTERM)
    until(lambda: leader.code is not None, report=logs(units))
    leader.gang = replace(leader.gang, digest="b" * 64)
    leader.start()
    moved = follower.directory / "moved"
    until(lambda: moved.exists() and moved.read_text() == "b" * 64, report=logs(units))
    assert not follower.running
    # The leader's status shows why the follower does not move.
    until(lambda: leader.notified("gpu-1 has the gang digest aaaaaaaaaaaa"), report=logs(units))
    until(lambda: leader.notified("has no such release"), report=logs(units))


def test_the_end_of_the_leaders_engine_ends_the_follower(make_gang: Make) -> None:
    leader, follower = units = make_gang()
    serve(units)
    leader.kill_engine()
    until(lambda: not follower.running, KNOWN, logs(units))
    until(lambda: leader.code is not None)
    assert leader.code == 137
    assert follower.code is None


def test_the_end_of_a_supervisor_ends_the_gang(make_gang: Make) -> None:
    leader, follower = units = make_gang()
    serve(units)
    follower.signal(signal.SIGKILL)
    until(lambda: not leader.running, KNOWN, logs(units))
    until(lambda: leader.code is not None)
    assert leader.code == 1 and "gpu-1 is gone" in leader.log
    serve(units)
    leader.signal(signal.SIGKILL)
    until(lambda: not follower.running, KNOWN, logs(units))
    restart_leader(units)
    until(lambda: leader.notified("READY=1") and follower.running, report=logs(units))


def test_a_member_that_is_silent_ends_the_gang_on_both_sides(make_gang: Make) -> None:
    leader, follower = units = make_gang()
    serve(units)
    follower.signal(signal.SIGSTOP)
    took = until(lambda: not leader.running, report=logs(units))
    assert SILENCE - 0.5 < took < SILENCE + KNOWN
    assert f"gpu-1 is gone: it was silent for {SILENCE:.0f} s" in leader.log
    follower.signal(signal.SIGCONT)
    until(lambda: not follower.running, KNOWN, logs(units))
    restart_leader(units)
    until(lambda: leader.notified("READY=1") and follower.running, report=logs(units))


def test_the_end_of_one_of_three_engines_ends_all_and_all_start_again(make_gang: Make) -> None:
    leader, other, lost = units = make_gang(3)
    serve(units)
    lost.kill_engine()
    until(lambda: not leader.running and not other.running, KNOWN, logs(units))
    restart_leader(units)
    assert "the engine of gpu-2 ended: exit code 137" in leader.log
    until(lambda: leader.notified("READY=1"), report=logs(units))
    until(lambda: all(unit.phase == gangs.SERVING and unit.running for unit in units), report=logs(units))
    assert [unit.state and unit.state.epoch for unit in units] == [2, 2, 2]
    assert other.code is lost.code is None


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_gang_waits_for_one_missing_member_of_three(make_gang: Make, number: signal.Signals) -> None:
    leader, other, lost = units = make_gang(3)
    serve(units)
    lost.signal(number)
    until(lambda: not leader.running and not other.running, LIMIT, logs(units))
    restart_leader(units)
    until(lambda: leader.notified("STATUS=waits for gpu-2 (rank 2"), report=logs(units))
    until(lambda: other.phase == gangs.WAITING, report=logs(units))
    state = leader.state
    assert state is not None and [member.node for member in state.absent] == ["gpu-2"]
    assert not leader.running and not other.running and other.code is None
    serve(units)
    assert leader.state is not None and leader.state.epoch == 2


def test_a_follower_with_another_gang_digest_is_refused(make_gang: Make) -> None:
    leader, follower = units = make_gang()
    follower.gang = replace(follower.gang, digest="b" * 64)
    leader.start()
    follower.start()
    words = "gpu-1 has the gang digest bbbbbbbbbbbb, and gpu-0 has aaaaaaaaaaaa"
    until(lambda: follower.notified(f"refused by the leader gpu-0: {words}"), report=logs(units))
    until(lambda: leader.notified(f"waits for gpu-1 (rank 1: refused: {words}"), report=logs(units))
    assert leader.phase == gangs.WAITING and follower.phase == gangs.REFUSED
    assert not leader.running and not follower.running
    follower.signal(signal.SIGTERM)
    until(lambda: follower.code == 0)
    follower.gang = replace(follower.gang, digest="a" * 64)
    serve(units)


def test_another_gang_key_is_refused_and_a_new_gang_key_needs_no_restart(make_gang: Make) -> None:
    leader, follower = units = make_gang()
    follower.secret.write_text("another key 12345\n")
    leader.start()
    follower.start()
    until(lambda: follower.notified("do both have the same gang_key"), report=logs(units))
    until(lambda: "a process at 127.0.0.2 (gpu-1) has another key" in leader.log, report=logs(units))
    assert leader.phase == gangs.WAITING
    leader.secret.write_text("another key 12345")
    serve(units)


def test_a_gang_does_not_start_without_its_key(make_gang: Make) -> None:
    leader, follower = units = make_gang()
    follower.secret.unlink()
    leader.start()
    follower.start()
    until(
        lambda: "gang.key cannot be read (No such file or directory): run" in follower.log,
        report=logs(units),
    )
    leader.secret.write_text("\n")
    follower.secret.write_text("0123456789abcdef")
    until(lambda: "gang.key is empty: set gang_key" in leader.log, report=logs(units))
    leader.secret.write_text("0123456789abcdef")
    serve(units)


@pytest.mark.parametrize("idle", ["yes", "no"])
def test_a_member_that_leaves_runs_until_the_gang_is_drained(make_gang: Make, idle: str) -> None:
    leader, follower = units = make_gang()
    leader.idle = idle
    serve(units)
    follower.signal(signal.SIGTERM)
    drained = leader.directory / "drained"
    until(drained.exists, KNOWN, logs(units))
    assert drained.read_text().startswith("gpu-1 leaves")
    if idle == "no":
        time.sleep(1)
        assert leader.running and follower.running
    until(lambda: leader.code is not None and follower.code is not None, report=logs(units))
    assert (leader.code, follower.code) == (0, 0)
    assert not follower.running and not drained.exists()
    state = leader.state
    assert state is not None and state.planned and "gpu-1 leaves" in state.detail


def test_members_that_wait_stop_at_once(make_gang: Make) -> None:
    leader, follower, _absent = units = make_gang(3)
    leader.start()
    follower.start()
    until(lambda: follower.phase == gangs.WAITING, report=logs(units))
    follower.signal(signal.SIGTERM)
    until(lambda: follower.code == 0, KNOWN, logs(units))
    leader.signal(signal.SIGTERM)
    until(lambda: leader.code == 0, KNOWN, logs(units))
    assert "stopped before it was ready" in leader.log


def test_a_slow_load_does_not_end_the_gang(make_gang: Make) -> None:
    leader, follower = units = make_gang(load_seconds=3 * SILENCE)
    serve(units)
    assert follower.state is not None and follower.state.epoch == 1
    assert leader.notified("ready") or "ready after" in leader.log


def test_the_leader_logs_why_a_follower_cannot_start_its_engine(make_gang: Make) -> None:
    leader, follower = units = make_gang()
    follower.docker.start_error = "unresolvable CDI devices nvidia.com/gpu=7"
    leader.start()
    follower.start()
    until(lambda: leader.code == 1, report=logs(units))
    assert "unresolvable CDI devices nvidia.com/gpu=7" in leader.log
    assert follower.code is None
    follower.docker.start_error = ""
    serve(units)


def test_connections_without_the_key_change_nothing(make_gang: Make) -> None:
    """Many strangers without the key connect at once, one from an address of no member. Some send garbage."""
    leader, follower = units = make_gang()
    serve(units)
    target = ("127.0.0.1", leader.gang.gang_port)
    strangers = []
    for number in range(30):
        strangers.append(socket.create_connection(target, source_address=("127.0.0.2", 0)))
        if number % 3 == 0:
            strangers[-1].sendall(b'{"v": 1, "nonce": "' + b"0" * 32 + b'"}\n{"t": "down", "reason": "x"}\n')
        if number % 3 == 1:
            strangers[-1].sendall(b"GET / HTTP/1.1\r\n")
    with socket.create_connection(target, source_address=("127.0.0.9", 0)) as outside:
        outside.settimeout(LIMIT)
        assert outside.recv(100) == b""
    with socket.create_connection(target, source_address=("127.0.0.2", 0)) as flood:
        flood.settimeout(LIMIT)
        with pytest.raises(ConnectionError):
            for _part in range(1000):
                flood.sendall(b"x" * 4096)
    # All strangers are closed within the limit for a hello, and the gang serves all the time.
    for stranger in strangers:
        stranger.settimeout(LIMIT)
        try:
            while stranger.recv(4096):
                pass
        except ConnectionError:
            pass
        stranger.close()
    assert leader.phase == follower.phase == gangs.SERVING
    assert leader.state is not None and leader.state.epoch == 1
    assert leader.running and follower.running
