# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests call an implementation through its module, as Ansible does. So they use the fixtures of modules."""

from __future__ import annotations

from ....modules.conftest import fresh_node, run_module, services, serving_node, two_instances

__all__ = ["fresh_node", "run_module", "services", "serving_node", "two_instances"]
