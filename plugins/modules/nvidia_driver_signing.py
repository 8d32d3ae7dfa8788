#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: nvidia_driver_signing
short_description: Sign the NVIDIA driver's modules for Secure Boot, and enrol the key
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Under Secure Boot, the kernel only loads modules that are signed with an enrolled key. DKMS signs the modules that
    it builds, with its own key unless another key is configured.
  - Configures DKMS to use the site's key, and builds modules again that are not signed with the key. Each build takes
    minutes. Loaded modules stay loaded.
  - With O(password), requests the enrolment of the certificate from shim, if it is not enrolled yet. A person must
    confirm the enrolment at the machine's console during the next boot, as
    RV(baremetal.inference.nvidia_driver_facts#module:ansible_facts.nvidia_driver.secure_boot.problem) describes.
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
      - The private key to sign with, in PEM and without a passphrase. It is written to C(/etc/dkms/inference-mok.key),
        which only root can read.
      - If empty, DKMS signs with its own key, or with the key of its configuration. Files of this module are removed.
    type: str
    default: ""
  certificate:
    description: The certificate of O(key), in PEM. It is written to C(/etc/dkms/inference-mok.der).
    type: str
    default: ""
  password:
    description:
      - The password that a person types to confirm the enrolment, 8 to 256 ASCII characters without blanks. The
        keyboard at the console has the US layout.
      - If empty, no enrolment is requested.
    type: str
    default: ""
  existing:
    description:
      - Whether to sign existing modules, and to enrol the certificate. If O(key) is empty and DKMS's key is missing,
        the module also makes it. With V(false), only DKMS is configured, for future builds.
    type: bool
    default: true
  firmware_root:
    description: The root directory below which the firmware's variables are read, in C(sys/firmware/efi/efivars).
    type: path
    default: /
  timeout:
    description: Time limit of each build of a module, in seconds.
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
  description: The changes, or in check mode the changes to come, one sentence each.
  returned: success
  type: list
  elements: str
certificate:
  description: The certificate that must be enrolled in the firmware.
  returned: success
  type: str
  sample: /var/lib/dkms/mok.pub
enrolment:
  description:
    - The state of the enrolment, V(enrolled), V(pending) until the next boot, or V(missing). V(null) if Secure Boot is
      off, if the state is unknown, and with O(existing=false).
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
        done = f" Done before that: {'; '.join(signer.actions)}." if signer.actions and not module.check_mode else ""
        module.fail_json(msg=f"{error}.{done}")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
