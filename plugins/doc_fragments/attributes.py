# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The attributes in every module's documentation. Each module adds its support and details."""

from __future__ import annotations


class ModuleDocFragment:
    """Extended by every module."""

    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Can run in check mode and return changed status prediction without modifying the target.
  diff_mode:
    description: Returns details on what has changed, or would be changed in check mode, when in diff mode.
"""
