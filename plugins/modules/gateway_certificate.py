#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: gateway_certificate
short_description: Make, obtain and renew the certificate that a gateway serves
version_added: 0.2.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - With O(form=ca), makes a certificate by the site's own CA. The gateway with O(lead=true) has the root's key. The
    other gateways return a RV(request), which the lead signs by O(state=signed). No key leaves its machine.
  - With O(form=acme), certbot obtains the certificate. The authority must reach port 80 of the gateway.
  - Installs the command C(inference-gateway-certificate) and its timer. The timer renews certificates of the site's own
    CA, hands renewed certificates of any form to the running HAProxy, and writes metrics.
  - Hands a changed certificate to the running HAProxy by its runtime API. If the API refuses the certificate, HAProxy
    reloads. No connection ends.
  - Without TLS, and with O(state=absent), removes command, timer, settings, metrics, and the copy of the root that
    clients can read. Certificates and keys stay.
  - Internal to this collection; its options may change without notice.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details:
      - Shows the names of files, and never a key.
options:
  state:
    description:
      - V(signed) signs O(request) by the site's own CA. With O(lead=true), V(signed) also makes a missing CA. Changes
        nothing else.
    type: str
    choices: [present, absent, signed]
    default: present
  form:
    description: Where the certificate comes from. V(none) and V(kept) are plain HTTP.
    type: str
    choices: [ca, certificate, acme, none, kept]
    default: none
  certificate:
    description: The path of the site's own certificate. For O(form=certificate).
    type: str
    default: ""
  certificate_key:
    description: The path of its key; empty if the file of O(certificate) has the key.
    type: str
    default: ""
  names:
    description: Names and addresses of the certificate. For O(form=ca), O(form=acme) and O(state=signed).
    type: list
    elements: str
    default: []
  name:
    description:
      - The gateway's name in the inventory, part of the common names of its issuer and of a root that it makes.
        With O(state=signed), the name of the gateway that sent the request.
    type: str
    default: gateway
  lead:
    description:
      - Whether this gateway has the root of the site's own CA, and makes it if it is missing. With O(state=signed) and
        V(false), a missing root is a failure.
    type: bool
    default: true
  request:
    description: The request of another gateway. For O(state=signed).
    type: str
    default: ""
  issued:
    description: The answer of the lead to this gateway's RV(request).
    type: str
    default: ""
  email:
    description: The e-mail address for the authority. For O(form=acme).
    type: str
    default: ""
  server:
    description: The URL of the authority's directory. For O(form=acme).
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Make the gateway's certificate by the site's own CA
  baremetal.inference.gateway_certificate:
    form: ca
    names: [gw1, 192.0.2.10]
    name: gw1
"""

RETURN = r"""
due:
  description: Whether the module changes, or would change, anything. Unlike C(changed), not hidden by C(changed_when).
  returned: unless O(state=signed)
  type: bool
request:
  description: The request that the lead must sign. Empty if nothing must be signed, and in check mode.
  returned: unless O(state=signed)
  type: str
new_root:
  description: Whether this call has made, or would make, the site's own CA, which clients must trust from now on.
  returned: unless O(state=signed)
  type: bool
issued:
  description: The signed certificate with its chain, in PEM. Empty in check mode.
  returned: with O(state=signed)
  type: str
"""

import os
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, node_library, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.gateway import (
    acme,
    certificate_program,
    certificate_units,
    forms,
    handing_over,
    places,
    runtime,
    serving,
)
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.authority import Authority
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.certificates import CertificateError
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.names import CONTROL_SOCKET

WITH_TLS = (forms.CA, forms.CERTIFICATE, forms.ACME)

LOST = (
    "{key}: the key of the site's CA is missing, but a certificate comes from this CA. If another gateway has"
    " authority/key.pem, run baremetal.inference.site without -l. Otherwise restore the file from a backup. To start"
    " anew, with a CA that all clients must trust: remove {directory} on all gateways. Nothing was changed"
)

Result = dict[str, Any]


class Manager:
    """The certificate of this gateway."""

    def __init__(self, params: dict[str, Any], *, check: bool) -> None:
        self.params, self.check = params, check
        self.now = datetime.now(UTC)
        self.form: str = params["form"] if params["state"] == "present" else forms.NONE
        self.authority = Authority(places.TLS)
        self.order = acme.Order(params["names"], params["email"], params["server"])
        certificate, key = serving.paths(self.form, params["certificate"], params["certificate_key"])
        names = params["names"] if self.form == forms.CA else []
        self.serving = serving.Serving(self.form, certificate, key, names, self.authority)
        self.ask = runtime.ask(Path(CONTROL_SOCKET))
        self.changes: list[str] = []
        """What changes: paths of files, and a few words for each other change."""
        self.request = ""
        self.new_root = False

    def run(self) -> Result:
        """Bring all parts into effect. Raises CertificateError, SystemdError, OSError, ValueError, ImportError."""
        # First: the message of a refusal says that nothing was changed.
        self._refuse_lost()
        # Before the certificate: certbot refuses a hook that does not exist.
        self._tool()
        if not self._certificate():
            self._settings()
            if self.form in WITH_TLS:
                self._enable(places.CERTIFICATE_TIMER)
                self._hand_over()
        shown = "".join(f"{change}\n" for change in self.changes)
        return {
            "changed": bool(self.changes),
            "due": bool(self.changes),
            "request": self.request,
            "new_root": self.new_root,
            "diff": {"before": "", "after": shown},
        }

    def _do(self, what: str, act: Callable[[], object]) -> None:
        """Record a change, and make it outside of check mode."""
        self.changes.append(what)
        if not self.check:
            act()

    def _certificate(self) -> bool:
        """Make or obtain the certificate. Returns whether it waits for the lead's signature."""
        if self.form == forms.ACME:
            # Without the lock: certbot calls the command, which takes the lock.
            if not self.order.is_filled():
                self._do(str(acme.chain()), self.order.fill)
            # The package starts its timer, unless services must not start while packages are installed.
            if not self.check or self.order.is_filled():
                self._enable(acme.TIMER)
            return False
        if self.form != forms.CA:
            return False
        with nullcontext() if self.check else serving.locked(places.TLS):
            return self._authority()

    def _refuse_lost(self) -> None:
        """Refuse a certificate that needs the key of the site's CA, if the key is missing. Raises CertificateError."""
        own = self.authority
        wanted = self.form == forms.CA and self.params["lead"] and own.needs_issuer(self.params["names"])
        if wanted and self._lost():
            raise CertificateError(LOST.format(key=own.root_key, directory=own.directory))

    def _lost(self) -> bool:
        """Whether the CA's certificate is here without the CA's key."""
        return self.authority.root.exists() and not self.authority.is_lead()

    def _authority(self) -> bool:
        own, names, name = self.authority, self.params["names"], self.params["name"]
        if self.params["lead"] and not own.is_lead() and not self._lost():
            self.new_root = True
            self._do(str(own.root), lambda: own.make_root(name, self.now))
        if own.needs_issuer(names):
            if self.params["lead"]:
                self._do(str(own.issuer), lambda: own.install(own.sign(own.request(), name, names)))
            elif self.params["issued"]:
                self._do(str(own.issuer), lambda: own.install(self.params["issued"]))
            else:
                self._do(str(own.issuer), lambda: None)
                self.request = "" if self.check else own.request()
                return True
        if own.needs_leaf(names, self.now) or str(own.issuer) in self.changes:
            self._do(str(own.served), lambda: own.renew(names, self.now))
        return False

    def _settings(self) -> None:
        """The settings of the command, and the certificate that clients trust."""
        tls = self.form in WITH_TLS
        # The directory is made for a certificate from elsewhere, too: a later run may make keys in it.
        if tls and not (places.TLS.is_dir() and files.own(places.TLS, 0o700)):
            self._do(str(places.TLS), self._close)
        texts = {
            places.TLS_SETTINGS: files.to_json(self.serving.to_dict()) if tls else None,
            places.CLIENTS_ROOT: files.text(self.authority.root) if self.form == forms.CA else None,
        }
        for path, text in texts.items():
            coming = path == places.CLIENTS_ROOT and self.form == forms.CA and text is None
            if coming or files.text(path) != text:
                self._do(str(path), partial(files.write, path, text))
        if not tls and self.serving.metrics.exists():
            self._do(str(self.serving.metrics), self.serving.metrics.unlink)

    def _close(self) -> None:
        """Make the directory of keys, for root alone."""
        places.TLS.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.chown(places.TLS, os.geteuid(), os.getegid())
        places.TLS.chmod(0o700)

    def _tool(self) -> None:
        """The command with its library, and its units."""
        tls = self.form in WITH_TLS
        units = {Paths().units / name: text for name, text in certificate_units.render().items()}
        if not tls:
            there, _running = systemd.remove_units(units, [places.CERTIFICATE_TIMER], check=self.check)
            self.changes += map(str, there)
        tool = node_library.plan(
            certificate_program.__name__, places.CERTIFICATE_LIBRARY, places.CERTIFICATE_COMMAND, tls
        )
        if tool.files:
            self._do(str(places.CERTIFICATE_COMMAND), tool.apply)
        if not tls:
            return
        different = [path for path, text in units.items() if not files.same(path, text)]
        for path in different:
            self._do(str(path), partial(files.write, path, units[path]))
        if different and not self.check:
            systemd.systemctl("daemon-reload")

    def _enable(self, timer: str) -> None:
        found = systemd.show([timer], ["ActiveState", "UnitFileState"])[timer]
        if (found["ActiveState"], found["UnitFileState"]) != ("active", "enabled"):
            self._do(timer, lambda: systemd.systemctl("enable", "--now", timer))

    def _hand_over(self) -> None:
        """Give the certificate to a HAProxy that serves another one. A HAProxy without TLS reads it at its reload."""
        path = Path(self.serving.certificate)
        if not path.is_file():
            return
        if handing_over.differs(self.ask, path):
            self._do("the certificate in the running HAProxy", lambda: self.serving.deliver(self.ask))
        if not self.check:
            self.serving.publish(self.ask, self.now)


def sign(params: dict[str, Any], *, check: bool) -> Result:
    """Sign the request of another gateway. Raises CertificateError, OSError."""
    own, now = Authority(places.TLS), datetime.now(UTC)
    with nullcontext() if check else serving.locked(places.TLS):
        made = not own.is_lead()
        # A gateway with a root's certificate but without its key: another gateway has the key.
        if made and (own.root.exists() or not params["lead"]):
            raise CertificateError(LOST.format(key=own.root_key, directory=own.directory))
        if check:
            return {"changed": made, "issued": ""}
        own.make_root(params["name"], now)
        issued = own.sign(params["request"], params["name"], params["names"])
    return {"changed": made, "issued": issued}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent", "signed"], "default": "present"},
            "form": {
                "type": "str",
                "choices": [forms.CA, forms.CERTIFICATE, forms.ACME, forms.NONE, forms.KEPT],
                "default": forms.NONE,
            },
            "certificate": {"type": "str", "default": ""},
            "certificate_key": {"type": "str", "default": "", "no_log": False},
            "names": {"type": "list", "elements": "str", "default": []},
            "name": {"type": "str", "default": "gateway"},
            "lead": {"type": "bool", "default": True},
            "request": {"type": "str", "default": ""},
            "issued": {"type": "str", "default": ""},
            "email": {"type": "str", "default": ""},
            "server": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    try:
        if module.params["state"] == "signed":
            result = sign(module.params, check=module.check_mode)
        else:
            result = Manager(module.params, check=module.check_mode).run()
    except (CertificateError, systemd.SystemdError, OSError, ValueError, ImportError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
