# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of modules that read a node's instances and the model registry."""

from __future__ import annotations


class ModuleDocFragment:
    """Extended by modules that read instances and models."""

    DOCUMENTATION = r"""
options:
  instances:
    description: The instances of this node.
    type: list
    elements: dict
    required: true
  models:
    description: The model registry.
    type: dict
    required: true
"""
