# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""By what the modules reach a repository of backups, beside its address and password."""

from __future__ import annotations


class ModuleDocFragment:
    """Extended by modules that reach one."""

    DOCUMENTATION = r"""
options:
  environment:
    description: Credentials of the repository's server, as restic's variables.
    type: dict
    default: {}
  sftp_key:
    description: The private key for SFTP; without it, those of root.
    type: str
    default: ""
  known_hosts:
    description: The server's host keys for SFTP, as lines of C(known_hosts); without any, those that root knows.
    type: list
    elements: str
    default: []
  ca_file:
    description: The certificate on the node that a server's is judged by.
    type: str
    default: ""
"""
