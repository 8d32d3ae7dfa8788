# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The option of modules whose implementation is in the library of the node."""

from __future__ import annotations


class ModuleDocFragment:
    """Extended by every module that runs by plugin_utils/node_call.py."""

    DOCUMENTATION = r"""
options:
  library:
    description: Which library of the collection the module runs. The controller fills it in.
    type: dict
    default: {}
    suboptions:
      digest:
        description: The checksum of the library's files.
        type: str
        default: ""
      path:
        description: A directory of the controller that holds the library.
        type: str
        default: ""
      archive:
        description: The library itself, for a node that does not have the library.
        type: str
        default: ""
      only:
        description: Whether the module only says whether the node has the library.
        type: bool
        default: false
"""
