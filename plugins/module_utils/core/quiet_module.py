# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module that keeps its parameters out of the journal. Private to the collection."""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule


class QuietModule(AnsibleModule):
    """The base for a module with multi-line secrets in a dictionary, such as private keys.

    Ansible writes a dictionary to the journal as one line, and no_log does not find the lines of a secret text there.
    """

    def _log_invocation(self) -> None:
        self.log("Invoked")
