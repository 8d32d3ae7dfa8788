#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: gateway_removal
short_description: Have a machine be no gateway any more
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Stops keepalived, by which a floating address goes to another gateway, and then HAProxy, which cuts the connections
    that it still has. Keeps both from starting at the next boot, and removes what
    M(baremetal.inference.gateway_config) and the role gateway have written. In check mode, it tells whether there is
    any.
  - Packages and certificates stay. So does everything of HAProxy, or of keepalived, where its configuration is somebody
    else's.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  floating_only:
    description: Take out keepalived alone. The machine stays a gateway, and has given up the floating address.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Have the machine be no gateway any more
  baremetal.inference.gateway_removal:

- name: Give up the floating address
  baremetal.inference.gateway_removal:
    floating_only: true
"""

RETURN = r"""
stopped:
  description: The services that were, or would be, stopped and disabled.
  returned: success
  type: list
  elements: str
removed:
  description: The files that went, or would in check mode.
  returned: success
  type: list
  elements: str
floating_address:
  description: The address that keepalived held in turn with others by our configuration. Empty for none.
  returned: success
  type: str
  sample: 192.0.2.10/24
foreign:
  description: Configurations that are not ours, for which the service was left as it is.
  returned: success
  type: list
  elements: str
"""

import re
from collections.abc import Sequence

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.debian import service_removal
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.config import CONFIG, HEADER
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.places import (
    DIRECTORY,
    DROP_IN,
    FLOATING,
    HAPROXY,
    KEEPALIVED,
    LINKS,
    SERVER_STATES,
    STATE,
    UNITS,
)

ADDRESS = re.compile(r"virtual_ipaddress \{\s*(\S+)")


def floating() -> Sequence[service_removal.Part]:
    """What holds the floating address."""
    return [service_removal.Part([KEEPALIVED], configs=[FLOATING], header=HEADER, others=[], roots=[])]


def everything() -> Sequence[service_removal.Part]:
    """Keepalived first: the address is with another gateway before HAProxy stops. Raises OSError and ValueError."""
    written = (files.read_json(STATE) or {}).get("files", ())
    # Of the links, the certificate and its key stay.
    links = [path for name in LINKS if (path := DIRECTORY / name).is_symlink()]
    texts = [DIRECTORY / name for name in written if name != CONFIG]
    return [
        *floating(),
        service_removal.Part(
            [HAPROXY],
            configs=[DIRECTORY / CONFIG],
            header=HEADER,
            others=[DROP_IN, *links, *texts, *SERVER_STATES, STATE],
            roots=[UNITS],
        ),
    ]


def floating_address() -> str:
    """What keepalived holds in turn with others by our configuration. Raises OSError."""
    text = files.text(FLOATING) or ""
    found = ADDRESS.search(text)
    return found[1] if found and text.startswith(HEADER) else ""


def main() -> None:
    module = AnsibleModule(
        argument_spec={"floating_only": {"type": "bool", "default": False}}, supports_check_mode=True
    )
    address = floating_address()
    parts = floating if module.params["floating_only"] else everything
    module.exit_json(**service_removal.leave(module, parts), floating_address=address)


if __name__ == "__main__":
    main()
