# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module nvidia_driver_signing: what it returns is what it documents."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.facts import Reader
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.signer import Signer, Wish
from ansible_collections.baremetal.inference.plugins.modules import nvidia_driver_signing

from ..driver_node import answer, answer_with_stdin, driver_node


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return driver_node(tmp_path)


def test_the_signings_result_is_documented(root: Path) -> None:
    signer = Signer(Reader(root, answer, 7), answer_with_stdin, Wish(), 7, check_mode=True)
    assert set(yaml.safe_load(nvidia_driver_signing.RETURN)) == {
        *nvidia_driver_signing.apply(signer, existing=True)
    } - {"changed"}
