# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is done about an engine that hangs, answers wrongly, or does not come back. Private to the collection.

`policy` decides, and is pure; `ladder` inspects, acts and records. Each run does one step: what it did stands in the
state, so that a reboot in between, or a new agent, loses nothing.
"""
