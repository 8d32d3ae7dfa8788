# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""All checks by name, and the settings that switch them off."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor import catalogue


def test_checks_have_different_names_and_can_be_switched_off() -> None:
    names = [one.name for one in catalogue.CHECKS]
    assert len(set(names)) == len(names)
    assert {one.name for one in catalogue.chosen([], ["rdma", "gpu-xids"])} == {
        name for name in names if not name.startswith("rdma-") and name != "gpu-xids"
    }
    assert [one.name for one in catalogue.chosen(["gpu-xids"], ["gpu"])] == ["gpu-xids"]


def test_every_finding_that_is_not_ok_has_an_action() -> None:
    """This test reads the sources, because the checks of a test's node make few of the findings.

    It need not look at CannotTell, whose action has no default.
    """
    silent = []
    for file in sorted(Path(catalogue.__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id != "Finding":
                continue
            status, *rest = map(ast.unparse, node.args)
            if status != "OK" and (len(rest) < 2 or rest[1] in ("''", '""')):
                silent.append(f"{file.name}:{node.lineno}")
    assert silent == []


def test_settings_can_be_read_back_and_a_damaged_file_is_an_error(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    assert catalogue.read(paths) == catalogue.Settings()
    wanted = catalogue.Settings(("rdma",), catalogue.Thresholds(free_percent=10))
    paths.etc.mkdir(parents=True)
    paths.doctor_settings.write_text(json.dumps(catalogue.to_json(wanted)))
    assert catalogue.read(paths) == wanted
    for text in ("[]", '{"schema": 1, "off": null}', '{"schema": 1, "off": [1]}', '{"schema": 1, "free_percent": "x"}'):
        paths.doctor_settings.write_text(text)
        with pytest.raises(ValueError, match=r"doctor\.json"):
            catalogue.read(paths)
        assert catalogue.thresholds(paths) == catalogue.Thresholds()


def test_an_unknown_check_is_answered_with_the_nearest_name() -> None:
    assert catalogue.unknown(["gpu", "gpu-xids"]) == []
    (wrong,) = catalogue.unknown(["gpu-xid"])
    assert "'gpu-xid'" in wrong and "gpu-xids" in wrong
