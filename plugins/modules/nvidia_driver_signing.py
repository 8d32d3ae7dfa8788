#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: nvidia_driver_signing
short_description: Have the NVIDIA driver's modules signed with a key that the firmware knows, or is asked to know
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Under Secure Boot the kernel loads no module that is not signed with a key that the firmware knows. DKMS signs what
    it builds, with a key of its own making unless it is told of another one.
  - Tells DKMS of a site's own key, and has the modules that are not signed with the key built anew, for which DKMS
    takes minutes each. They are not unloaded.
  - Asks shim to enrol the certificate, where it is given a password to do so and the firmware does not know the
    certificate yet. A person has to confirm that at the machine's console during the next boot.
    RV(baremetal.inference.nvidia_driver_facts#module:ansible_facts.nvidia_driver.secure_boot.problem) says how.
  - Internal to this collection; its options may change without notice.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options:
  key:
    description:
      - The private key to sign with, in PEM and without a passphrase. It becomes C(/etc/dkms/inference-mok.key), which
        root alone can read.
      - Where it is empty, DKMS signs with its own key, or that of its configuration. What this module wrote is removed.
    type: str
    default: ""
  certificate:
    description: The certificate of O(key), in PEM. It becomes C(/etc/dkms/inference-mok.der).
    type: str
    default: ""
  password:
    description:
      - What the person types who confirms the enrolment, 8 to 256 characters of ASCII without blanks. The console's
        keyboard has the layout of the United States.
      - Empty to ask for no enrolment.
    type: str
    default: ""
  existing:
    description:
      - Whether to look after the modules that are there, and after the enrolment. Without it, only DKMS is told of the
        key, for what it builds from then on.
    type: bool
    default: true
  firmware_root:
    description: The directory below which the firmware's variables lie, in C(sys/firmware/efi/efivars).
    type: path
    default: /
  timeout:
    description: Seconds for each build of a module.
    type: int
    default: 1800
"""

EXAMPLES = r"""
- name: Sign with the key that this site enrols in all machines
  baremetal.inference.nvidia_driver_signing:
    key: "{{ vault_module_key }}"
    certificate: "{{ lookup('ansible.builtin.file', 'module-signing.pem') }}"
    password: "{{ vault_enrolment_password }}"
"""

RETURN = r"""
actions:
  description: What was done, or would be in check mode, one sentence each.
  returned: success
  type: list
  elements: str
certificate:
  description: The certificate that the firmware has to know.
  returned: success
  type: str
  sample: /var/lib/dkms/mok.pub
enrolment:
  description:
    - Whether it does. V(enrolled), V(pending) until the next boot, or V(missing). V(null) where Secure Boot is off,
      where it is not known, and with O(existing=false).
  returned: success
  type: str
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import run
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.enrolment import EnrolmentError
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.facts import Reader
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.signer import (
    Signer,
    SigningError,
    Wish,
)

LOOK_SECONDS = 60

ARGUMENTS = {
    "key": {"type": "str", "default": "", "no_log": True},
    "certificate": {"type": "str", "default": ""},
    "password": {"type": "str", "default": "", "no_log": True},
    "existing": {"type": "bool", "default": True},
    "firmware_root": {"type": "path", "default": "/"},
    "timeout": {"type": "int", "default": 1800},
}


def apply(signer: Signer, existing: bool) -> dict[str, Any]:
    """The module's result. Raises SigningError, EnrolmentError and OSError."""
    signer.configure()
    state = None
    if existing:
        signer.make_key()
        signer.sign()
        state = signer.enrol()
    return {
        "changed": bool(signer.actions),
        "actions": signer.actions,
        "certificate": signer.certificate,
        "enrolment": state,
    }


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    params = module.params
    wish = Wish(params["key"], params["certificate"], params["password"])
    problems = wish.problems()
    if problems:
        module.fail_json(
            msg="\n- ".join(["The key for signing modules cannot be used. Nothing was changed.", *problems])
        )
    reader = Reader(Path("/"), run, LOOK_SECONDS, Path(params["firmware_root"]))
    signer = Signer(reader, run, wish, params["timeout"], module.check_mode)
    try:
        result = apply(signer, params["existing"])
    except (SigningError, EnrolmentError, OSError) as error:
        done = f" Done before that: {'; '.join(signer.actions)}." if signer.actions else ""
        module.fail_json(msg=f"{error}.{done}")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
