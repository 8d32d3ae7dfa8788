# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits, watchdog and pstore: refused values, and the texts of the files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian import service_limits as module

NOTHING: dict[str, Any] = {"memlock": "", "nofile": 0, "watchdog_seconds": 0, "keep_pstore": False}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "proc/sys/fs").mkdir(parents=True)
    (tmp_path / "proc/sys/fs/nr_open").write_text("1048576\n")
    return tmp_path


def with_watchdog(root: Path, max_timeout: str) -> None:
    device = root / "sys/class/watchdog/watchdog0"
    device.mkdir(parents=True)
    (device / "identity").write_text("iTCO_wdt\n")
    (device / "max_timeout").write_text(f"{max_timeout}\n")


def test_the_files_set_all_declared_limits() -> None:
    files = module.files({"memlock": "64G", "nofile": 4096, "watchdog_seconds": 60, "keep_pstore": True})
    texts = {name: text.removeprefix(module.HEADER) for name, text in files.items()}
    assert all(text.startswith(module.HEADER) for text in files.values())
    services = "[Manager]\nDefaultLimitMEMLOCK=68719476736\nDefaultLimitNOFILE=4096\n"
    assert texts == {
        "etc/systemd/system.conf.d/60-inference.conf": services + "RuntimeWatchdogSec=60\nRebootWatchdogSec=10min\n",
        "etc/systemd/user.conf.d/60-inference.conf": services,
        "etc/security/limits.d/60-inference.conf": (
            "* - memlock 67108864\n* - nofile 4096\nroot - memlock 67108864\nroot - nofile 4096\n"
        ),
        "etc/tmpfiles.d/systemd-pstore.conf": "d /var/lib/systemd/pstore 0755 root root -\n",
    }


def test_infinity_has_another_name_in_limits_d() -> None:
    files = module.files({**NOTHING, "memlock": "infinity"})
    assert "* - memlock unlimited\n" in files["etc/security/limits.d/60-inference.conf"]
    assert "DefaultLimitMEMLOCK=infinity\n" in files["etc/systemd/system.conf.d/60-inference.conf"]


def test_a_setting_that_is_not_declared_has_no_file() -> None:
    assert set(module.files(NOTHING).values()) == {""}
    only_watchdog = module.files({**NOTHING, "watchdog_seconds": 60})
    assert [name for name, text in only_watchdog.items() if text] == ["etc/systemd/system.conf.d/60-inference.conf"]


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"memlock": "64 GB"}, "memlock is '64 GB': it must be infinity"),
        ({"nofile": 1023}, "nofile is 1023: it must be 1024 to 1048576"),
        ({"nofile": 1048577}, "(fs.nr_open of this kernel)"),
        ({"watchdog_seconds": 9}, "watchdog_seconds is 9: it must be 10 or more"),
    ],
)
def test_each_mistake_of_the_limits_is_found(root: Path, params: dict[str, Any], words: str) -> None:
    assert [words in problem for problem in module.problems({**NOTHING, **params}, root)] == [True]


def test_all_mistakes_are_found_at_once(root: Path) -> None:
    wrong = {**NOTHING, "memlock": "lots", "nofile": 5, "watchdog_seconds": 1}
    assert len(module.problems(wrong, root)) == 3
    assert module.problems({**NOTHING, "memlock": "8M", "nofile": 1048576, "watchdog_seconds": 10}, root) == []


def test_more_seconds_than_the_watchdog_can_wait_are_a_problem(root: Path) -> None:
    with_watchdog(root, "30")
    assert module.watchdog(root) == ("iTCO_wdt", 30)
    problems = module.problems({**NOTHING, "watchdog_seconds": 60}, root)
    assert problems == ["watchdog_seconds is 60: it must be 10 to 30 (iTCO_wdt cannot wait longer), or 0 for none"]


def test_a_watchdog_without_a_limit_can_wait_any_time(root: Path) -> None:
    with_watchdog(root, "0")
    assert module.problems({**NOTHING, "watchdog_seconds": 3600}, root) == []


def test_the_differing_values_of_systemd_are_found() -> None:
    asked = {"DefaultLimitNOFILE": "4096", "DefaultLimitMEMLOCK": "infinity"}
    shown = "a warning\nDefaultLimitNOFILE=524288\n"
    assert module.differing(asked, shown) == {"DefaultLimitNOFILE": "524288", "DefaultLimitMEMLOCK": "nothing"}
    assert module.differing(asked, "DefaultLimitNOFILE=4096\nDefaultLimitMEMLOCK=infinity\n") == {}
