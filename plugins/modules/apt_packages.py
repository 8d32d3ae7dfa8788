#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: apt_packages
short_description: Install and remove packages in one step, without taking along what nobody named
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Installs and removes packages in one run of C(apt-get), without recommended ones. What is installed stays at its
    version, unless another is wanted. An installation that failed half-way is finished.
  - Lets C(apt-get) simulate the change first. Where it would remove a package that is not in O(absent), or change one
    that is on hold and whose version nobody named, the module fails, and nothing is changed.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options:
  present:
    description: What shall be installed, as NAME or NAME=VERSION, with C(*) as a wildcard in a version.
    type: list
    elements: str
    default: []
  absent:
    description: What shall not be installed. Configuration stays.
    type: list
    elements: str
    default: []
  optional:
    description: What shall be installed where one of the node's sources has it.
    type: list
    elements: str
    default: []
  held:
    description: What is declared as held elsewhere, with C(*) as a wildcard; it contradicts O(absent).
    type: list
    elements: str
    default: []
  own_holds:
    description:
      - Packages that the caller itself holds, with C(*) as a wildcard, and that may change with the others. Their hold
        is put back by M(baremetal.inference.apt_pins).
    type: list
    elements: str
    default: []
  pins:
    description:
      - Pins that M(baremetal.inference.apt_pins) writes before the packages are installed. They count in the simulation
        already where it has not yet.
    type: dict
    suboptions:
      name:
        description: The same as there.
        type: str
        required: true
      packages:
        description: What is pinned.
        type: list
        elements: str
        required: true
      version:
        description: The version that it is pinned to.
        type: str
        required: true
  gone:
    description:
      - What is removed before, by a run of its own. For the simulation and the result, it is not installed any
        more, also in check mode, where it still is.
    type: list
    elements: str
    default: []
  microcode:
    description: Add the microcode of the node's processor to O(optional). A guest or container needs none.
    type: bool
    default: false
  allow_unavailable:
    description: In check mode, do not fail where C(apt-get) cannot simulate, since the sources are about to change.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Have the tools, and another time server than Debian's
  baremetal.inference.apt_packages:
    present: [curl, chrony]
    absent: [systemd-timesyncd]
    microcode: true
"""

RETURN = r"""
installed:
  description: What was installed or changed in version, or would be in check mode.
  returned: success
  type: list
  elements: str
removed:
  description: What was removed, or would be in check mode.
  returned: success
  type: list
  elements: str
unavailable:
  description: What no source of the node has, of O(optional), and with O(allow_unavailable) of O(present).
  returned: success
  type: list
  elements: str
components:
  description: The components of the node's sources, where something is unavailable.
  returned: success
  type: list
  elements: str
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.debian import apt_packages as ap
from ansible_collections.baremetal.inference.plugins.module_utils.debian import apt_pins

CPUINFO = Path("/proc/cpuinfo")
STATUS = Path("/var/lib/dpkg/status")


class PackageError(Exception):
    """The change is not possible, or must not be made; the text is for the operator."""


class Manager:
    """One run: look, simulate, and (outside check mode) act."""

    def __init__(self, module: AnsibleModule, lists: ap.Lists) -> None:
        self.module = module
        self.lists = lists

    def run(self, *command: str) -> tuple[int, str, str]:
        return self.module.run_command(list(command), environ_update=ap.ENVIRONMENT)

    def installed(self, names: list[str]) -> dict[str, ap.Installed]:
        """What is installed of some packages, all where none is named. Raises PackageError."""
        code, output, words = self.run("dpkg-query", "--show", f"--showformat={ap.FORM}", *names)
        if code not in (0, 1):
            raise PackageError(f"dpkg-query failed ({code}): {words.strip()}")
        gone = self.module.params["gone"]
        return {name: package for name, package in ap.read_installed(output).items() if name not in gone}

    def apply(self) -> dict[str, object]:
        """The module's result. Raises PackageError and OSError."""
        names = [*self.lists.present, *self.lists.absent, *self.lists.optional]
        before = self.installed(names) if names else {}
        missing, surplus = self.lists.missing(before), self.lists.surplus(before)
        wanted = [name for name in self.lists.optional if name not in before]
        offered = ap.read_candidates(self.run("apt-cache", "policy", *wanted)[1]) if wanted else set()
        missing += [name for name in wanted if name in offered]
        unavailable = [name for name in wanted if name not in offered]
        installed: list[str] = []
        removed: list[str] = []
        if missing or surplus:
            changes = [*missing, *(f"{name}-" for name in surplus)]
            if any("=" in name for name in missing):
                changes.insert(0, "--allow-downgrades")
            unknown, installed, removed = self.simulate(changes)
            unavailable += unknown
            if not self.module.check_mode and (installed or removed):
                code, output, words = self.run("apt-get", *ap.OPTIONS, "install", *changes)
                if code:
                    raise PackageError(f"apt-get failed ({code}): {ap.tail(output, words)}")
        return {
            "changed": bool(installed or removed),
            "installed": installed,
            "removed": removed,
            "unavailable": unavailable,
            "components": self.components() if unavailable else [],
        }

    def simulate(self, changes: list[str]) -> tuple[list[str], list[str], list[str]]:
        """What no source has, and what apt-get would install and remove. Raises PackageError."""
        with self.future() as future:
            code, output, words = self.run("apt-get", *ap.OPTIONS, *future, "--simulate", "install", *changes)
        if code:
            unknown = ap.unknown(words)
            if self.module.check_mode and self.module.params["allow_unavailable"]:
                # With other sources, apt may say something else: more than the names cannot be predicted.
                names = [name for name in changes if not name.startswith("--")]
                return unknown, [n for n in names if not n.endswith("-")], [n[:-1] for n in names if n.endswith("-")]
            where = f" {self.offers(unknown)}" if unknown else ""
            raise PackageError(f"Nothing was changed. apt-get says: {ap.tail(output, words)}{where}")
        planned = ap.actions(output)
        found = ap.objections(self.lists, self.installed([]), planned)
        if found:
            asked = " ".join(name for name in changes if not name.startswith("--"))
            raise PackageError("\n- ".join([f"Nothing was changed. With apt-get install {asked}", *found]))
        return [], [*planned.changed, *planned.finished], planned.removed

    @contextmanager
    def future(self) -> Iterator[list[str]]:
        """The options that let apt-get see the node as it will be by then, as long as this lasts. Raises OSError."""
        gone, pins = self.module.params["gone"], self.module.params["pins"]
        with TemporaryDirectory() as name:
            directory, options = Path(name), []
            if gone:
                status = directory / "status"
                status.write_text(ap.without(STATUS.read_text(encoding="utf-8"), gone), encoding="utf-8")
                options.append(f"--option=Dir::State::status={status}")
            if pins:
                preferences = directory / "preferences"
                shutil.copytree(apt_pins.PREFERENCES, preferences)
                text = apt_pins.preferences(pins["packages"], pins["version"])
                (preferences / apt_pins.file_name(pins["name"])).write_text(text, encoding="utf-8")
                options.append(f"--option=Dir::Etc::PreferencesParts={preferences}")
            yield options

    def offers(self, unknown: list[str]) -> str:
        """What the sources have instead of what they do not have."""
        versions = {name: ap.read_versions(self.run("apt-cache", "madison", name)[1]) for name in unknown}
        found = [f"of {name} {', '.join(has)}" for name, has in versions.items() if has]
        components = f"the components {', '.join(self.components())}"
        return f"The node's sources have {'; '.join(found) or components}."

    def components(self) -> list[str]:
        _code, output, _words = self.run("apt-get", "indextargets", "--format", "$(COMPONENT)", "Created-By: Packages")
        return ap.read_components(output)


def guest(module: AnsibleModule) -> bool:
    """Whether this is a virtual machine or a container."""
    code, _output, _words = module.run_command(["systemd-detect-virt", "--quiet"])
    return code == 0


def main() -> None:
    words = {"type": "list", "elements": "str", "default": []}
    module = AnsibleModule(
        argument_spec={
            "present": words,
            "absent": words,
            "optional": words,
            "held": words,
            "own_holds": words,
            "pins": {
                "type": "dict",
                "options": {
                    "name": {"type": "str", "required": True},
                    "packages": {"type": "list", "elements": "str", "required": True},
                    "version": {"type": "str", "required": True},
                },
            },
            "gone": words,
            "microcode": {"type": "bool", "default": False},
            "allow_unavailable": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    params = module.params
    optional = list(params["optional"])
    try:
        if params["microcode"]:
            package = ap.microcode(CPUINFO.read_text(encoding="utf-8"), guest(module))
            optional += [package] if package else []
        reading = ap.read_lists(params["present"], params["absent"], optional, params["held"])
        if reading.problems:
            module.fail_json(msg="\n- ".join(["Nothing was changed.", *map(str, reading.problems)]))
        result = Manager(module, replace(reading.lists, own_holds=tuple(params["own_holds"]))).apply()
    except (PackageError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
