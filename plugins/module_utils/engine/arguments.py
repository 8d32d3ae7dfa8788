# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of the modules engine_plan and engine_release. Private to the collection.

This file imports nothing of the collection, because Ansible sends each module with everything that the module imports.
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
"""Fields of release.Settings that the role sets. Facts of the node and secrets are not among them."""

_NETWORK: Mapping[str, Mapping[str, Any]] = {
    "nodes": {"type": "dict", "default": {}},
    "required": {"type": "bool", "default": False},
    "rails_connected": {"type": "bool"},
    "variables": {"type": "dict", "default": {}},
}
"""What engine/gang/transport reads."""

ARGUMENTS: Mapping[str, Mapping[str, Any]] = {
    "instances": {"type": "list", "elements": "dict", "required": True},
    "models": {"type": "dict", "required": True},
    "image": {"type": "str", "required": True},
    "engine_version": {"type": "str", "default": ""},
    "user": {"type": "str", "required": True},
    "environment": {"type": "dict", "default": {}},
    "secret_environment": {"type": "dict", "default": {}, "no_log": True},
    "instance_secrets": {"type": "dict", "default": {}, "no_log": True},
    "flag_files": {"type": "dict", "default": {}},
    "settings": {"type": "dict", "default": {}, "options": _OPTIONS},
    "read_only": {"type": "bool", "default": True},
    "gangs": {"type": "dict", "default": {}},
    "gang_key": {"type": "str", "default": "", "no_log": True},
    "network": {"type": "dict", "default": {}, "options": _NETWORK},
}
"""The options of both modules. doc_fragments/engine.py documents them."""
