#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: apt_pins
short_description: Keep packages at their version
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Keeps C(apt upgrade) and unattended upgrades away from packages whose change would disturb what the node serves,
    with a pin, a blacklist and a hold of dpkg, all in one call.
  - Writes C(/etc/apt/preferences.d/52-NAME) and C(/etc/apt/apt.conf.d/52-NAME).
  - Only packages that are installed are held. Installs nothing.
attributes:
  check_mode:
    support: full
    description: Can run in check mode and return changed status prediction without modifying the node.
  diff_mode:
    support: full
    description: Returns details on what has changed, or would be changed in check mode, when in diff mode.
options:
  name:
    description: What the packages make up, which becomes part of the files' names.
    type: str
    required: true
  packages:
    description: The packages to hold.
    type: list
    elements: str
    required: true
  pinned:
    description: Those of them that are pinned to O(version).
    type: list
    elements: str
    default: []
  version:
    description: The version, with C(*) as a wildcard. Required where O(pinned) is not empty.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Keep the engine at its version
  baremetal.inference.apt_pins:
    name: docker
    packages: [docker.io, containerd, runc]
    pinned: [docker.io]
    version: 20.10.24*
"""

RETURN = r"""
held:
  description: The packages that were put on hold, or would be in check mode.
  returned: success
  type: list
  elements: str
"""

import os
import re
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

ETC_APT = Path("/etc/apt")
HEADER = "Managed by Ansible, module baremetal.inference.apt_pins: changes made here are lost."

PACKAGE = re.compile(r"[a-z0-9][a-z0-9.+-]+")
"""A package's name. Source: Debian policy 5.6.1."""

VERSION = re.compile(r"[0-9][A-Za-z0-9.+:~*-]*")
"""A version with wildcards. Source: Debian policy 5.6.12; a bare wildcard would pin nothing."""

NAME = re.compile(r"[a-z0-9_-]+")
"""What apt reads: a file whose name has other characters is left out. Source: apt.conf(5)."""


class PinError(Exception):
    """What was declared, or what dpkg says, is not usable; the text is for the operator."""


def mistakes(name: str, packages: list[str], pinned: list[str], version: str) -> list[str]:
    """What is wrong with the module's parameters: these files could otherwise break apt on the node."""
    found = [] if NAME.fullmatch(name) else [f"name {name!r}: only a-z, 0-9, _ and - may be in it"]
    found += [f"packages: {item!r} is not a package's name" for item in packages if not PACKAGE.fullmatch(item)]
    found += [f"pinned: {item!r} is not among packages" for item in pinned if item not in packages]
    if pinned and not VERSION.fullmatch(version):
        found.append(f"version {version!r}: must be a version as apt shows it, with * as a wildcard, as 20.10.24*")
    return found


def preferences(pinned: list[str], version: str) -> str:
    """The text that pins, empty where nothing is pinned; above 1000, so that a downgrade is meant too."""
    if not pinned:
        return ""
    return f"# {HEADER}\nPackage: {' '.join(pinned)}\nPin: version {version}\nPin-Priority: 1001\n"


def blacklist(packages: list[str]) -> str:
    """The text that keeps unattended upgrades away; apt merges the lists of all files."""
    items = "".join(f'        "^{re.escape(package)}$";\n' for package in packages)
    return f"// {HEADER}\nUnattended-Upgrade::Package-Blacklist {{\n{items}}};\n"


def unheld(output: str) -> list[str]:
    """The packages that are installed and not on hold, of dpkg-query's ``want status package`` lines."""
    lines = [line.split() for line in output.splitlines()]
    return [words[2] for words in lines if len(words) == 3 and words[0] != "hold" and words[1] == "installed"]


class Manager:
    """One run: look, and (outside check mode) act."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.packages: list[str] = module.params["packages"]
        self.texts = {
            ETC_APT / f"preferences.d/52-{module.params['name']}": preferences(
                module.params["pinned"], module.params["version"]
            ),
            ETC_APT / f"apt.conf.d/52-{module.params['name']}": blacklist(self.packages),
        }

    def to_hold(self) -> list[str]:
        """The packages to put on hold. dpkg-query ends with 1 where it does not know one. Raises PinError."""
        form = "${db:Status-Want} ${db:Status-Status} ${Package}\n"
        code, output, words = self.module.run_command(["dpkg-query", "--show", f"--showformat={form}", *self.packages])
        if code not in (0, 1):
            raise PinError(f"dpkg-query failed ({code}): {words.strip()}")
        return unheld(output)

    def hold(self, packages: list[str]) -> None:
        """Put packages on hold. Raises PinError."""
        selections = "".join(f"{package} hold\n" for package in packages)
        code, output, words = self.module.run_command(["dpkg", "--set-selections"], data=selections)
        if code:
            raise PinError(f"dpkg --set-selections failed ({code}): {(words or output).strip()}")

    def apply(self) -> dict[str, object]:
        """The module's result. Raises PinError and OSError."""
        before = {path: path.read_text(encoding="utf-8") if path.exists() else "" for path in self.texts}
        differing = [path for path in self.texts if before[path] != self.texts[path]]
        held = self.to_hold()
        if not self.module.check_mode:
            for path in differing:
                write(path, self.texts[path])
            if held:
                self.hold(held)
        diff = [
            {"before_header": str(path), "after_header": str(path), "before": before[path], "after": self.texts[path]}
            for path in differing
        ]
        return {"changed": bool(differing or held), "held": held, "diff": diff}


def write(path: Path, text: str) -> None:
    """Replace a file in one step, readable for all; an empty text removes it."""
    if not text:
        path.unlink(missing_ok=True)
        return
    # apt leaves a name with this ending alone, should the run be cut off.
    new = path.with_name(f"{path.name}.dpkg-new")
    with new.open("w", encoding="utf-8") as stream:
        os.fchmod(stream.fileno(), 0o644)
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    new.replace(path)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "packages": {"type": "list", "elements": "str", "required": True},
            "pinned": {"type": "list", "elements": "str", "default": []},
            "version": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    names = ("name", "packages", "pinned", "version")
    found = mistakes(*(module.params[name] for name in names))
    if found:
        module.fail_json(msg="\n- ".join(["Nothing was changed.", *found]))
    try:
        result = Manager(module).apply()
    except (PinError, OSError, UnicodeDecodeError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
