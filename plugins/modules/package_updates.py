#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: package_updates
short_description: Bring a node's packages up to date, but for those that are held
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Installs newer versions of what is installed, of the security archive or of all. What an earlier run has left half
    is finished first.
  - Packages on hold stay, unless the hold is that of an O(release) and the pin allows the version. The hold is kept.
  - Lets C(apt-get) simulate the change first. Where that would remove a package, or move one on hold, the module fails,
    and nothing is changed. Never fetches the lists of packages.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options:
  mode:
    description: Which updates come.
    type: str
    choices: [security, all, none]
    default: security
  labels:
    description: The labels of the archives whose updates are those of security.
    type: list
    elements: str
    default: [Debian-Security]
  release:
    description:
      - Names that M(baremetal.inference.apt_pins) holds packages by, as V(docker), whose packages may come this time.
      - They come whatever their archive is, but not with O(mode=none).
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Bring security updates
  baremetal.inference.package_updates:
    mode: security
"""

RETURN = r"""
updates:
  description: What came, or would in check mode.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: The package.
      type: str
    old:
      description: The version that was there; empty where it came along for the first time.
      type: str
    new:
      description: The version that came.
      type: str
finished:
  description: The packages that were half installed before.
  returned: success
  type: list
  elements: str
held:
  description: The packages on hold.
  returned: success
  type: list
  elements: str
lines:
  description: The same for people.
  returned: success
  type: list
  elements: str
"""

from collections.abc import Sequence

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.debian import apt_packages as ap
from ansible_collections.baremetal.inference.plugins.module_utils.debian import apt_pins
from ansible_collections.baremetal.inference.plugins.module_utils.maintenance import updates as up


class UpdateError(Exception):
    """The change is not possible, or must not be made; the text is for the operator."""


class Manager:
    """One run: look, simulate, and (outside check mode) act."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.installed = self._installed()

    def run(self, *command: str) -> str:
        """What a command says. Raises UpdateError."""
        code, output, words = self.module.run_command(list(command), environ_update=ap.ENVIRONMENT)
        if code:
            raise UpdateError(f"{' '.join(command[:2])} failed ({code}): {ap.tail(output, words)}")
        return str(output)

    def _installed(self) -> dict[str, ap.Installed]:
        return ap.read_installed(self.run("dpkg-query", "--show", f"--showformat={ap.FORM}"))

    def apply(self) -> dict[str, object]:
        """The module's result. Raises UpdateError and OSError."""
        half = up.half(self.installed)
        free = self.free()
        held = sorted(name for name, package in self.installed.items() if package.held and name not in free)
        coming = self.coming(free)
        planned = self.simulate(coming, held) if coming else []
        if planned and not self.module.check_mode:
            self.run("apt-get", *ap.OPTIONS, "install", "--only-upgrade", *coming)
            if free:
                self.hold(free)
        # After the updates: a newer version may be what a package is missing that failed to install.
        if half and not self.module.check_mode and up.half(self._installed()):
            self.run("dpkg", "--configure", "--pending", "--force-confdef", "--force-confold")
        lines = [f"finish {', '.join(half)}"] if half else []
        return {
            "changed": bool(half or planned),
            "updates": [{"name": one.name, "old": one.old, "new": one.new} for one in planned],
            "finished": half,
            "held": held,
            "lines": [*lines, *map(str, planned)],
        }

    def free(self) -> list[str]:
        """The packages on hold that may move. Raises OSError."""
        patterns = [item for name in self.module.params["release"] for item in apt_pins.held_patterns(name)]
        return up.released(self.installed, patterns)

    def coming(self, free: Sequence[str]) -> list[str]:
        """What there is to update, by the names and versions that apt-get wants. Raises UpdateError."""
        params = self.module.params
        found = up.parse(self.run("apt-get", *ap.OPTIONS, "--simulate", "upgrade", "--with-new-pkgs"))
        chosen = up.wanted(found, params["mode"], params["labels"])
        if free and params["mode"] != up.NONE:
            # What is on hold is no part of an upgrade.
            more = up.parse(self.run("apt-get", *ap.OPTIONS, "--simulate", "install", "--only-upgrade", *free))
            chosen += [one for one in more if one.name in free and one.old]
        return sorted({f"{one.name}={one.new}" for one in chosen})

    def simulate(self, coming: Sequence[str], held: Sequence[str]) -> list[up.Update]:
        """What comes with all that it takes along. Raises UpdateError."""
        output = self.run("apt-get", *ap.OPTIONS, "--simulate", "install", "--only-upgrade", *coming)
        planned = up.parse(output)
        found = up.objections(planned, up.removals(output), held)
        if found:
            raise UpdateError("\n- ".join([f"Nothing was changed. With {' '.join(coming)}", *found]))
        return planned

    def hold(self, names: Sequence[str]) -> None:
        """Hold what was let go for this time."""
        selections = "".join(f"{name} hold\n" for name in names)
        code, output, words = self.module.run_command(["dpkg", "--set-selections"], data=selections)
        if code:
            raise UpdateError(f"dpkg --set-selections failed ({code}): {(words or output).strip()}")


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "mode": {"type": "str", "choices": list(up.MODES), "default": up.SECURITY},
            "labels": {"type": "list", "elements": "str", "default": ["Debian-Security"]},
            "release": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    try:
        result = Manager(module).apply()
    except (UpdateError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
