# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings that a node needs for a swap without a controller."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import swap_settings
from ansible_collections.baremetal.inference.plugins.module_utils.engine.swap_settings import Gateway, SwapSettings
from ansible_collections.baremetal.inference.plugins.module_utils.engine.swap_terms import Terms

GIVEN: dict[str, Any] = {
    "node": "node1",
    "gateways": [{"name": "gw1", "address": "10.0.0.9", "port": "8404"}],
    "golden": {"main": [{"prompt": "1+1", "expect": "2"}]},
    "terms": {"watch_seconds": 5},
}


def test_the_file_has_the_values_of_the_option(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    files.write(paths.swap_settings, swap_settings.text(GIVEN), swap_settings.MODE)
    assert swap_settings.read(paths) == SwapSettings(
        "node1",
        (Gateway("gw1", "10.0.0.9", 8404),),
        {"main": [{"prompt": "1+1", "expect": "2"}]},
        Terms(watch_seconds=5),
    )
    # Equal settings give the same text, so nothing is due.
    assert swap_settings.text({**GIVEN, "gateways": [{"name": "gw1", "address": "10.0.0.9", "port": 8404}]}) == (
        paths.swap_settings.read_text()
    )


def test_golden_prompts_and_terms_may_be_left_out(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    files.write(paths.swap_settings, swap_settings.text({"node": "node1", "gateways": []}))
    assert swap_settings.read(paths) == SwapSettings("node1")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "is not there"),
        ("{", "is damaged"),
        ('{"schema": 9}', "is of another schema than 1"),
        ("[]", "is of another schema than 1"),
        ('{"schema": 1, "node": "node1"}', "is damaged (KeyError('gateways'))"),
        ('{"schema": 1, "node": "node1", "gateways": [], "terms": {"drain_seconds": "soon"}}', "is damaged"),
        ('{"schema": 1, "node": "node1", "gateways": [], "golden": []}', "is damaged"),
        ('{"schema": 1, "node": "node1", "gateways": [{"name": "a", "address": "b", "port": Infinity}]}', "is damaged"),
    ],
)
def test_without_settings_the_error_names_the_playbook(tmp_path: Path, text: str | None, words: str) -> None:
    paths = Paths(tmp_path)
    if text is not None:
        files.write(paths.swap_settings, text)
    with pytest.raises(swap_settings.NoSettings) as caught:
        swap_settings.read(paths)
    assert words in str(caught.value) and "run baremetal.inference.site" in str(caught.value)


@pytest.mark.parametrize("wrong", [{"node": "node1"}, {**GIVEN, "gateways": [{"name": "gw1"}]}, {"gateways": []}])
def test_an_option_that_lacks_a_key_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="swap cannot be understood: KeyError"):
        swap_settings.text(wrong)
