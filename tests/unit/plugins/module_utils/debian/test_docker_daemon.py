# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""daemon.json: merges, the state file, and whether a change needs a reload or a restart."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.debian import docker_daemon as dd
from ansible_collections.baremetal.inference.plugins.module_utils.debian.service_files import ServiceError

MERGES: list[tuple[str, dict[str, Any], dict[str, Any], list[list[str]], dict[str, Any]]] = [
    ("fresh node", {}, {"debug": True}, [], {"debug": True}),
    ("foreign key stays", {"labels": ["x"]}, {"debug": True}, [], {"labels": ["x"], "debug": True}),
    ("ours wins", {"debug": False}, {"debug": True}, [], {"debug": True}),
    ("undeclared is removed", {"debug": True, "labels": ["x"]}, {}, [["debug"]], {"labels": ["x"]}),
    ("foreign is not removed", {"debug": True}, {}, [], {"debug": True}),
    (
        "foreign part of an object stays",
        {"runtimes": {"kata": {"path": "kata"}}},
        {"runtimes": {"nvidia": {"path": "n"}}},
        [],
        {"runtimes": {"kata": {"path": "kata"}, "nvidia": {"path": "n"}}},
    ),
    (
        "our part of an object is removed",
        {"runtimes": {"kata": {"path": "kata"}, "nvidia": {"path": "n", "args": []}}},
        {},
        [["runtimes", "nvidia", "path"], ["runtimes", "nvidia", "args"]],
        {"runtimes": {"kata": {"path": "kata"}}},
    ),
    ("an object that we emptied is removed", {"log-opts": {"tag": "x"}}, {}, [["log-opts", "tag"]], {}),
    ("a list is one value", {"registry-mirrors": ["a"]}, {"registry-mirrors": ["b"]}, [], {"registry-mirrors": ["b"]}),
    (
        "a value becomes an object",
        {"features": 1},
        {"features": {"cdi": True}},
        [["features"]],
        {"features": {"cdi": True}},
    ),
    ("an object becomes a value", {"a": {"b": 1}}, {"a": 2}, [["a", "b"]], {"a": 2}),
    ("our value is now an object of other origin", {"a": {"b": 1}}, {}, [["a"]], {"a": {"b": 1}}),
    ("an owned key that is gone already", {}, {}, [["a"], ["b", "c"]], {}),
    ("an owned path that is a value now", {"b": 1}, {}, [["b", "c"]], {"b": 1}),
    (
        "a declared empty object keeps its values",
        {"features": {"x": True}},
        {"features": {}},
        [],
        {"features": {"x": True}},
    ),
    ("our part goes, the object is declared", {"a": {"b": 1, "c": 2}}, {"a": {}}, [["a", "b"]], {"a": {"c": 2}}),
    ("one is not true", {"a": True}, {"a": 1}, [], {"a": 1}),
]


@pytest.mark.parametrize(
    ("existing", "declared", "owned", "expected"), [row[1:] for row in MERGES], ids=[r[0] for r in MERGES]
)
def test_declared_keys_are_merged_and_owned_keys_are_removed(
    existing: dict[str, Any], declared: dict[str, Any], owned: list[list[str]], expected: dict[str, Any]
) -> None:
    before = json.dumps(existing)
    merged = dd.merge(existing, declared, owned)
    assert dd.same(merged.config, expected)
    assert json.dumps(existing) == before, "the input was modified"


KEYS = st.sampled_from(["a", "b", "c", "log-opts"])
LEAVES = st.none() | st.booleans() | st.integers(-2, 2) | st.text(max_size=2) | st.lists(st.integers(0, 2), max_size=2)
CONFIGS = st.dictionaries(
    KEYS,
    st.recursive(LEAVES, lambda inner: st.dictionaries(KEYS, inner, min_size=1, max_size=2), max_leaves=4),
    max_size=3,
)


@given(CONFIGS, CONFIGS)
def test_a_merge_has_all_declared_values_and_a_second_merge_changes_nothing(
    existing: dict[str, Any], declared: dict[str, Any]
) -> None:
    first = dd.merge(existing, declared)
    second = dd.merge(first.config, declared, first.owned)
    assert dd.same(first.config, second.config)
    assert first.owned == second.owned
    for path in dd.paths(declared):
        value: Any = first.config
        wanted: Any = declared
        for key in path:
            value, wanted = value[key], wanted[key]
        assert dd.same(value, wanted)


@given(st.dictionaries(st.sampled_from(["x", "y"]), LEAVES), CONFIGS)
def test_after_all_keys_are_undeclared_only_foreign_keys_stay(
    foreign: dict[str, Any], declared: dict[str, Any]
) -> None:
    merged = dd.merge(foreign, declared)
    assert dd.same(dd.merge(merged.config, {}, merged.owned).config, foreign)


BAD_JSON = [
    ('{"a": 1,\n}', "line"),
    ('{\n  "a" 1\n}', "line 2, column 7"),
    ("[]", "contains a list"),
    ("null", "contains a NoneType"),
    ('{"a": 1, "a": 2}', "'a' occurs more than once"),
    ('{"log-opts": {"tag": "1", "tag": "2"}}', "'tag'"),
    ("[" * 100_000, "Nothing was changed"),
    ('{"a": ' + "1" * 5000 + "}", "Nothing was changed"),
]


@pytest.mark.parametrize(("text", "expected"), BAD_JSON)
def test_an_error_names_the_file_and_the_place(text: str, expected: str) -> None:
    with pytest.raises(ServiceError, match=r"/etc/docker/daemon\.json") as caught:
        dd.parse(text, "/etc/docker/daemon.json")
    assert expected in str(caught.value)


@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda raw: raw.decode("latin-1")))
def test_parse_raises_only_service_errors(text: str) -> None:
    try:
        assert isinstance(dd.parse(text, "file"), dict)
    except ServiceError as error:
        assert str(error).startswith("file: ")


def test_an_empty_file_is_an_empty_object() -> None:
    assert dd.parse(" \n", "file") == {}


PENDING = [
    ({}, {}, (), ()),
    ({"debug": True}, {"debug": False}, ("debug",), ()),
    ({}, {"registry-mirrors": ["http://a"]}, ("registry-mirrors",), ()),
    # On SIGHUP, the daemon keeps the value of a removed key.
    ({"registry-mirrors": ["http://a"]}, {}, (), ("registry-mirrors",)),
    ({}, {"data-root": "/x"}, (), ("data-root",)),
    ({"live-restore": True, "bip": "1"}, {"live-restore": False, "bip": "2"}, ("live-restore",), ("bip",)),
    ({}, {"features": {"cdi": True}}, (), ("features",)),
    ({"debug": 1}, {"debug": True}, ("debug",), ()),
]


@pytest.mark.parametrize(("loaded", "config", "reload", "restart"), PENDING)
def test_a_changed_key_needs_a_reload_or_a_restart(
    loaded: dict[str, Any], config: dict[str, Any], reload: tuple[str], restart: tuple[str]
) -> None:
    snapshot = dd.Snapshot(loaded, "e")
    assert dd.pending(snapshot, config, "e") == dd.Pending(reload, restart)
    assert dd.pending(snapshot, config, "other").restart == (*restart, dd.ENVIRONMENT)
    # After a reload, only the keys that need a restart are pending.
    assert dd.pending(dd.after_reload(snapshot, config, reload), config, "e") == dd.Pending((), restart)


STATES = [
    dd.State(),
    dd.State((("debug",), ("log-opts", "tag"))),
    dd.State((("debug",),), "abc", dd.Snapshot({"debug": True}, "digest")),
]


@pytest.mark.parametrize("state", STATES)
def test_the_state_is_read_back_from_its_file(state: dd.State) -> None:
    assert dd.load_state(state.dump(), "state") == state


@pytest.mark.parametrize(
    "text",
    ['{"schema": 2}', '{"schema": 1}', '{"schema": 1, "owned": 3}', '{"schema": 1, "owned": [], "loaded": {}}', "{"],
)
def test_the_error_about_a_damaged_state_names_the_file(text: str) -> None:
    with pytest.raises(ServiceError, match=r"state\.json"):
        dd.load_state(text, "state.json")


PROBLEMS = [
    ({"registry-mirrors": ["https://m.example.com", "http://10.0.0.1:5000/"]}, 0),
    ({"registry-mirrors": ["m.example.com", "https://m/path", "https://u:p@m"]}, 3),
    ({"default-address-pools": [{"base": "10.200.0.0/16", "size": 24}, {"base": "fd00::/48", "size": 64}]}, 0),
    ({"default-address-pools": [{"base": "10.200.0.0/16", "size": 8}]}, 1),
    ({"default-address-pools": [{"base": "10.200.0.0/33", "size": 24}, {"base": "10.0.0.0/8", "size": True}, 3]}, 3),
    ({"log-opts": {"max-size": "50m", "max-file": "3"}}, 0),
    ({"log-opts": {"max-size": "50m\n", "max-file": "3\n"}}, 2),
    ({"registry-mirrors": ["https://m\n"]}, 1),
    ({"log-driver": "json-file", "log-opts": {"max-size": "10x", "max-file": "0"}}, 2),
    ({"log-driver": "journald", "log-opts": {"max-size": "50m"}}, 1),
    ({"log-driver": "journald", "log-opts": {"tag": "x", "mode": "non-blocking"}}, 0),
    ({"log-driver": "some-plugin", "log-opts": {"anything": "x"}}, 0),
    # Wrong types are left to the daemon's own check.
    ({"registry-mirrors": "x", "log-opts": 3, "default-address-pools": None, "log-driver": "none"}, 0),
    ({"log-driver": ["local"], "log-opts": {"max-size": "x"}}, 0),
    ({"log-driver": "none", "log-opts": {"max-size": "50m", "max-file": "0"}}, 0),
]


@pytest.mark.parametrize(("config", "count"), PROBLEMS)
def test_each_problem_of_the_configuration_is_found(config: dict[str, Any], count: int) -> None:
    assert len(dd.problems(config)) == count


DEBIAN = (
    "{ path=/usr/sbin/dockerd ; argv[]=/usr/sbin/dockerd -H fd:// --containerd=/run/containerd/containerd.sock "
    "$DOCKER_OPTS ; ignore_errors=no ; start_time=[n/a] ; stop_time=[n/a] ; pid=0 ; code=(null) ; status=0/0 }"
)
FLAGS = ["-H", "fd://", "--containerd=/run/containerd/containerd.sock"]


@pytest.mark.parametrize(
    ("exec_start", "variables", "expected"),
    [
        ("", {}, []),
        (DEBIAN, {}, FLAGS),
        (DEBIAN, {"DOCKER_OPTS": "--debug --label 'a b'"}, [*FLAGS, "--debug", "--label", "a b"]),
        (
            DEBIAN.replace("$DOCKER_OPTS", "--config-file /etc/d.json --icc=${ICC}"),
            {"ICC": "false"},
            [*FLAGS, "--icc=false"],
        ),
        (DEBIAN.replace("$DOCKER_OPTS", "--config-file=/etc/d.json --validate"), {}, FLAGS),
    ],
)
def test_the_flags_of_the_daemon_are_read_from_its_unit(
    exec_start: str, variables: dict[str, str], expected: list[str]
) -> None:
    assert dd.daemon_flags(exec_start, variables) == expected


def test_a_quote_without_an_end_in_the_flags_is_named() -> None:
    with pytest.raises(ServiceError, match=r"DOCKER_OPTS .*quote without an end"):
        dd.daemon_flags(DEBIAN, {"DOCKER_OPTS": "--debug --label 'a"})


VERDICTS = [
    (0, "configuration OK", True, ""),
    (1, 'level=info msg="Starting up"\ndockerd needs to be started with root privileges. To run …', True, ""),
    (
        1,
        "unable to configure the Docker daemon with file x: EOF\n",
        False,
        "unable to configure the Docker daemon with file x: EOF",
    ),
    (1, 'time="now" level=info msg="Starting up"\n', False, "exit code 1 without a message"),
    (124, "did not end within 30 s", False, "did not end within 30 s"),
]


@pytest.mark.parametrize(("code", "output", "accepted", "words"), VERDICTS)
def test_the_result_of_the_daemons_own_check_is_read(code: int, output: str, accepted: bool, words: str) -> None:
    assert dd.validation_result(code, output) == (accepted, words)


def test_environment_text_is_quoted_for_systemd() -> None:
    assert dd.environment_text({"NO_PROXY": "a,b", "HTTP_PROXY": 'http://u:"\\$`@p'}) == (
        'HTTP_PROXY="http://u:\\"\\\\\\$\\`@p"\nNO_PROXY="a,b"\n'
    )


@pytest.mark.parametrize("environment", [{"A B": "x"}, {"A\n": "x"}, {"A": "x\nB=y"}, {"": "x"}, {"A": "\x00"}])
def test_invalid_names_and_values_of_the_environment_are_refused(environment: dict[str, str]) -> None:
    with pytest.raises(ServiceError):
        dd.environment_text(environment)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, "/var/lib/docker"),
        ({"data-root": "/srv/d/"}, "/srv/d"),
        ({"graph": "/old"}, "/old"),
        ({"data-root": ""}, "/var/lib/docker"),
    ],
)
def test_the_data_root_is_read_from_the_configuration(config: dict[str, Any], expected: str) -> None:
    assert dd.data_root(config) == expected
