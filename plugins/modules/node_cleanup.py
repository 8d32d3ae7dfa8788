#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: node_cleanup
short_description: Remove unneeded releases, images and logs from a node
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Removes old releases, if O(keep_releases) says how many stay for a rollback.
  - Removes images of our repositories that no kept release and no container needs, containers of ours that do not run,
    and the build cache. Other images stay, and so does every image that a kept release needs.
  - Limits the journal to a size and an age, and rotates logs that are due.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - What the journal would free is foreseen by its files' sizes and ages.
  diff_mode:
    support: none
options:
  images:
    description: Whether to remove images and stopped containers of this collection.
    type: bool
    default: true
  keep:
    description:
      - Further images to keep, such as the inventory's image. Unneeded images of the same repositories are removed.
    type: list
    elements: str
    default: []
  keep_releases:
    description:
      - How many of each instance's releases stay to be rolled back to - the last that served, and the newest. What is
        in use stays in any case. 0 leaves all of them.
    type: int
    default: 0
  build_cache:
    description: Whether to remove the build cache.
    type: bool
    default: true
  logs:
    description: Whether to limit the journal and to rotate logs.
    type: bool
    default: true
  journal_max_mib:
    description: The size that the journal may have, in MiB; 0 for any.
    type: int
    default: 0
  journal_max_days:
    description: The age that the journal's archived files may have, in days; 0 for any.
    type: int
    default: 0
"""

EXAMPLES = r"""
- name: Report what could be removed
  baremetal.inference.node_cleanup:
    journal_max_days: 30
  check_mode: true
"""

RETURN = r"""
freed_gib:
  description: How much space was freed, or would be in check mode, in GiB. Images that share parts count less.
  returned: success
  type: float
freed_bytes:
  description: The same in bytes.
  returned: success
  type: int
lines:
  description: What was removed or rotated, or would be in check mode.
  returned: success
  type: list
  elements: str
"""

import contextlib
import time
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.docker_api import (
    Docker,
    DockerError,
    DockerUnavailable,
)
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.core.sizes import GIB, human
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import history, releases
from ansible_collections.baremetal.inference.plugins.module_utils.maintenance import docker_disk, logs

JOURNALS = (Path("/var/log/journal"), Path("/run/log/journal"))
LOGROTATE = Path("/etc/logrotate.conf")
MEMORY = Path("/var/lib/logrotate/status")
DAY = 86400


class CleanupError(Exception):
    """A program failed; the text is for the operator."""


class Cleanup:
    """One run; in check mode it only says what it would do."""

    def __init__(self, module: AnsibleModule, paths: Paths) -> None:
        self.module = module
        self.paths = paths
        self.bytes = 0
        self.lines: list[str] = []
        self.superseded = frozenset(history.superseded(paths, module.params["keep_releases"]))
        # Their repositories are ours, even where no other release has an image of one of them.
        self.images: set[str] = set()
        for name, number in self.superseded:
            with contextlib.suppress(releases.ReleaseError):
                self.images.add(releases.load(paths, name, number).image)

    def run(self, *command: str) -> str:
        """What a command says, errors and all. Raises CleanupError."""
        code, output, words = self.module.run_command(list(command), environ_update={"LC_ALL": "C", "LANGUAGE": "C"})
        if code:
            raise CleanupError(f"{' '.join(command)} failed ({code}): {(words or output).strip()}")
        return f"{output}\n{words}"

    def releases(self) -> None:
        """Before the images, which they need. Raises OSError, ValueError."""
        for name, number in sorted(self.superseded):
            if not self.module.check_mode:
                releases.remove(self.paths, name, number)
            self.lines.append(f"release {number} of {name}")

    def docker(self, docker: Docker) -> None:
        """Raises ReleaseError, SystemdError, DockerError, DockerUnavailable."""
        if not docker.path.exists():
            return
        keep = frozenset(self.module.params["keep"])
        ours = frozenset(map(docker_disk.repository, keep | self.images))
        disk = docker_disk.Disk(docker, self.paths, ours, keep, self.superseded)
        for item in disk.clean(caches=self.module.params["build_cache"], check=self.module.check_mode):
            self.bytes += item.bytes
            self.lines.append(f"{item.kind} {item.name}: {human(item.bytes)}")

    def journal(self) -> None:
        """Raises CleanupError and OSError."""
        size, age = self.module.params["journal_max_mib"] << 20, self.module.params["journal_max_days"] * DAY
        going = logs.vacuum(self.journals(), size, age)
        if not going:
            return
        foreseen = sum(one.bytes for one in going)
        if not self.module.check_mode:
            bounds = [f"--vacuum-size={size}"] if size else []
            bounds += [f"--vacuum-time={age}s"] if age else []
            foreseen = logs.freed(self.run("journalctl", *bounds))
        self.bytes += foreseen
        self.lines.append(f"{len(going)} files of the journal: {human(foreseen)}")

    @staticmethod
    def journals() -> list[logs.Journal]:
        """The journal's files. Raises OSError."""
        now = time.time()
        found = [path for root in JOURNALS for path in root.glob("*/*.journal*") if path.is_file()]
        return [
            # Archived files have the time of their end in their name; what was cut off ends in ~.
            logs.Journal(str(path), status.st_blocks * 512, now - status.st_mtime, "@" in path.name)
            for path in found
            if (status := path.stat())
        ]

    def rotation(self) -> None:
        """Raises CleanupError and OSError."""
        if not LOGROTATE.exists() or not self.module.get_bin_path("logrotate"):
            return
        if self.module.check_mode:
            rotated = logs.due(self.run("logrotate", "--debug", str(LOGROTATE)))
        else:
            before = files.text(MEMORY) or ""
            self.run("logrotate", str(LOGROTATE))
            after = files.text(MEMORY) or ""
            rotated = logs.rotated(before, after)
        self.lines += [f"rotate {path}" for path in rotated]


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "images": {"type": "bool", "default": True},
            "keep": {"type": "list", "elements": "str", "default": []},
            "keep_releases": {"type": "int", "default": 0},
            "build_cache": {"type": "bool", "default": True},
            "logs": {"type": "bool", "default": True},
            "journal_max_mib": {"type": "int", "default": 0},
            "journal_max_days": {"type": "int", "default": 0},
        },
        supports_check_mode=True,
    )
    lines: list[str] = []
    try:
        cleanup = Cleanup(module, Paths())
        lines = cleanup.lines
        cleanup.releases()
        if module.params["images"]:
            cleanup.docker(Docker())
        if module.params["logs"]:
            cleanup.journal()
            cleanup.rotation()
    except (
        CleanupError,
        releases.ReleaseError,
        systemd.SystemdError,
        DockerError,
        DockerUnavailable,
        OSError,
        ValueError,
    ) as error:
        module.fail_json(msg=f"The clean-up stopped: {error}", lines=lines)
    module.exit_json(
        changed=bool(cleanup.lines),
        freed_gib=round(cleanup.bytes / GIB, 3),
        freed_bytes=cleanup.bytes,
        lines=cleanup.lines,
    )


if __name__ == "__main__":
    main()
