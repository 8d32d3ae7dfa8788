#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: monitoring_removal
short_description: Have a machine watch the fleet no more, or tell of its GPUs
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Stops Prometheus and Alertmanager, keeps them from starting at the next boot, and removes what
    M(baremetal.inference.monitoring_server) has written; or does so with dcgm-exporter. In check mode, it tells whether
    there is any.
  - Samples, silences and packages stay. So does everything where a configuration is somebody else's.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  what:
    description: Prometheus and Alertmanager, or dcgm-exporter.
    type: str
    choices: [server, dcgm_exporter]
    default: server
"""

EXAMPLES = r"""
- name: Have the machine watch the fleet no more
  baremetal.inference.monitoring_removal:
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
kept:
  description: The directories with what both have gathered, as far as they are there.
  returned: success
  type: list
  elements: str
foreign:
  description: Configurations that are not ours, for which everything was left as it is.
  returned: success
  type: list
  elements: str
"""

from collections.abc import Sequence

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.debian import service_removal
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.exporters import DCGM_UNIT
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.places import (
    ALERTMANAGER,
    DIRECTORY,
    DROP_IN,
    HEADER,
    OWNED,
    PROMETHEUS,
    SAMPLES,
    SILENCES,
    STATE,
    UNITS,
)

SERVICES = (PROMETHEUS, ALERTMANAGER)
"""In the order in which they stop: Prometheus would miss an Alertmanager that is gone."""


def server() -> Sequence[service_removal.Part]:
    """Both as one: who has taken over one of them relies on the other. Raises ValueError for a damaged state."""
    written = (files.read_json(STATE) or {}).get("files", ())
    drop_ins = [UNITS / f"{unit}.d" / DROP_IN for unit in SERVICES]
    return [
        service_removal.Part(
            services=SERVICES,
            configs=[DIRECTORY / name for name in OWNED],
            header=HEADER,
            others=[*drop_ins, *(DIRECTORY / name for name in written if name not in OWNED), STATE],
            roots=(UNITS, DIRECTORY),
        )
    ]


def dcgm_exporter() -> Sequence[service_removal.Part]:
    """Its unit is all that there is of it: its image goes with the others that nothing uses."""
    return [
        service_removal.Part(
            services=(DCGM_UNIT,), configs=[UNITS / DCGM_UNIT], header=HEADER, others=[], roots=(UNITS,)
        )
    ]


def main() -> None:
    choices = {parts.__name__: parts for parts in (server, dcgm_exporter)}
    module = AnsibleModule(
        argument_spec={"what": {"type": "str", "choices": list(choices), "default": "server"}},
        supports_check_mode=True,
    )
    parts = choices[module.params["what"]]
    result = service_removal.leave(module, parts)
    kept = (SAMPLES, SILENCES) if parts is server else ()
    module.exit_json(**result, kept=[str(path) for path in kept if path.is_dir()])


if __name__ == "__main__":
    main()
