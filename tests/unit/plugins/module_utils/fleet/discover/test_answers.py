# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answers of a machine: its facts, or the reason why there are none."""

from __future__ import annotations

from typing import Any

from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover import answers

GOOD: dict[str, Any] = {
    "address": "10.0.0.11",
    "login": {"stdout": "uid=0 login=admin python=/usr/bin/python3\r\n"},
    "host": {"system": {}},
    "gpu": {"ansible_facts": {"gpus": []}},
    "rdma": {"ansible_facts": {}},
}


def test_texts_of_a_machine_cannot_be_templates_or_further_lines() -> None:
    evil = {"a\nb": ["{{ lookup('pipe', 'id') }}", "{% x %}{# y #}", "{{{x", 5, None, True, "c\x85d\u2028e\u2029f"]}
    assert answers.harmless(evil) == {
        "a b": ["{ { lookup('pipe', 'id') }}", "{ % x %}{ # y #}", "{ { {x", 5, None, True, "c d e f"]
    }


def test_a_machine_that_answers_has_no_error() -> None:
    found = answers.read(GOOD)
    assert found["error"] == "" and found["login"] == "admin" and found["gpu"] == {"gpus": []}
    assert found["port"] == 22 and answers.read({**GOOD, "port": "2222"})["port"] == 2222


def test_each_kind_of_failure_has_its_words() -> None:
    cases: dict[str, dict[str, Any]] = {
        "ansible_port is 'ssh': set a whole number from 1 to 65535": {"port": "ssh"},
        "ansible_port is 65536: set a whole number": {"port": 65536},
        "cannot be reached: no route to host": {"login": {"unreachable": True, "msg": "no route\nto host"}},
        "cannot be reached: connect to host x port 22": {
            "login": {
                "unreachable": True,
                "msg": "Task failed: Failed to connect to the host via ssh: ssh: connect to host x port 22",
            }
        },
        "the login gets no root: Missing sudo password": {"login": {"msg": "Task failed: Missing sudo password"}},
        "the login gets no root: sudo: a password is required": {
            "login": {"stdout": "", "stderr": "sudo: a password is required"}
        },
        "the login has the uid 1000": {"login": {"stdout": "uid=1000 login=admin python=/usr/bin/python3"}},
        "has no Python": {"login": {"stdout": "uid=0 login=root python="}},
        "the module gpu_facts failed: it broke": {"gpu": {"msg": "it broke"}},
        "the module host_facts failed: no answer": {"host": {}},
    }
    for words, change in cases.items():
        assert answers.error({**GOOD, **change}).startswith(words), words
        assert answers.read({**GOOD, **change})["error"].startswith(words), words
