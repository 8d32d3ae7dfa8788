# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The interface that the implementation of a module has to Ansible. Private to the collection.

The library on a node has no Ansible. Ansible's AnsibleModule fits this protocol.
"""

from __future__ import annotations

from typing import Any, NoReturn, Protocol


class Call(Protocol):
    """One call of a module."""

    params: dict[str, Any]
    """The options, which the argument specification has checked."""
    check_mode: bool

    def run_command(self, args: Any, **options: Any) -> tuple[int, str, str]:
        """Run a program. Returns exit code, stdout and stderr."""

    def get_bin_path(self, arg: str) -> str | None:
        """The path of a program; None if the program is not installed."""

    def warn(self, warning: str) -> None:
        """Show a warning to the operator."""

    def fail_json(self, msg: str, **kwargs: Any) -> NoReturn:
        """End the call with an error."""

    def exit_json(self, **kwargs: Any) -> NoReturn:
        """End the call with a result."""
