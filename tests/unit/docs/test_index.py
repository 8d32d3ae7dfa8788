# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The index has every playbook, every guide and every error of the gateway; the guide to recovery has every check.

The role recovery names every kind of check."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from ansible_collections.baremetal.inference.plugins.module_utils.gateway import errors
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor import catalogue

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
INDEX = (DOCS / "README.md").read_text(encoding="utf-8")


def section(heading: str) -> str:
    """The text below a heading of the index, up to the next heading of its level."""
    return INDEX.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def test_the_index_lists_every_playbook() -> None:
    first_cells = "".join(re.findall(r"^\|([^|]+)\|", section("All playbooks"), re.MULTILINE))
    assert set(re.findall(r"`(\w+)`", first_cells)) == {file.stem for file in (ROOT / "playbooks").glob("*.yml")}


def test_the_index_lists_every_guide() -> None:
    linked = set(re.findall(r"^\| \[[^]]+\]\(([\w-]+\.md)\)", section("All guides"), re.MULTILINE))
    assert linked == {file.name for file in DOCS.glob("*.md")} - {"README.md"}


def test_the_index_has_a_remedy_for_every_error_of_the_gateway() -> None:
    known = {error for error in vars(errors).values() if isinstance(error, errors.ApiError)}
    known |= {*errors.BUILT_IN, errors.wrong_method("GET"), errors.too_large(1)}
    shown = set(re.findall(r"^\| (\d{3}) \[`(\w+)`\]", section("What is wrong"), re.MULTILINE))
    # The body of 404 model_not_found lists names, so another file makes it.
    assert shown == {(str(error.status), error.code) for error in known} | {("404", "model_not_found")}


def test_the_guide_to_recovery_lists_every_check_of_the_doctor() -> None:
    guide = (DOCS / "recovery.md").read_text(encoding="utf-8")
    listed = guide.partition("\n## Is this node fit?\n")[2].partition("\n## ")[0]
    assert [check.name for check in catalogue.CHECKS if f"`{check.name}`" not in listed] == []


def test_the_role_recovery_names_every_kind_of_check() -> None:
    specification = yaml.safe_load((ROOT / "roles/recovery/meta/argument_specs.yml").read_text(encoding="utf-8"))
    words = specification["argument_specs"]["main"]["options"]["recovery_doctor_off"]["description"]
    assert {check.kind for check in catalogue.CHECKS} == set(re.findall(r"V\((\w+)\)", words))
