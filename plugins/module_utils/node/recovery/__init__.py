# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recovery of an engine that hangs, answers wrongly, or does not restart. Private to the collection.

`policy` decides, and is pure. `ladder` inspects, acts and records. A run takes at most one step, or more after a
restart of Docker. Each step is recorded before it is taken, so that a reboot in between, or a new agent, loses nothing.
"""
