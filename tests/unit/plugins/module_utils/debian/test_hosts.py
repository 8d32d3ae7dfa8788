# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text of /etc/hosts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.debian.hosts import (
    BEGIN,
    END,
    Entry,
    parse_entries,
    render,
)

ADDRESS = "192.0.2.7"
LOCAL = "127.0.0.1\tlocalhost\n"


def names(text: str) -> dict[str, list[str]]:
    """Every name, and its addresses in the file's order."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        for name in words[1:]:
            found.setdefault(name, []).append(words[0])
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Debian's installer.
        (f"{LOCAL}127.0.1.1 gpu1.example.com gpu1\n", f"{ADDRESS}\tgpu1.example.com gpu1"),
        (f"{LOCAL}127.0.1.1\tgpu1\n", f"{ADDRESS}\tgpu1"),
        # In the lines of localhost, of IPv4 and IPv6.
        ("127.0.0.1 localhost gpu1\n::1 localhost GPU1\n", f"{ADDRESS}\tgpu1 GPU1"),
        # The address of an earlier DHCP lease.
        (f"{LOCAL}192.0.2.99 gpu1\n", f"{ADDRESS}\tgpu1"),
        # No line for the node.
        (LOCAL, f"{ADDRESS}\tgpu1"),
    ],
)
def test_the_nodes_name_has_only_its_address(text: str, expected: str) -> None:
    new = render(text, "gpu1", ADDRESS, [])
    assert expected in new.splitlines()
    assert names(new)["gpu1"] == [ADDRESS]
    assert "127.0.0.1" in names(new)["localhost"]
    assert render(new, "gpu1", ADDRESS, []) == new


@pytest.mark.parametrize(
    "line", [f"{ADDRESS} gpu1", f"{ADDRESS}\tgpu1.example.com gpu1 # by hand", f"{ADDRESS} GPU1 gpu1"]
)
def test_a_file_that_is_right_stays_as_it_is(line: str) -> None:
    text = f"{LOCAL}\n# a comment\n{line}\nfe00::0 ip6-localnet"
    assert render(text, "gpu1", ADDRESS, []) == text


def test_other_names_and_comments_stay() -> None:
    text = f"# head\n{LOCAL}127.0.1.1 gpu1 builder # installer\n10.9.0.1 gpu1.bmc.example.com\nfd00::7 gpu1\n"
    new = render(text, "gpu1", ADDRESS, [])
    assert "127.0.1.1\tbuilder # installer" in new
    # The node's address of the other family stays, and so does the name of another machine.
    assert names(new)["gpu1"] == ["fd00::7", ADDRESS]
    assert names(new)["gpu1.bmc.example.com"] == ["10.9.0.1"]
    assert new.startswith("# head\n")


def test_declared_entries_win_and_are_removed_when_undeclared() -> None:
    storage = Entry("192.0.2.20", ("storage.example.com", "storage"))
    text = f"{LOCAL}{ADDRESS} gpu1\n10.0.0.9 storage other\n"
    new = render(text, "gpu1", ADDRESS, [storage])
    assert names(new)["storage"] == ["192.0.2.20"]
    assert names(new)["other"] == ["10.0.0.9"]
    assert render(new, "gpu1", ADDRESS, [storage]) == new
    assert BEGIN not in render(new, "gpu1", ADDRESS, [])


def test_the_site_may_declare_the_nodes_own_address() -> None:
    """So one list of all nodes can be declared for all nodes."""
    nodes = [Entry("10.0.0.1", ("gpu1",)), Entry("10.0.0.2", ("gpu2",))]
    new = render(f"{LOCAL}127.0.1.1 gpu1.example.com gpu1\n", "gpu1", ADDRESS, nodes)
    assert names(new)["gpu1"] == ["10.0.0.1"] == names(new)["gpu1.example.com"]
    assert ADDRESS not in new
    (capital,) = names(render(LOCAL, "gpu1", ADDRESS, [Entry("10.0.0.1", ("GPU1",))]).removeprefix(LOCAL)).items()
    assert capital == ("GPU1", ["10.0.0.1"]), "host names are the same in lower and upper case"


@pytest.mark.parametrize("text", [LOCAL, f"{LOCAL}127.0.1.1 gpu1\n"])
def test_an_alias_before_the_nodes_own_name_changes_nothing_in_the_second_run(text: str) -> None:
    entries = [Entry("10.0.0.1", ("storage", "gpu1", "gpu1.a"))]
    new = render(text, "gpu1", ADDRESS, entries)
    assert "10.0.0.1\tgpu1 gpu1.a storage" in new.splitlines()
    assert render(new, "gpu1", ADDRESS, entries) == new


def test_a_block_without_an_end_mark_loses_no_line() -> None:
    text = f"{LOCAL}{BEGIN}\n{ADDRESS} gpu1\n10.0.0.9 precious\n"
    assert names(render(text, "gpu1", ADDRESS, []))["precious"] == ["10.0.0.9"]


WORDS = st.sampled_from(
    ["127.0.0.1", "127.0.1.1", "::1", ADDRESS, "10.0.0.9", "fd00::7", "gpu1", "gpu1.a", "b", "#", BEGIN, END]
)


@example("127.0.0.1 gpu1\n192.0.2.7 gpu1.a")
@settings(max_examples=5 * settings().max_examples)
@given(st.lists(st.lists(WORDS, max_size=5).map(" ".join), max_size=8).map("\n".join))
def test_in_any_file_the_node_gets_its_address(text: str) -> None:
    new = render(text, "gpu1", ADDRESS, [Entry("10.0.0.1", ("b",))])
    assert ADDRESS in names(new)["gpu1"]
    assert not [address for address in names(new)["gpu1"] if address.startswith(("127.", "::1"))]
    assert render(new, "gpu1", ADDRESS, [Entry("10.0.0.1", ("b",))]) == new


NAMES = st.sampled_from(["gpu1", "gpu1.a", "gpu1.b", "GPU1", "b"])
DECLARED = st.fixed_dictionaries(
    {"address": st.sampled_from([ADDRESS, "10.0.0.1", "127.0.0.1"]), "names": st.lists(NAMES, min_size=1, max_size=3)}
)


@example([{"address": "10.0.0.1", "names": ["gpu1"]}, {"address": "10.0.0.1", "names": ["gpu1.a"]}], LOCAL)
@example([{"address": ADDRESS, "names": ["gpu1.a"]}], LOCAL)
@example([{"address": "127.0.0.1", "names": ["gpu1.a"]}], LOCAL)
@settings(max_examples=5 * settings().max_examples)
@given(st.lists(DECLARED, max_size=3), st.lists(st.lists(WORDS, max_size=4).map(" ".join), max_size=4).map("\n".join))
def test_with_any_entries_a_second_run_changes_nothing(declared: list[dict[str, Any]], text: str) -> None:
    entries, problems = parse_entries(declared, "names.hosts")
    assume(not problems)
    # The module refuses the node's name at a loopback address.
    assume(not [one for one in entries if one.address == "127.0.0.1" and {"gpu1", "GPU1"} & {*one.names}])
    new = render(text, "gpu1", ADDRESS, entries)
    assert render(new, "gpu1", ADDRESS, entries) == new


def test_all_mistakes_of_the_entries_are_found() -> None:
    entries, problems = parse_entries(
        [
            {"address": "192.0.2.1", "names": ["a", "bad_name"]},
            {"address": "192.0.2.300", "names": ["b"]},
            {"address": "192.0.2.2", "names": ["A"]},
            {"address": "2001:DB8::1", "names": "a"},
            {"address": "192.0.2.3"},
            {"address": "192.0.2.4", "names": []},
        ],
        "hosts",
    )
    assert [problem.where for problem in problems] == ["hosts[0]", "hosts[1]", "hosts[2]", "hosts[4]", "hosts[5]"]
    assert "already has 192.0.2.1" in problems[2].message
    assert entries[-1] == Entry("2001:db8::1", ("a",))
