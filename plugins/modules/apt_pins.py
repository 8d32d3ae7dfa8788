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
  - What an earlier run with the same O(name) held and is no longer declared is released, unless another name has it.
    With an empty list of packages, both files are removed.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  name:
    description: What the packages make up, which becomes part of the files' names.
    type: str
    required: true
  packages:
    description: The packages to hold, with C(*) as a wildcard.
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
  versions:
    description: Versions by package, for those that are each pinned to one of their own, with C(*) as a wildcard.
    type: dict
    default: {}
  coming:
    description:
      - Packages that another task would have installed in a run outside check mode, as NAME or NAME=VERSION. In check
        mode they count as installed.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Keep the engine at its version
  baremetal.inference.apt_pins:
    name: docker
    packages: [docker.io, containerd, runc]
    pinned: [docker.io]
    version: 20.10.24*

- name: Keep the kernel, whichever is installed
  baremetal.inference.apt_pins:
    name: kernel
    packages: [linux-image-*, linux-headers-*]
"""

RETURN = r"""
held:
  description: The packages that were put on hold, or would be in check mode.
  returned: success
  type: list
  elements: str
released:
  description: The packages whose hold was taken off, or would be in check mode.
  returned: success
  type: list
  elements: str
"""

import fnmatch
import os
import re
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.debian.apt_pins import (
    ETC_APT,
    HEADER,
    ITEM,
    PREFERENCES,
    file_name,
    preferences,
)

PACKAGE = re.compile(r"[a-z0-9][a-z0-9.+*-]+")
"""A package's name, with wildcards. Source: Debian policy 5.6.1."""

VERSION = re.compile(r"[0-9][A-Za-z0-9.+:~*-]*")
"""A version with wildcards. Source: Debian policy 5.6.12; a bare wildcard would pin nothing."""

NAME = re.compile(r"[a-z0-9_-]+")
"""What apt reads: a file whose name has other characters is left out. Source: apt.conf(5)."""


class PinError(Exception):
    """What was declared, or what dpkg says, is not usable; the text is for the operator."""


def mistakes(
    name: str, packages: list[str], pinned: list[str], version: str, versions: dict[str, str] | None = None
) -> list[str]:
    """What is wrong with the module's parameters: these files could otherwise break apt on the node."""
    found = [] if NAME.fullmatch(name) else [f"name {name!r}: only a-z, 0-9, _ and - may be in it"]
    found += [f"packages: {item!r} is not a package's name" for item in packages if not PACKAGE.fullmatch(item)]
    found += [f"pinned: {item!r} is not among packages" for item in pinned if item not in packages]
    if pinned and not VERSION.fullmatch(version):
        found.append(f"version {version!r}: must be a version as apt shows it, with * as a wildcard, as 20.10.24*")
    for package, wanted in (versions or {}).items():
        if package not in packages or package in pinned:
            found.append(f"versions: {package!r} is not among packages, or is among pinned")
        if not VERSION.fullmatch(str(wanted)):
            found.append(f"versions: {package}: {wanted!r} must be a version as apt shows it, with * as a wildcard")
    return found


def blacklist(packages: list[str]) -> str:
    """The text that keeps unattended upgrades away, empty for no packages; apt merges the lists of all files.

    Sorted: the order means nothing, and Ansible's filters on sets give another one with each run.
    """
    if not packages:
        return ""
    items = "".join(f'        "^{expression(package)}$";\n' for package in sorted(packages))
    return f"// {HEADER}\nUnattended-Upgrade::Package-Blacklist {{\n{items}}};\n"


def expression(package: str) -> str:
    """A package's name with wildcards as a regular expression."""
    return ".*".join(re.escape(part) for part in package.split("*"))


def listed(text: str) -> list[re.Pattern[str]]:
    """The packages of a blacklist that this module wrote; none of one that it did not."""
    return [re.compile(item) for item in ITEM.findall(text)] if HEADER in text else []


def states(output: str) -> dict[str, bool]:
    """Whether a package that is installed is on hold, by name, from dpkg-query's ``want status package`` lines."""
    lines = [line.split() for line in output.splitlines()]
    return {words[2]: words[0] == "hold" for words in lines if len(words) == 3 and words[1] == "installed"}


class Manager:
    """One run: look, and (outside check mode) act."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.packages: list[str] = module.params["packages"]
        name = file_name(module.params["name"])
        self.blacklist = ETC_APT / "apt.conf.d" / name
        self.texts = {
            PREFERENCES / name: preferences(
                module.params["pinned"], module.params["version"], module.params["versions"]
            ),
            self.blacklist: blacklist(self.packages),
        }

    def query(self, *names: str) -> dict[str, bool]:
        """Whether the packages are on hold, all that are installed where none is named. Raises PinError."""
        form = "${db:Status-Want} ${db:Status-Status} ${Package}\n"
        code, output, words = self.module.run_command(["dpkg-query", "--show", f"--showformat={form}", *names])
        # 1: it does not know one of them.
        if code not in (0, 1):
            raise PinError(f"dpkg-query failed ({code}): {words.strip()}")
        return states(output)

    def to_release(self, old: str) -> list[str]:
        """The packages of the old blacklist that nobody declares any more. Raises PinError."""
        others = [path for path in self.blacklist.parent.glob("52-*") if path != self.blacklist]
        kept = [*listed(self.texts[self.blacklist]), *(item for path in others for item in listed(read(path)))]
        dropped = [item for item in listed(old) if item not in kept]
        if not dropped:
            return []
        held = [package for package, on_hold in self.query().items() if on_hold]
        return [
            package
            for package in held
            if any(item.fullmatch(package) for item in dropped) and not any(item.fullmatch(package) for item in kept)
        ]

    def select(self, hold: list[str], release: list[str]) -> None:
        """Put packages on hold, and take others off it. Raises PinError."""
        selections = "".join(f"{package} hold\n" for package in hold)
        selections += "".join(f"{package} install\n" for package in release)
        code, output, words = self.module.run_command(["dpkg", "--set-selections"], data=selections)
        if code:
            raise PinError(f"dpkg --set-selections failed ({code}): {(words or output).strip()}")

    def apply(self) -> dict[str, object]:
        """The module's result. Raises PinError and OSError."""
        before = {path: read(path) for path in self.texts}
        differing = [path for path in self.texts if before[path] != self.texts[path]]
        found = self.query(*self.packages) if self.packages else {}
        held = [package for package, on_hold in found.items() if not on_hold]
        if self.module.check_mode:
            coming = {package.partition("=")[0] for package in self.module.params["coming"]} - set(found)
            held += sorted(name for item in self.packages for name in fnmatch.filter(coming, item))
        released = self.to_release(before[self.blacklist])
        if not self.module.check_mode:
            # First the selections: the old list is what tells which to release.
            if held or released:
                self.select(held, released)
            for path in differing:
                write(path, self.texts[path])
        diff = [
            {"before_header": str(path), "after_header": str(path), "before": before[path], "after": self.texts[path]}
            for path in differing
        ]
        return {"changed": bool(differing or held or released), "held": held, "released": released, "diff": diff}


def read(path: Path) -> str:
    """A file's text, empty where it is not there. Raises OSError and UnicodeDecodeError."""
    return path.read_text(encoding="utf-8") if path.exists() else ""


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
            "versions": {"type": "dict", "default": {}},
            "coming": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    names = ("name", "packages", "pinned", "version", "versions")
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
