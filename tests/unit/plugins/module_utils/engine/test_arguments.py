# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules that render releases have one option for each setting of a release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import get_type_hints

from ansible_collections.baremetal.inference.plugins.module_utils.engine.arguments import ARGUMENTS
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Settings

KINDS = {str: "str", int: "int", Sequence[str]: "list"}


def test_every_setting_of_the_role_can_be_given() -> None:
    """The node finds the user's ids. The environment, which may have secrets, has its own options."""
    hints = get_type_hints(Settings)
    wanted = {
        field.name: KINDS.get(hints[field.name], "dict")
        for field in fields(Settings)
        if field.name not in ("uid", "gid", "environment")
    }
    options = ARGUMENTS["settings"]["options"]
    assert {name: option["type"] for name, option in options.items()} == wanted
    assert [name for name, option in options.items() if option.get("elements")] == ["cap_add"]
    assert ARGUMENTS["secret_environment"]["no_log"] is True
