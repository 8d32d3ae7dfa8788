# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The check finds a second place of a default, and a role that shows another value."""

from __future__ import annotations

import check_defaults
import pytest

TABLE: dict[str, int | float | str] = {"gateway_port": 8000, "model_store_path": "/mnt/models", "model_store_keep": 2}
ROLES = frozenset({"gateway_port", "model_store_path", "model_store_keep", "backup_keep_daily"})


def found(file: str, text: str) -> list[str]:
    return check_defaults.second_homes(TABLE, {file: text}, ROLES)


def test_the_table_is_read_from_the_source() -> None:
    text = (
        'PORT = 8000\n"""A port."""\nPATH = "/x"\nBY_VARIABLE: Mapping[str, int] = {"gateway_port": PORT, "p": PATH}\n'
    )
    assert check_defaults.shared(text) == {"gateway_port": 8000, "p": "/x"}
    real = check_defaults.shared((check_defaults.ROOT / check_defaults.HOME).read_text())
    assert real["vllm_agent_port"] == 5004 and real["update_speed_bound"] == 0.5 and len(real) > 10


def test_a_role_that_shows_another_value_is_reported() -> None:
    files = {"roles/gateway/defaults/main.yml": {"gateway_port": 8001}, "roles/x/defaults/main.yml": {"other": 8001}}
    (problem,) = check_defaults.differing(TABLE, files)
    assert (
        problem.startswith("roles/gateway/defaults/main.yml: gateway_port is 8001, plugins/") and "says 8000" in problem
    )
    assert check_defaults.differing(TABLE, {"f": {"gateway_port": 8000, "model_store_path": ""}}) == []


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("plugins/modules/x.py", "a = 1\nPORT = 8000", "2: 8000 is the default of gateway_port"),
        ("plugins/modules/x.py", 'x = {"default": "/mnt/models"}', "'/mnt/models' is the default of model_store_path"),
        ("plugins/modules/x.py", 'P = "/var/lib/inference/x.json"', "is a path of the collection's own"),
        ("roles/x/defaults/main.yml", "---\nx_store: /mnt/models", "2: /mnt/models is the default of model_store_path"),
        ("playbooks/x.yml", 'p: "{{ gateway_port | default(8000) }}"', "8000 is"),
        ("playbooks/x.yml", 'p: "{{ model_store_keep | default(3) }}"', "3 is a second default of model_store_keep"),
        (
            "playbooks/x.yml",
            "p: \"{{ backup_keep_daily | default('7', true) }}\"",
            "'7' is a second default of backup_keep",
        ),
    ],
)
def test_a_second_place_of_a_default_is_reported(file: str, text: str, words: str) -> None:
    assert any(words in problem for problem in found(file, text))


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (check_defaults.HOME, "PORT = 8000"),
        (check_defaults.PATHS, 'STATE = "/var/lib/inference"'),
        (
            "plugins/modules/x.py",
            'DOCUMENTATION = """\n  - Kept in /var/lib/inference/x.json, port 8000.\n"""\nKEEP = 2',
        ),
        ("roles/gateway/defaults/main.yml", "gateway_port: 8000  # as clients know 8000"),
        ("roles/x/tasks/main.yml", "# 8000 is the gateway's\n- path: /mnt/models/x\n  port: 18000"),
        ("playbooks/x.yml", "p: \"{{ gateway_port | default('gateway_port' | baremetal.inference.site_default) }}\""),
    ],
)
def test_the_home_of_a_default_and_other_values_are_accepted(file: str, text: str) -> None:
    assert found(file, text) == []
