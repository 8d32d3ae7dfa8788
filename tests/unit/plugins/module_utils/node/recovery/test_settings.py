# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role says of the recovery."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery import (
    settings,
)
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.settings import Settings

from ..conftest import write


def test_settings_survive_their_file(paths: Paths) -> None:
    assert settings.read(paths) is None
    wanted = Settings(budget=5, webhook="https://example.org/x")
    files.write_json(paths.recovery_settings, wanted.to_json())
    assert settings.read(paths) == wanted


@pytest.mark.parametrize("text", ["[]", '{"schema": 2}', "{"])
def test_a_damaged_file_is_named(paths: Paths, text: str) -> None:
    write(paths.recovery_settings, text)
    with pytest.raises(ValueError, match=r"recovery\.json"):
        settings.read(paths)


def test_what_the_file_does_not_say_is_as_the_role_has_it(paths: Paths) -> None:
    write(paths.recovery_settings, '{"schema": 1, "armed": false, "of_a_later_version": 1}')
    assert settings.read(paths) == Settings(armed=False)
