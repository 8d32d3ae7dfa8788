#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: kernel_cmdline
short_description: Add parameters to the kernel's command line, and say whether they are in force
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Writes C(/etc/default/grub.d/50-inference.cfg), which adds to what other files say, and renews GRUB's menu.
  - The new menu is made beside the old one, checked by GRUB itself, and must hold every parameter before it takes the
    old one's place. When anything fails, the old files are put back.
  - Never reboots. RV(missing) names what the running kernel was not started with, RV(surplus) what has just left the
    list and the running kernel still has.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  parameters:
    description:
      - The parameters, in their order; some may be there twice, as in C(hugepagesz=1G hugepages=4 hugepagesz=2M
        hugepages=64). An empty list removes the file.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Let devices of the host bypass the IOMMU's translation
  baremetal.inference.kernel_cmdline:
    parameters: [iommu=pt]
"""

RETURN = r"""
missing:
  description: Parameters that the running kernel was not started with.
  returned: success
  type: list
  elements: str
surplus:
  description: Parameters that left the list in this call, and that the running kernel was started with.
  returned: success
  type: list
  elements: str
"""

import os
import re
from collections import Counter
from contextlib import suppress
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core.files import write

DROP_IN = Path("/etc/default/grub.d/50-inference.cfg")
MENU = Path("/boot/grub/grub.cfg")
CMDLINE = Path("/proc/cmdline")
HEADER = "# Managed by Ansible, module baremetal.inference.kernel_cmdline: changes made here are lost."

KERNELS = "/etc/grub.d/10_linux"
"""The section of the menu with the installed kernels."""

PARAMETER = re.compile(r"[A-Za-z0-9_.-]+(=[A-Za-z0-9_.,:/+@=-]*)?")
"""A parameter that needs no quotes, neither in a shell file nor on the command line."""

GATHERED = {"console", "earlycon", "hugepages", "hugepagesz", "module_blacklist", "pci"}
"""Names that may stand there several times, and all of them count. Source: kernel-parameters.txt of the kernel."""


class BootError(Exception):
    """The menu cannot be made; the text is for the operator."""


def render(parameters: list[str]) -> str:
    """The text of the file, empty where it is not wanted."""
    if not parameters:
        return ""
    return f'{HEADER}\nGRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX {" ".join(parameters)}"\n'


def parameters_of(drop_in: str) -> list[str]:
    """The parameters that an earlier text of our file gave."""
    found = re.search(r'^GRUB_CMDLINE_LINUX="\$GRUB_CMDLINE_LINUX (.*)"$', drop_in, re.MULTILINE)
    return found[1].split() if found else []


def lacking(parameters: list[str], words: list[str]) -> list[str]:
    """The parameters that a command line does not have, as often as they are asked for."""
    return list((Counter(parameters) - Counter(words)).elements())


def overruled(parameters: list[str], words: list[str]) -> list[str]:
    """What a command line says against the parameters: of most names, the kernel takes the last."""
    asked = {parameter.split("=")[0]: parameter for parameter in parameters}
    last = {word.split("=")[0]: word for word in words}
    return [last[name] for name, word in asked.items() if name not in GATHERED and last.get(name, word) != word]


def kernel_lines(menu: str) -> list[list[str]]:
    """The command lines of Debian's own kernels, the rescue entries' among them.

    Memory tests, other systems and entries by hand have sections of their own. Source: /etc/grub.d/10_linux.
    """
    found = []
    section = ""
    for line in menu.splitlines():
        if line.startswith("### BEGIN "):
            section = line.split()[2]
        elif section == KERNELS and line.strip().startswith("linux"):
            found.append(line.split())
    return found


def in_menu(parameters: list[str], menu: str) -> bool:
    """Whether every kernel of a menu is started with every parameter."""
    lines = kernel_lines(menu)
    return bool(lines) and not any(lacking(parameters, words) for words in lines)


class Boot:
    """GRUB on this node."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module

    def tools(self) -> dict[str, str]:
        """Where GRUB's programs are. Raises BootError where one is not installed."""
        found = {name: self.module.get_bin_path(name) for name in ("grub-mkconfig", "grub-script-check")}
        absent = [name for name, path in found.items() if not path]
        if absent:
            raise BootError(f"there is a {MENU}, but no {' and no '.join(absent)}: install grub-common")
        return found

    def renew(self, parameters: list[str], before: str) -> None:
        """Write the file and the menu. Raises BootError or OSError, with the old files in place."""
        tools = self.tools()
        new = MENU.with_name("grub.cfg.inference")
        try:
            _replace(render(parameters))
            self._run(tools["grub-mkconfig"], "-o", str(new))
            self._run(tools["grub-script-check"], str(new))
            if not in_menu(parameters, new.read_text(encoding="utf-8")):
                raise BootError(
                    f"the new menu does not hold {' '.join(parameters)}:"
                    " does another file of /etc/default/grub.d set GRUB_CMDLINE_LINUX later?"
                )
            new.chmod(MENU.stat().st_mode & 0o777)
            _to_disk(new)
            new.replace(MENU)
        except (BootError, OSError, UnicodeDecodeError):
            new.unlink(missing_ok=True)
            _replace(before)
            raise

    def _run(self, *command: str) -> None:
        code, output, words = self.module.run_command(list(command))
        if code:
            raise BootError(f"{' '.join(command)} failed ({code}), the old menu stays: {(words or output).strip()}")


def _to_disk(path: Path) -> None:
    """Before the old menu goes, or a power cut leaves a machine that does not boot."""
    with path.open("rb") as stream:
        os.fsync(stream.fileno())


def _replace(text: str) -> None:
    if text:
        write(DROP_IN, text)
    else:
        DROP_IN.unlink(missing_ok=True)


def main() -> None:
    module = AnsibleModule(
        argument_spec={"parameters": {"type": "list", "elements": "str", "required": True}}, supports_check_mode=True
    )
    parameters = module.params["parameters"]
    wrong = [item for item in parameters if not PARAMETER.fullmatch(item)]
    if wrong:
        module.fail_json(
            msg=f"kernel_cmdline: {', '.join(map(repr, wrong))}: one parameter an item, without blanks or quotes"
        )
    boot = Boot(module)
    before = menu = ""
    try:
        with suppress(FileNotFoundError):
            before = DROP_IN.read_text(encoding="utf-8")
        with suppress(FileNotFoundError):
            menu = MENU.read_text(encoding="utf-8")
        if parameters and not menu:
            raise BootError(
                f"there is no {MENU}: this machine does not boot by GRUB. Set common_kernel_cmdline: [] here, and"
                " give the parameters to its own boot loader"
            )
        changed = render(parameters) != before or bool(parameters and not in_menu(parameters, menu))
        if changed and menu:
            boot.tools()
        if changed and not module.check_mode:
            if menu:
                boot.renew(parameters, before)
                menu = MENU.read_text(encoding="utf-8")
            else:
                _replace("")
    except (BootError, OSError, UnicodeDecodeError) as error:
        module.fail_json(msg=f"kernel_cmdline: {error}")
    lines = kernel_lines(menu)
    against = {word for line in lines for word in overruled(parameters, line)}
    if against:
        module.warn(
            f"the command line also says {' '.join(sorted(against))}, behind common_kernel_cmdline, and of one name the"
            " kernel takes the last: look into /etc/default/grub and /etc/default/grub.d"
        )
    running = CMDLINE.read_text(encoding="utf-8").split()
    gone = [item for item in lacking(parameters_of(before), parameters) if item in running]
    # Others may say it, too. Before the new menu is there, nobody knows.
    kept = set() if module.check_mode else {word for line in lines for word in line}
    module.exit_json(
        changed=changed,
        missing=lacking(parameters, running),
        surplus=[item for item in gone if item not in kept],
        diff={
            "before_header": str(DROP_IN),
            "after_header": str(DROP_IN),
            "before": before,
            "after": render(parameters),
        },
    )


if __name__ == "__main__":
    main()
