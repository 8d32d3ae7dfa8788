# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module nvidia_driver_runfile: what it returns is what it documents."""

from __future__ import annotations

import yaml

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver import installer
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.runfile import Installed
from ansible_collections.baremetal.inference.plugins.modules import nvidia_driver_runfile


def test_the_installers_result_is_documented() -> None:
    documented = yaml.safe_load(nvidia_driver_runfile.RETURN)
    assert set(documented["file"]["contains"]) == set(vars(installer.Checked("", None, None, 0)))
    assert set(documented["before"]["contains"]) == set(vars(Installed(None, None, registered=False)))
