#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: toml_values
short_description: Set values in a TOML file, and leave everything else in it as it is
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Sets keys of tables. Other keys, comments and the order stay. A file that is not there is made.
  - What was written is read again before it replaces the file. A file whose form does not allow to set a value line by
    line is refused, and not changed.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  path:
    description: The file.
    type: path
    required: true
  values:
    description: The values, by table and key. Texts, numbers, truth values, and lists of them.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Let NVIDIA's container runtime take GPUs from CDI specifications
  baremetal.inference.toml_values:
    path: /etc/nvidia-container-runtime/config.toml
    values:
      nvidia-container-runtime:
        mode: cdi
"""

RETURN = r"""
path:
  description: The file.
  returned: success
  type: str
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.debian.toml_edit import TomlError, set_values


def main() -> None:
    module = AnsibleModule(
        argument_spec={"path": {"type": "path", "required": True}, "values": {"type": "dict", "required": True}},
        supports_check_mode=True,
    )
    path, values = Path(module.params["path"]), module.params["values"]
    unusable = [table for table, keys in values.items() if not isinstance(keys, dict)]
    if unusable:
        module.fail_json(msg=f"values: {', '.join(unusable)}: must be a dictionary of keys. Nothing was changed.")
    try:
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        after = set_values(before, values)
        if after != before and not module.check_mode:
            files.write(path, after, path.stat().st_mode & 0o7777 if path.exists() else 0o644)
    except (TomlError, OSError, UnicodeDecodeError) as error:
        module.fail_json(msg=f"{path}: {error}. Nothing was changed: set the values by hand.")
    diff = {"before_header": str(path), "after_header": str(path), "before": before, "after": after}
    module.exit_json(changed=after != before, path=str(path), diff=diff)


if __name__ == "__main__":
    main()
