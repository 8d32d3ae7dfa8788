# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A filter that reads a model registry from a file of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.text import load_registry


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"model_registry": load_registry}
