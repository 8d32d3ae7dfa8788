# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of modules that can put a change on trial, so that the node undoes the change unless it is confirmed."""

from __future__ import annotations


class ModuleDocFragment:
    """Extended by modules whose change could lock the operator out."""

    DOCUMENTATION = r"""
options:
  phase:
    description:
      - V(trial) makes the change until O(seconds) are over. V(confirm) makes a change on trial permanent, and fails if
        the old state is back already. V(rollback) brings the old state back at once. V(apply) makes the change
        permanent at once, without any proof.
    type: str
    choices: [apply, trial, confirm, rollback]
    default: apply
  seconds:
    description: Seconds that a trial lasts.
    type: int
    default: 60
"""
