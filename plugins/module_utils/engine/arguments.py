# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of modules that render what the engines of a node run. Private to the collection.

A file of its own: Ansible sends this file with modules, and not what renders.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_OPTIONS: Mapping[str, Mapping[str, str]] = {
    **{name: {"type": "str"} for name in ("address", "store_path", "fast_path", "cache_path")},
    **{name: {"type": "int"} for name in ("start_timeout", "drain_timeout", "pids_limit")},
    **{name: {"type": "str"} for name in ("shm_size", "memory", "gpu_request")},
    "ulimits": {"type": "dict"},
    "cap_add": {"type": "list", "elements": "str"},
}
"""What the role decides, without what a node tells and what may be secret: fields of release.Settings."""

ARGUMENTS: Mapping[str, Mapping[str, Any]] = {
    "instances": {"type": "list", "elements": "dict", "required": True},
    "models": {"type": "dict", "required": True},
    "image": {"type": "str", "required": True},
    "engine_version": {"type": "str", "default": ""},
    "user": {"type": "str", "required": True},
    "environment": {"type": "dict", "default": {}},
    "secret_environment": {"type": "dict", "default": {}, "no_log": True},
    "settings": {"type": "dict", "default": {}, "options": _OPTIONS},
}
"""What such a module takes; doc_fragments/engine.py says the same for people."""
