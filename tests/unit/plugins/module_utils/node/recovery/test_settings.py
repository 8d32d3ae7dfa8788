# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of recovery, from the file that the role writes."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery import (
    settings,
)
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.settings import Settings

from ..conftest import write


def test_settings_can_be_read_back(paths: Paths) -> None:
    assert settings.read(paths) is None
    wanted = Settings(budget=5, webhook="https://example.org/x")
    files.write_json(paths.recovery_settings, wanted.to_json())
    assert settings.read(paths) == wanted


@pytest.mark.parametrize(
    "text",
    [
        *("[]", '{"schema": 2}', "{", '{"schema": 1, "budget": "3"}', '{"schema": 1, "budget": null}'),
        *('{"schema": 1, "armed": 1}', '{"schema": 1, "backoff": true}', '{"schema": 1, "webhook": ["x"]}'),
    ],
)
def test_a_damaged_file_of_settings_is_named(paths: Paths, text: str) -> None:
    write(paths.recovery_settings, text)
    with pytest.raises(ValueError, match=r"recovery\.json"):
        settings.read(paths)


def test_a_whole_number_of_seconds_is_valid(paths: Paths) -> None:
    write(paths.recovery_settings, '{"schema": 1, "backoff": 30}')
    assert settings.read(paths) == Settings(backoff=30)


def test_missing_settings_have_their_defaults(paths: Paths) -> None:
    write(paths.recovery_settings, '{"schema": 1, "armed": false, "of_a_later_version": 1}')
    assert settings.read(paths) == Settings(armed=False)
