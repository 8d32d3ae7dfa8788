# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls of modules that the worker process on the controller answers itself. Private to the collection.

A separate process would import Ansible's code for modules and the library again for each host: 0.3 CPU-seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from ansible.module_utils.common.arg_spec import ModuleArgumentSpecValidator
from ansible.module_utils.common.process import get_bin_path

from ansible_collections.baremetal.inference.plugins.module_utils.core.call import Call


class Ended(Exception):
    """The call has its result. A module would end its process here."""

    def __init__(self, result: dict[str, Any]) -> None:
        super().__init__()
        self.result = result


class OwnCall:
    """A call in this process. Fits the protocol Call, but runs no programs."""

    def __init__(self, params: dict[str, Any], check_mode: bool) -> None:
        self.params = params
        self.check_mode = check_mode
        self.warnings: list[str] = []

    def run_command(self, args: Any, **options: Any) -> tuple[int, str, str]:
        raise NotImplementedError(f"a call in the worker process runs no programs: {args} {options}")

    def get_bin_path(self, arg: str) -> str | None:
        try:
            return str(get_bin_path(arg))
        except ValueError:
            return None

    def warn(self, warning: str) -> None:
        self.warnings.append(warning)

    def fail_json(self, msg: str, **kwargs: Any) -> NoReturn:
        self.exit_json(failed=True, msg=msg, **kwargs)

    def exit_json(self, **kwargs: Any) -> NoReturn:
        raise Ended({**({"warnings": self.warnings} if self.warnings else {}), **kwargs})


def answer(
    implementation: Callable[[Call], None],
    specification: Mapping[str, Any],
    given: Mapping[str, Any],
    *,
    check_mode: bool,
) -> dict[str, Any]:
    """The result of a call, after the same checks of the options as in a module."""
    # The rest of the specification has the rules between options, such as required_if.
    rules = {name: rule for name, rule in specification.items() if name not in ("argument_spec", "supports_check_mode")}
    validator = ModuleArgumentSpecValidator(specification["argument_spec"], **rules)
    checked = validator.validate(dict(given))
    if checked.error_messages:
        return {"failed": True, "msg": "; ".join(checked.error_messages)}
    try:
        implementation(OwnCall(dict(checked.validated_parameters), check_mode))
    except Ended as ended:
        return ended.result
    raise RuntimeError("the implementation of a module ended without a result")
