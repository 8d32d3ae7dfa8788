#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: apt_packages
short_description: Install, remove, pin and upgrade packages, and remove only packages that are named
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Installs and removes packages in one run of C(apt-get), without recommended packages. Installed packages keep their
    version, unless another version is named or a new package needs a newer one. A half-finished installation is
    completed.
  - Simulates the change first. If C(apt-get) would remove a package that is not in O(absent), or change a package on
    hold whose version is not named, the module fails and changes nothing.
  - With O(pins), keeps C(apt upgrade) and unattended upgrades from changing the given packages, by a pin, a blacklist
    and a hold of dpkg. Pins are written before packages are installed, so that apt chooses the pinned version also for
    dependencies. The installed packages are held afterwards.
  - With O(upgrade), upgrades installed packages as the last step.
  - Never fetches the package lists.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: partial
    details:
      - Shows the files of O(pins) and O(unattended).
options:
  present:
    description: Packages to install, as NAME or NAME=VERSION, with C(*) as a wildcard in the version.
    type: list
    elements: str
    default: []
  absent:
    description: Packages to remove. Their configuration stays.
    type: list
    elements: str
    default: []
  optional:
    description: Packages to install if one of the node's sources has them.
    type: list
    elements: str
    default: []
  held:
    description: Packages that another task holds, with C(*) as a wildcard. None of them may be in O(absent).
    type: list
    elements: str
    default: []
  own_holds:
    description:
      - Packages on hold that may change all the same, with C(*) as a wildcard, because the caller holds them itself by
        O(pins). O(pins) holds them again afterwards.
    type: list
    elements: str
    default: []
  pins:
    description:
      - Sets of packages that keep their version. Each set is written to C(/etc/apt/preferences.d/52-NAME) and
        C(/etc/apt/apt.conf.d/52-NAME). Only installed packages are held.
      - A package that an earlier run with the same name held, and that is no longer declared, is released, unless
        another set has the package.
      - Packages that the module installs are also held if another set on the node has them.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: The name of the set. It is part of the files' names.
        type: str
        required: true
      packages:
        description: The packages to hold, with C(*) as a wildcard. An empty list removes both files.
        type: list
        elements: str
        required: true
      pinned:
        description: The packages of the set that are pinned to O(pins[].version).
        type: list
        elements: str
        default: []
      version:
        description: The version, with C(*) as a wildcard. Required unless O(pins[].pinned) is empty.
        type: str
        default: ""
      versions:
        description:
          - Versions by package, with C(*) as a wildcard, for packages that are pinned to different versions.
        type: dict
        default: {}
  unattended:
    description:
      - The settings of Debian's unattended upgrades, in C(/etc/apt/apt.conf.d/52-inference). The file is written before
        packages are installed, because C(unattended-upgrades) would otherwise start with its own defaults.
    type: dict
    suboptions:
      enabled:
        description: Whether Debian's timers upgrade packages. They never reboot.
        type: bool
        required: true
      origins:
        description: The origins of unattended upgrades, each as patterns of C(KEY=VALUE) joined by commas.
        type: list
        elements: str
        default: []
  coming:
    description:
      - For O(pins) in check mode, packages that an earlier task would have installed, as NAME or NAME=VERSION. They
        count as installed.
    type: list
    elements: str
    default: []
  upgrade:
    description:
      - Upgrade installed packages, and complete half-finished installations.
      - Packages on hold keep their version, unless O(upgrade.release) names their set and the pin allows the newer
        version. The hold stays.
      - If C(apt-get) would remove a package, or change another package on hold, the module fails and upgrades nothing.
        The other options have taken effect before; the message names their changes.
    type: dict
    suboptions:
      mode:
        description: Which updates to install.
        type: str
        choices: [security, all, none]
        default: security
      labels:
        description: The labels of the archives with security updates.
        type: list
        elements: str
        default: [Debian-Security]
      release:
        description:
          - Names of O(pins), such as V(docker), whose held packages are upgraded in this run.
          - These packages are upgraded from any archive, but not with O(upgrade.mode=none).
        type: list
        elements: str
        default: []
  gone:
    description:
      - Packages that an earlier task removes. They count as not installed, also in check mode.
    type: list
    elements: str
    default: []
  microcode:
    description: Add the microcode of the node's processor to O(optional). Virtual machines and containers need none.
    type: bool
    default: false
  allow_unavailable:
    description: In check mode, do not fail if C(apt-get) cannot find packages, because the sources are about to change.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Install tools, and replace Debian's time service
  baremetal.inference.apt_packages:
    present: [curl, chrony]
    absent: [systemd-timesyncd]
    microcode: true

- name: Keep Docker at its version
  baremetal.inference.apt_packages:
    pins:
      - name: docker
        packages: [docker.io, containerd, runc]
        pinned: [docker.io]
        version: 20.10.24*

- name: Keep the installed kernel
  baremetal.inference.apt_packages:
    pins:
      - name: kernel
        packages: [linux-image-*, linux-headers-*]

- name: Install security updates
  baremetal.inference.apt_packages:
    upgrade:
      mode: security
"""

RETURN = r"""
installed:
  description: The packages that were installed, completed or changed their version, or would be in check mode.
  returned: success
  type: list
  elements: str
removed:
  description: The packages that were removed, or would be in check mode.
  returned: success
  type: list
  elements: str
differs:
  description: The differences between node and input, one phrase each.
  returned: success
  type: list
  elements: str
unavailable:
  description: Packages of O(optional), and with O(allow_unavailable) of O(present), that no source of the node has.
  returned: success
  type: list
  elements: str
components:
  description: The components of the node's sources, if a package is unavailable.
  returned: success
  type: list
  elements: str
held:
  description: The packages that O(pins) or another set has put on hold, or would in check mode.
  returned: success
  type: list
  elements: str
released:
  description: The packages that were released from their hold, or would be in check mode.
  returned: success
  type: list
  elements: str
updates:
  description: The updates that were installed, or would be in check mode.
  returned: with O(upgrade)
  type: list
  elements: dict
  contains:
    name:
      description: The package.
      type: str
    old:
      description: The version before; empty for a new dependency.
      type: str
    new:
      description: The version after the update.
      type: str
finished:
  description: The packages whose half-finished installation was completed, or would be in check mode.
  returned: with O(upgrade)
  type: list
  elements: str
on_hold:
  description: The packages on hold that O(upgrade) left as they are.
  returned: with O(upgrade)
  type: list
  elements: str
lines:
  description: The updates and the completed packages, one phrase each.
  returned: with O(upgrade)
  type: list
  elements: str
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.debian import apt_packages as ap
from ansible_collections.baremetal.inference.plugins.module_utils.debian import apt_pins, apt_unattended
from ansible_collections.baremetal.inference.plugins.module_utils.maintenance import updates as up

CPUINFO = Path("/proc/cpuinfo")
STATUS = Path("/var/lib/dpkg/status")


class PackageError(Exception):
    """The change is not possible, or not allowed. The text is for the operator."""


@dataclass(frozen=True)
class Plan:
    """The arguments for apt-get, and the packages that apt-get would install and remove with these."""

    changes: list[str] = field(default_factory=list)
    installed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    unavailable: list[str] = field(default_factory=list)


class Manager:
    """Packages by name: inspects the node, simulates, and (outside check mode) installs and removes."""

    def __init__(self, module: AnsibleModule, lists: ap.Lists, pins: Sequence[apt_pins.Pins] = ()) -> None:
        self.module = module
        self.lists = lists
        self.pins = pins

    def run(self, *command: str) -> tuple[int, str, str]:
        return self.module.run_command(list(command), environ_update=ap.ENVIRONMENT)

    def installed(self, names: list[str]) -> dict[str, ap.Installed]:
        """The installed packages by name, of the given names or of all. Raises PackageError."""
        code, output, words = self.run("dpkg-query", "--show", f"--showformat={ap.FORM}", *names)
        if code not in (0, 1):
            raise PackageError(f"dpkg-query failed ({code}): {words.strip()}")
        gone = self.module.params["gone"]
        return {name: package for name, package in ap.read_installed(output).items() if name not in gone}

    def plan(self) -> Plan:
        """The changes, as apt-get simulates them. Raises PackageError and OSError."""
        names = [*self.lists.present, *self.lists.absent, *self.lists.optional]
        before = self.installed(names) if names else {}
        gap = ap.gap(self.lists, before, self.policy)
        if not gap.missing and not gap.surplus:
            return Plan(unavailable=gap.unavailable)
        changes = [*gap.missing, *(f"{name}-" for name in gap.surplus)]
        if any("=" in name for name in gap.missing):
            changes.insert(0, "--allow-downgrades")
        unknown, installed, removed = self.simulate(changes)
        return Plan(changes, installed, removed, gap.unavailable + unknown)

    def policy(self, names: list[str]) -> str:
        """The versions that the sources have of packages, as apt-cache prints them. Raises PackageError."""
        code, output, words = self.run("apt-cache", "policy", *names)
        # apt-cache prints nothing about a package that no source has, and does not fail.
        if code:
            raise PackageError(f"apt-cache policy failed ({code}): {ap.tail(output, words)}. Nothing was changed")
        return output

    def carry_out(self, plan: Plan) -> None:
        """Install and remove. Raises PackageError."""
        if plan.installed or plan.removed:
            code, output, words = self.run("apt-get", *ap.OPTIONS, "install", *plan.changes)
            if code:
                raise PackageError(f"apt-get failed ({code}): {ap.tail(output, words)}")

    def apply(self) -> dict[str, Any]:
        """The result of packages and pins. Raises PackageError, PinError and OSError."""
        plan = self.plan()
        coming = [*self.module.params["coming"], *plan.installed]
        unattended = self.module.params["unattended"]
        diff = apt_unattended.apply(**unattended, check=self.module.check_mode) if unattended else []
        results = [pins.apply(coming) for pins in self.pins]
        if not self.module.check_mode:
            self.carry_out(plan)
            # A second time: apt-get removes the hold of packages that it changes, and new dependencies have no hold.
            results += [pins.apply() for pins in self.pins if plan.installed]
        results.append(self.hold_for_others(plan.installed))
        pinned = {key: [item for result in results for item in result[key]] for key in ("held", "released", "diff")}
        verbs = {
            "install": plan.installed,
            "remove": plan.removed,
            "hold": pinned["held"],
            "release": pinned["released"],
        }
        diff += pinned["diff"]
        return {
            "installed": plan.installed,
            "removed": plan.removed,
            "unavailable": plan.unavailable,
            "components": self.components() if plan.unavailable else [],
            **pinned,
            "diff": diff,
            "differs": [
                *(f"{verb} {', '.join(names)}" for verb, names in verbs.items() if names),
                *(f"{item['after_header']} differs" for item in diff),
            ],
        }

    def hold_for_others(self, installed: Sequence[str]) -> dict[str, list[Any]]:
        """Hold installed packages of the other sets of pins on this node. Raises PinError and OSError."""
        held = apt_pins.not_held(self.module.run_command, [name.partition("=")[0] for name in installed])
        if held and not self.module.check_mode:
            apt_pins.select(self.module.run_command, held)
        return {"held": held, "released": [], "diff": []}

    def simulate(self, changes: list[str]) -> tuple[list[str], list[str], list[str]]:
        """The packages that no source has, and those that apt-get would install and remove. Raises PackageError."""
        with self.future() as future:
            code, output, words = self.run("apt-get", *ap.OPTIONS, *future, "--simulate", "install", *changes)
        if code:
            unknown = ap.unknown(words)
            if self.module.check_mode and self.module.params["allow_unavailable"]:
                # The new sources may give another result: only the names are certain.
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
        """Options for apt-get that simulate the future node: packages of `gone` removed, pins written.

        The options are valid within the context. Raises OSError.
        """
        gone = self.module.params["gone"]
        with TemporaryDirectory() as name:
            directory, options = Path(name), []
            if gone:
                status = directory / "status"
                status.write_text(ap.without(STATUS.read_text(encoding="utf-8"), gone), encoding="utf-8")
                options.append(f"--option=Dir::State::status={status}")
            if self.pins:
                preferences = directory / "preferences"
                shutil.copytree(apt_pins.PREFERENCES, preferences)
                for pins in self.pins:
                    apt_pins.write(preferences / pins.preferences.name, pins.texts[pins.preferences])
                options.append(f"--option=Dir::Etc::PreferencesParts={preferences}")
            yield options

    def offers(self, unknown: list[str]) -> str:
        """A sentence with the versions or components that the sources have, for packages that were not found."""
        versions = {name: ap.read_versions(self.run("apt-cache", "madison", name)[1]) for name in unknown}
        found = [f"of {name} {', '.join(has)}" for name, has in versions.items() if has]
        components = f"the components {', '.join(self.components())}"
        return f"The node's sources have {'; '.join(found) or components}."

    def components(self) -> list[str]:
        _code, output, _words = self.run("apt-get", "indextargets", "--format", "$(COMPONENT)", "Created-By: Packages")
        return ap.read_components(output)


class Upgrade:
    """Upgrades: inspects the node, simulates, and (outside check mode) installs newer versions.

    `done` are the differences that the module has removed before.
    """

    def __init__(self, module: AnsibleModule, wanted: Mapping[str, Any], done: Sequence[str]) -> None:
        self.module = module
        self.wanted = wanted
        self.done = done
        self.installed = self._installed()

    def run(self, *command: str) -> str:
        """The output of a command. Raises PackageError."""
        code, output, words = self.module.run_command(list(command), environ_update=ap.ENVIRONMENT)
        if code:
            raise PackageError(f"{' '.join(command[:2])} failed ({code}): {ap.tail(output, words)}")
        return str(output)

    def _installed(self) -> dict[str, ap.Installed]:
        return ap.read_installed(self.run("dpkg-query", "--show", f"--showformat={ap.FORM}"))

    def apply(self) -> dict[str, Any]:
        """Upgrade, and return the updates. Raises PackageError, PinError and OSError."""
        half = up.half(self.installed)
        free = self.free()
        held = sorted(name for name, package in self.installed.items() if package.held and name not in free)
        coming = self.coming(free)
        planned = self.simulate(coming, held) if coming else []
        if planned and not self.module.check_mode:
            self.run("apt-get", *ap.OPTIONS, "install", "--only-upgrade", *coming)
            if free:
                apt_pins.select(self.module.run_command, free)
        # After the updates: a package may have failed to install because it needs a newer version of another package.
        if half and not self.module.check_mode and up.half(self._installed()):
            self.run("dpkg", "--configure", "--pending", "--force-confdef", "--force-confold")
        lines = [f"finish {', '.join(half)}"] if half else []
        return {
            "updates": [{"name": one.name, "old": one.old, "new": one.new} for one in planned],
            "finished": half,
            "on_hold": held,
            "lines": [*lines, *map(str, planned)],
        }

    def free(self) -> list[str]:
        """The packages on hold that may be upgraded. Raises OSError."""
        patterns = [item for name in self.wanted["release"] for item in apt_pins.held_patterns(name)]
        return up.released(self.installed, patterns)

    def coming(self, free: Sequence[str]) -> list[str]:
        """The available updates, as NAME=VERSION for apt-get. Raises PackageError."""
        found = up.parse(self.run("apt-get", *ap.OPTIONS, "--simulate", "upgrade", "--with-new-pkgs"))
        chosen = up.wanted(found, self.wanted["mode"], self.wanted["labels"])
        if free and self.wanted["mode"] != up.NONE:
            # apt-get upgrade leaves out packages on hold.
            more = up.parse(self.run("apt-get", *ap.OPTIONS, "--simulate", "install", "--only-upgrade", *free))
            chosen += [one for one in more if one.name in free and one.old]
        return sorted({f"{one.name}={one.new}" for one in chosen})

    def simulate(self, coming: Sequence[str], held: Sequence[str]) -> list[up.Update]:
        """The updates with all their dependencies. Raises PackageError."""
        output = self.run("apt-get", *ap.OPTIONS, "--simulate", "install", "--only-upgrade", *coming)
        planned = up.parse(output)
        found = up.objections(planned, up.removals(output), held)
        if found:
            so_far = "Nothing was changed"
            if self.done:
                so_far = f"No package was upgraded, but other options have taken effect ({'; '.join(self.done)})"
            raise PackageError("\n- ".join([f"{so_far}. With {' '.join(coming)}", *found]))
        return planned


def unavailable(result: Mapping[str, Any], sources_change: bool) -> str:
    """The warning about packages that no source has."""
    names = ", ".join(result["unavailable"])
    if sources_change:
        return f"{names}: will be installed from the new sources, if these have the package."
    return (
        f"{names}: not found in the components of the sources ({', '.join(result['components'])}). Microcode and"
        " firmware are in non-free-firmware: add this component to Debian's source (common_apt_sources), or set"
        " common_firmware to false."
    )


def guest(module: AnsibleModule) -> bool:
    """Whether the node is a virtual machine or a container."""
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
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "name": {"type": "str", "required": True},
                    "packages": {"type": "list", "elements": "str", "required": True},
                    "pinned": words,
                    "version": {"type": "str", "default": ""},
                    "versions": {"type": "dict", "default": {}},
                },
            },
            "unattended": {
                "type": "dict",
                "options": {"enabled": {"type": "bool", "required": True}, "origins": words},
            },
            "coming": words,
            "upgrade": {
                "type": "dict",
                "options": {
                    "mode": {"type": "str", "choices": list(up.MODES), "default": up.SECURITY},
                    "labels": {"type": "list", "elements": "str", "default": ["Debian-Security"]},
                    "release": words,
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
            # The operator may declare microcode as absent.
            optional += [package] if package and package not in params["absent"] else []
        reading = ap.read_lists(params["present"], params["absent"], optional, params["held"])
        problems = list(map(str, reading.problems))
        problems += [text for item in params["pins"] for text in apt_pins.mistakes(**item)]
        problems += apt_unattended.mistakes(params["unattended"]["origins"] if params["unattended"] else [])
        if problems:
            module.fail_json(msg="\n- ".join(["Nothing was changed.", *problems]))
        pins = [apt_pins.Pins(module.run_command, item, module.check_mode) for item in params["pins"]]
        result = Manager(module, replace(reading.lists, own_holds=tuple(params["own_holds"])), pins).apply()
        if params["upgrade"] is not None:
            done = [] if module.check_mode else result["differs"]
            result |= Upgrade(module, params["upgrade"], done).apply()
    except (PackageError, apt_pins.PinError, OSError, UnicodeDecodeError) as error:
        module.fail_json(msg=str(error))
    if params["microcode"] and result["unavailable"]:
        module.warn(unavailable(result, params["allow_unavailable"] and module.check_mode))
    module.exit_json(changed=any(result.get(key) for key in ("differs", "updates", "finished")), **result)


if __name__ == "__main__":
    main()
