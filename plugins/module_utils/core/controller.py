# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the inventory names files of the controller, the machine that runs Ansible. Private to the collection."""

from __future__ import annotations

ON_CONTROLLER = "controller:"
"""The prefix of the path of such a file."""
