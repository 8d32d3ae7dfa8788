# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of modules that can put a change on trial: the node undoes the change unless it is confirmed in time."""

from __future__ import annotations


class ModuleDocFragment:
    """Extended by modules whose change could lock the operator out."""

    DOCUMENTATION = r"""
options:
  phase:
    description:
      - V(apply) makes a permanent change without a trial.
      - V(trial) makes a change that the node undoes after O(seconds), unless it is confirmed.
      - V(confirm) makes a change on trial permanent. It fails if the old state is already back.
      - V(rollback) restores the old state at once.
    type: str
    choices: [apply, trial, confirm, rollback]
    default: apply
  seconds:
    description: Seconds that a trial lasts.
    type: int
    default: 60
"""
