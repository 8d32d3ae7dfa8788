#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_tool
short_description: Have the command inferctl on a node
version_added: 0.1.0
description:
  - Installs the command C(/usr/local/bin/inferctl) with its library in C(/usr/local/lib/inference), or removes both.
    The library is the collection's own code, as it was sent to the node together with this module. The directory
    belongs to it, so that foreign files in there are removed.
  - An engine's supervisor that runs already goes on with the code it was started with.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  state:
    description: Whether the command shall be there.
    type: str
    choices: [present, absent]
    default: present
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details:
      - Names and checksums of files are shown.
"""

EXAMPLES = r"""
- name: Have the node tool
  baremetal.inference.node_tool:

- name: Take it away
  baremetal.inference.node_tool:
    state: absent
"""

RETURN = r"""
version:
  description: The version of the tool that this collection has, which is the collection's own.
  returned: always
  type: str
  sample: 0.1.0
files:
  description: The files that were written or removed, or would be in check mode.
  returned: always
  type: list
  elements: str
"""

import hashlib
import shutil
from importlib.util import find_spec
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

# Ansible sends along what is imported here. These are all parts of the library, and nothing of them is left out of it:
# a unit test runs the result on its own.
from ansible_collections.baremetal.inference.plugins.module_utils import paths, problems, registry, release
from ansible_collections.baremetal.inference.plugins.module_utils.node import (
    attempts,
    cli,
    docker_api,
    environment,
    events,
    files,
    identity,
    prepare,
    probe,
    releases,
    status,
    supervisor,
    systemd,
    wait,
)

PARTS = (paths, problems, registry, release)
NODE_PARTS = (
    attempts,
    cli,
    docker_api,
    environment,
    events,
    files,
    identity,
    prepare,
    probe,
    releases,
    status,
    supervisor,
    systemd,
    wait,
)

LAUNCHER = """\
#!/usr/bin/python3 -I
# Managed by the Ansible collection baremetal.inference.
import sys

sys.path.insert(0, {directory!r})

from {package}.node.cli import main

raise SystemExit(main())
"""


def source(name: str) -> str:
    """The source of a module, wherever it lies: on a node it comes out of the archive that Ansible has sent.

    Raises ImportError where it is nowhere.
    """
    spec = find_spec(name)
    text = spec.loader.get_source(name) if spec and spec.loader and hasattr(spec.loader, "get_source") else None
    if text is None:
        raise ImportError(f"no source of {name}")
    return str(text)


def wanted_files(library: Path, command: Path) -> dict[Path, tuple[str, int]]:
    """Text and mode of every file. Raises ImportError."""
    wanted = {library / "__init__.py": ("", 0o644), library / "node/__init__.py": ("", 0o644)}
    for directory, parts in ((library, PARTS), (library / "node", NODE_PARTS)):
        for part in parts:
            name = part.__name__
            wanted[directory / f"{name.rpartition('.')[2]}.py"] = (source(name), 0o644)
    launcher = LAUNCHER.format(directory=str(library.parent), package=library.name)
    # Last: the command appears when everything it needs is there.
    wanted[command] = (launcher, 0o755)
    return wanted


def present_files(library: Path, command: Path) -> list[Path]:
    """The files on the node. Byte code is left out: Python makes it and checks it against its source."""
    found = [path for path in library.rglob("*") if not path.is_dir() and "__pycache__" not in path.parts]
    return [*found, command] if command.exists() else found


def summary(listed: dict[Path, str]) -> str:
    """What a diff shows: names and checksums, for hundreds of lines of code tell an operator nothing."""
    return "".join(f"{digest[:12]} {path}\n" for path, digest in sorted(listed.items()))


def digest_of(text: str, mode: int) -> str:
    """A checksum of text and mode."""
    return hashlib.sha256(f"{mode:o} {text}".encode()).hexdigest()


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    library, command = paths.Paths().library, paths.Paths().command
    try:
        before = {
            path: digest_of(path.read_text(encoding="utf-8", errors="replace"), path.stat().st_mode & 0o7777)
            for path in present_files(library, command)
        }
        wanted = wanted_files(library, command) if module.params["state"] == "present" else {}
        after = {path: digest_of(*wanted[path]) for path in wanted}
        changed = [path for path in wanted if before.get(path) != after[path]]
        stale = [path for path in before if path not in after]
        if not module.check_mode:
            for path in changed:
                files.write(path, *wanted[path])
            for path in stale:
                path.unlink()
            if not wanted and library.is_dir():
                shutil.rmtree(library)
    except (OSError, ImportError) as error:
        module.fail_json(msg=f"inferctl cannot be installed or removed: {error}")
    module.exit_json(
        changed=bool(changed or stale),
        version=cli.VERSION,
        files=sorted(str(path) for path in [*changed, *stale]),
        diff={"before": summary(before), "after": summary(after)},
    )


if __name__ == "__main__":
    main()
