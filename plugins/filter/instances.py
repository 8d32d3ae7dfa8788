# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters over a site's instances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.baremetal.inference.plugins.module_utils.engine.instances import (
    present_instances,
    served_models,
    want_gpus,
)


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"present_instances": present_instances, "served_models": served_models, "want_gpus": want_gpus}
