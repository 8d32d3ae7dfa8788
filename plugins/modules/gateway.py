#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: gateway
short_description: Configure HAProxy as the gateway, or remove the gateway from a host
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Writes HAProxy's configuration and the files that it names, after HAProxy has checked all of them together in a
    temporary directory. If HAProxy refuses them, nothing changes.
  - If only maps differ, replaces them in the running process. Any other change needs a reload, which drops no
    connection and keeps the states of servers. Starts and enables HAProxy if needed.
  - If the new process does not start, the module puts the old files back and reports HAProxy's last messages. At a
    reload, the old process keeps serving.
  - Refuses to replace a configuration that this collection did not write, unless O(replace=true).
  - With O(state=absent), stops keepalived, so that a floating address moves to another gateway. Then it stops HAProxy,
    which cuts open connections. Disables both services, and removes the files of this module and of the role gateway.
  - With O(state=absent), packages and certificates stay. A service whose configuration this collection did not write
    stays unchanged.
  - Internal to this collection; its options may change without notice.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - If HAProxy, or a certificate that the role makes or obtains, is missing, the files cannot be checked, and
        RV(validated) is false.
  diff_mode:
    support: full
    details:
      - Shows only the names of O(plan.maps).
options:
  state:
    description: V(present) configures the gateway, V(absent) removes it.
    type: str
    choices: [present, absent]
    default: present
  parts:
    description:
      - What to configure or remove. V(haproxy) is HAProxy, V(floating) is keepalived, which holds the floating address.
      - O(state=absent) with V(floating) alone removes the floating address, and the machine stays a gateway.
        O(state=absent) with V(haproxy) removes both.
    type: list
    elements: str
    choices: [haproxy, floating]
    default: [haproxy, floating]
  packages:
    description: The packages that another task installs. Check mode returns missing packages as RV(missing).
    type: list
    elements: str
    default: []
  held:
    description:
      - The packages that another task holds by O(baremetal.inference.apt_packages#module:pins). In check mode,
        RV(due) is true if a hold, or a file of a hold, would change.
    type: list
    elements: str
    default: []
  plan:
    description: The result of the filter P(baremetal.inference.gateway_plan#filter). Required with O(state=present).
    type: dict
    suboptions:
      problems:
        description: Mistakes in the input. If there are any, the module fails with all of them, and changes nothing.
        type: list
        elements: str
        default: []
      warnings:
        description: Input that works, but perhaps not as intended. The module warns of it.
        type: list
        elements: str
        default: []
      config:
        description: The text of C(haproxy.cfg), which names files without a directory.
        type: str
        required: true
      maps:
        description: The text of each map by its file name. Maps get mode 0600, and are never shown.
        type: dict
        default: {}
      files:
        description: The text of every other file that the configuration names, by file name.
        type: dict
        default: {}
      backends:
        description: The hosts of each replica set.
        type: dict
        default: {}
      floating:
        description:
          - The text of C(keepalived.conf). If empty, the module stops keepalived, and removes the configuration that
            this collection wrote.
        type: str
        default: ""
  certificate_form:
    description:
      - Where the certificate comes from. V(ca) is the site's own CA, V(acme) is certbot, V(certificate) is the site's
        own certificate. V(none) and V(kept) are plain HTTP. M(baremetal.inference.gateway_certificate) makes and
        obtains certificates.
    type: str
    choices: [ca, certificate, acme, none, kept]
    default: certificate
  certificate:
    description:
      - The path of the site's own certificate with its chain, for O(certificate_form=certificate). Empty for no TLS.
    type: str
    default: ""
  certificate_key:
    description: The path of the certificate's key, if the file of O(certificate) does not contain the key.
    type: str
    default: ""
  check_names:
    description:
      - Refuse a site's own certificate that is not valid, lacks its key, or lacks one of these names. For V(acme),
        refuse what prevents the first certificate for these names. Without this option, the module does not check the
        certificate.
    type: list
    elements: str
  acme_email:
    description: The e-mail address for the authority. For O(check_names) with V(acme).
    type: str
    default: ""
  acme_server:
    description: The URL of the authority's directory. For O(check_names) with V(acme).
    type: str
    default: ""
  memory_max:
    description: The memory that HAProxy may take, as systemd writes it.
    type: str
    default: 50%
  settings:
    description:
      - The settings of the files, without engines and keys, stored in C(/var/lib/inference/gateway.json). After a
        change of the engines, a run renders new files from these settings, not from the inventory.
    type: dict
    default: {}
  replace:
    description: Replace a configuration that this collection did not write. A copy is kept.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Configure the gateway
  baremetal.inference.gateway:
    plan: "{{ settings | baremetal.inference.gateway_plan(gateway_replicas, gateway_keys) }}"

- name: Remove the gateway from the host
  baremetal.inference.gateway:
    state: absent

- name: Give up the floating address
  baremetal.inference.gateway:
    state: absent
    parts: [floating]
"""

RETURN = r"""
due:
  description:
    - Whether the module changes, or would change, anything, or packages or holds of O(packages) and O(held) are
      missing. Unlike C(changed), not hidden by C(changed_when).
  returned: success
  type: bool
missing:
  description: The packages of O(packages) that are not installed; empty outside of check mode.
  returned: with O(state=present)
  type: list
  elements: str
action:
  description:
    - How the change was, or would be, applied. V(none), V(maps) for a change in the running process, V(reload), or
      V(start).
  returned: with O(state=present), if O(parts) has V(haproxy)
  type: str
validated:
  description: Whether HAProxy has checked the files. False in check mode if HAProxy or the certificate is missing.
  returned: with O(state=present), if O(parts) has V(haproxy)
  type: bool
backup_file:
  description: The copy of a replaced configuration that this collection did not write.
  returned: if such a file was replaced
  type: str
stopped:
  description: The services that were, or would be, stopped and disabled.
  returned: with O(state=absent)
  type: list
  elements: str
removed:
  description: The files that were, or would be, removed.
  returned: with O(state=absent)
  type: list
  elements: str
floating_address:
  description: The floating address in the configuration of keepalived that this collection wrote. Empty for none.
  returned: with O(state=absent)
  type: str
  sample: 192.0.2.10/24
foreign:
  description: Configurations that this collection did not write, whose service stays unchanged.
  returned: with O(state=absent)
  type: list
  elements: str
"""

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.quiet_module import QuietModule
from ansible_collections.baremetal.inference.plugins.module_utils.debian import apt_packages, tested
from ansible_collections.baremetal.inference.plugins.module_utils.debian.apt_pins import PinError, Pins
from ansible_collections.baremetal.inference.plugins.module_utils.debian.service_files import (
    HIDDEN,
    Link,
    ServiceError,
    ServiceFiles,
    remove,
)
from ansible_collections.baremetal.inference.plugins.module_utils.gateway import (
    acme,
    certificates,
    forms,
    removal,
    runtime,
    serving,
)
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.keepalived import Keepalived
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.names import (
    CONFIG,
    CONTROL_SOCKET,
    HEADER,
    KEYS_MAP,
)
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.places import (
    DIRECTORY,
    DROP_IN,
    HAPROXY,
    LINKS,
    STATE,
)
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.unit import drop_in

HAPROXY_PART = "haproxy"
FLOATING_PART = "floating"
PARTS = [HAPROXY_PART, FLOATING_PART]

CERTIFICATE_OPTIONS = ("certificate_form", "certificate", "certificate_key")

RELOAD_SECONDS = 30.0
"""How long to wait until the new process serves, in seconds."""


def digest(texts: dict[str, str]) -> str:
    """One checksum over the names and texts of some files."""
    whole = hashlib.sha256()
    for name in sorted(texts):
        whole.update(f"{name}\0{texts[name]}\0".encode())
    return whole.hexdigest()


class Gateway(ServiceFiles):
    """HAProxy on this machine."""

    units = (HAPROXY,)

    def __init__(self, module: AnsibleModule) -> None:
        super().__init__(module)
        plan = self.params["plan"]
        self.maps: dict[str, str] = plan["maps"]
        self.loaded_at_start = {CONFIG: plan["config"], **plan["files"]}
        self.texts = {**self.loaded_at_start, **self.maps}
        # An empty path of the key means that the certificate's file has the key.
        paths = serving.paths(*(self.params[name] for name in CERTIFICATE_OPTIONS))
        pairs = zip(LINKS, paths, strict=True)
        self.targets = {name: target for name, target in pairs if target}
        self.drop_ins = frozenset({DROP_IN})
        self.links = frozenset(DIRECTORY / name for name in LINKS)
        self.ask = runtime.ask(Path(CONTROL_SOCKET))
        self.old_worker: int | None = None

    def inspect(self) -> None:
        self.haproxy = self.module.get_bin_path("haproxy", opt_dirs=["/usr/sbin"])
        if self.haproxy is None and not self.module.check_mode:
            raise ServiceError("HAProxy is not installed: install the package haproxy first. Nothing was changed.")
        self.state = files.read_written(STATE)
        self.compare(
            {
                **{DIRECTORY / name: text for name, text in self.texts.items()},
                **{DIRECTORY / name: Link(target) for name, target in self.targets.items()},
                DROP_IN: drop_in(self.params["memory_max"]),
            },
            written=[*self.links, *(DIRECTORY / name for name in self.state.get("files", ()))],
        )
        self.refuse_foreign(
            {DIRECTORY / CONFIG: "haproxy"},
            HEADER,
            "Declare in the inventory what the file serves. Then set gateway_replace to true: the file is replaced, and"
            " a copy is kept.",
        )
        self.read_units()
        self.validated = self.validate()

    def validate(self) -> bool:
        """Let HAProxy check all files together. False if HAProxy or a coming certificate is missing.

        Raises ServiceError.
        """
        missing = [path for path in self.targets.values() if not Path(path).is_file()]
        if missing and self.module.check_mode and set(missing) <= serving.coming():
            # A run outside check mode makes or obtains the certificate first.
            return False
        if missing:
            raise ServiceError(
                f"{', '.join(missing)}: there is no such file on the gateway. Install the certificate and its key, or"
                " correct gateway_tls_certificate and gateway_tls_key. Nothing was changed."
            )
        if self.haproxy is None:
            return False
        with self.staged(DIRECTORY) as stage:
            why = self.refusal([self.haproxy, "-c", "-q", "-f", str(stage / CONFIG)], stage, DIRECTORY)
        if why:
            raise ServiceError(f"HAProxy refuses the new configuration. Nothing was changed. HAProxy says:\n{why}")
        return True

    def mode(self, path: Path) -> int:
        return 0o600 if path.suffix == ".map" else 0o644

    def kept(self, path: Path) -> bool:
        if path.name in self.maps:
            return path.stat().st_mode & 0o077 == 0
        return path != DROP_IN or super().kept(path)

    def decide(self) -> dict[str, Any]:
        static = {**self.loaded_at_start, **self.targets}
        self.digests = {"static": digest(static), "maps": digest(self.maps)}
        differing = {path.name for path in self.differing if path != DROP_IN}
        action = "none"
        if not self.active[HAPROXY]:
            action = "start"
        elif self.state.get("static") != self.digests["static"] or differing - set(self.maps):
            action = "reload"
        elif self.state.get("maps") != self.digests["maps"] or differing:
            action = "maps"
        self.actions = {HAPROXY: action}
        return {"changed": self.changes, "action": action, "validated": self.validated, "diff": self.diff()}

    def shown(self, path: Path) -> tuple[str, str]:
        return HIDDEN if path.suffix == ".map" else super().shown(path)

    def back_up(self) -> dict[str, Any]:
        return {"backup_file": self.module.backup_local(str(self.foreign[0]))} if self.foreign else {}

    def apply(self, result: dict[str, Any]) -> None:
        super().apply(result)
        result["action"] = self.actions[HAPROXY]

    def record(self, result: dict[str, Any]) -> None:
        # Settings may differ even if the files are the same.
        settings = self.params["settings"]
        state = {"schema": 1, "files": sorted(self.texts), **self.digests, "settings": settings}
        if state != self.state:
            files.write_json(STATE, state)

    def bring(self, unit: str, action: str) -> None:
        if action == "maps":
            try:
                # The map of keys comes last: when HAProxy accepts a new key, its rights and limits are already loaded.
                for name in sorted(self.maps, key=lambda name: (name == KEYS_MAP, name)):
                    runtime.replace_map(self.ask, name, self.maps[name])
                return
            except (OSError, runtime.RuntimeRefusal) as error:
                self.module.warn(f"The running HAProxy refused the new maps ({error}). HAProxy is reloaded instead.")
                self.actions[unit] = action = "reload"
        if action == "reload":
            self.old_worker = runtime.worker(self.ask)
        super().bring(unit, action)

    def why_not_up(self, unit: str, action: str, began: float) -> str:
        def serves() -> bool | None:
            return True if runtime.worker(self.ask) not in (None, self.old_worker) else None

        return "" if self.wait(serves, RELOAD_SECONDS) else f"no new process serves within {RELOAD_SECONDS:.0f} s"

    def is_noise(self, line: str) -> bool:
        # A line of the request log.
        return line.startswith("{")


def refuse(params: dict[str, Any]) -> None:
    """Raise ServiceError with all mistakes of the input. Raises OSError."""
    untested = tested.refusal("the gateway", "HAProxy")
    if found := [*([untested] if untested else []), *params["plan"]["problems"], *certificate_problems(params)]:
        raise ServiceError("\n- ".join(["The gateway's input has mistakes. Nothing was changed.", *found]))


def certificate_problems(params: dict[str, Any]) -> list[str]:
    """The mistakes of the certificate that this machine shows. Raises OSError."""
    form, names = params["certificate_form"], params["check_names"]
    if names is None:
        return []
    if form == forms.ACME:
        return acme.Order(names, params["acme_email"], params["acme_server"]).problems()
    if form != forms.CERTIFICATE or not params["certificate"]:
        return []
    return certificates.problems(params["certificate"], params["certificate_key"], names, datetime.now(UTC))


def key_warnings(params: dict[str, Any]) -> list[str]:
    """A warning if every user of the machine can read the site's own key."""
    path = params["certificate_key"] or params["certificate"]
    if params["certificate_form"] != forms.CERTIFICATE or not path or not certificates.open_to_all(Path(path)):
        return []
    return [f"{path}: every user of the gateway can read this private key: chmod 600 {path}"]


def floating(module: AnsibleModule) -> dict[str, Any]:
    """Configure keepalived, or remove it without a floating address. Raises ServiceError, OSError, ValueError."""
    if module.params["plan"]["floating"]:
        return Keepalived(module).run()
    removed = remove(module, removal.holder)
    return {"changed": removed["changed"], "diff": [removed["diff"]] if removed["changed"] else []}


def present(module: AnsibleModule) -> dict[str, Any]:
    """Configure the parts in `parts`. Raises ServiceError, PinError, OSError, ValueError."""
    params = module.params
    refuse(params)
    for warning in [*params["plan"]["warnings"], *key_warnings(params)]:
        module.warn(warning)
    missing = apt_packages.absent_of(module.run_command, params["packages"]) if module.check_mode else []
    found = [
        run(module)
        for part, run in ((HAPROXY_PART, lambda module: Gateway(module).run()), (FLOATING_PART, floating))
        if part in params["parts"]
    ]
    result = {key: value for one in found for key, value in one.items()}
    changed = any(one["changed"] for one in found)
    return {
        **result,
        "changed": changed,
        "diff": [entry for one in found for entry in one["diff"]],
        "missing": missing,
        "due": changed or bool(missing) or unpinned(module, missing),
    }


def unpinned(module: AnsibleModule, missing: list[str]) -> bool:
    """In check mode, whether apt_packages would change the holds of `held`. Raises PinError and OSError."""
    held = module.params["held"]
    wanted = {"name": "gateway", "packages": held, "pinned": [], "version": "", "versions": {}}
    return (
        bool(held) and module.check_mode and any(Pins(module.run_command, wanted, check=True).apply(missing).values())
    )


def main() -> None:
    module = QuietModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "parts": {"type": "list", "elements": "str", "choices": PARTS, "default": PARTS},
            "packages": {"type": "list", "elements": "str", "default": []},
            "held": {"type": "list", "elements": "str", "default": []},
            "plan": {
                "type": "dict",
                "options": {
                    "problems": {"type": "list", "elements": "str", "default": []},
                    "warnings": {"type": "list", "elements": "str", "default": []},
                    "config": {"type": "str", "required": True},
                    "maps": {"type": "dict", "default": {}, "no_log": True},
                    "files": {"type": "dict", "default": {}},
                    "backends": {"type": "dict", "default": {}},
                    "floating": {"type": "str", "default": ""},
                },
            },
            "certificate_form": {
                "type": "str",
                "choices": [forms.CA, forms.CERTIFICATE, forms.ACME, forms.NONE, forms.KEPT],
                "default": forms.CERTIFICATE,
            },
            "certificate": {"type": "str", "default": ""},
            "certificate_key": {"type": "str", "default": "", "no_log": False},
            "check_names": {"type": "list", "elements": "str"},
            "acme_email": {"type": "str", "default": ""},
            "acme_server": {"type": "str", "default": ""},
            "memory_max": {"type": "str", "default": "50%"},
            "settings": {"type": "dict", "default": {}},
            "replace": {"type": "bool", "default": False},
        },
        required_if=[("state", "present", ["plan"])],
        supports_check_mode=True,
    )
    if module.params["state"] == "absent":
        try:
            address = removal.floating_address()
        except OSError as error:
            module.fail_json(msg=f"{error}. Nothing was changed.")
        parts = removal.everything if HAPROXY_PART in module.params["parts"] else removal.holder
        result = remove(module, parts)
        module.exit_json(**result, due=result["changed"], floating_address=address)
    try:
        result = present(module)
    except (ServiceError, PinError, OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
