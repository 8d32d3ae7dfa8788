# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The implementation of the module node_cleanup."""

from __future__ import annotations

import contextlib
import shutil
import stat
import time
from pathlib import Path

from ...core import files, systemd
from ...core.call import Call
from ...core.docker_api import (
    Docker,
    DockerError,
    DockerUnavailable,
)
from ...core.paths import Paths
from ...core.sizes import GIB, counted, human
from ...engine.state import history, releases
from ...maintenance import docker_disk, logs

JOURNALS = (Path("/var/log/journal"), Path("/run/log/journal"))
LOGROTATE = Path("/etc/logrotate.conf")
LOGROTATE_STATUS = Path("/var/lib/logrotate/status")
DAY = 86400


class CleanupError(Exception):
    """A program failed; the text is for the operator."""


class Cleanup:
    """One cleaning. In check mode, it only lists what it would do."""

    def __init__(self, module: Call, paths: Paths) -> None:
        self.module = module
        self.paths = paths
        self.bytes = 0
        self.lines: list[str] = []
        self.superseded = frozenset(history.superseded(paths, module.params["keep_releases"]))
        # Repositories of superseded images count as the collection's, even if no kept release uses them.
        self.images: set[str] = set()
        for name, number in self.superseded:
            with contextlib.suppress(releases.ReleaseError):
                self.images.add(releases.load(paths, name, number).image)

    def run(self, *command: str) -> str:
        """The output of a command, including its errors. Raises CleanupError."""
        code, output, words = self.module.run_command(list(command), environ_update={"LC_ALL": "C", "LANGUAGE": "C"})
        if code:
            raise CleanupError(f"{' '.join(command)} failed ({code}): {(words or output).strip()}")
        return f"{output}\n{words}"

    def releases(self) -> None:
        """Remove superseded releases, and copied files that no kept release names. Must run before docker(), since
        a release must not outlast its image. Raises OSError, ValueError."""
        for name, number in sorted(self.superseded):
            if not self.module.check_mode:
                releases.remove(self.paths, name, number)
            self.lines.append(f"release {number} of {name}")
        for directory in self.flag_files():
            if not self.module.check_mode:
                shutil.rmtree(directory)
            self.lines.append(f"files of flags {directory}")

    def flag_files(self) -> list[Path]:
        """Copied files of the controller that no kept release names. Empty if a release is damaged: the
        release may name any of them."""
        named = set()
        for name in releases.names(self.paths):
            for number in releases.numbers(self.paths, name):
                if (name, number) not in self.superseded:
                    try:
                        named |= {Path(path).name for path in releases.load(self.paths, name, number).mounts}
                    except releases.ReleaseError:
                        return []
        return sorted(path for path in self.paths.flag_files.glob("*") if path.name not in named)

    def docker(self, docker: Docker) -> None:
        """Clean Docker's disk. Raises ReleaseError, SystemdError, DockerError, DockerUnavailable."""
        if not docker.path.exists():
            return
        keep = frozenset(self.module.params["keep"])
        ours = frozenset(map(docker_disk.repository, keep | self.images))
        disk = docker_disk.Disk(docker, self.paths, ours, keep, self.superseded)
        for item in disk.clean(caches=self.module.params["build_cache"], check=self.module.check_mode):
            self.bytes += item.bytes
            self.lines.append(f"{item.kind} {item.name}: {human(item.bytes)}")

    def journal(self) -> None:
        """Vacuum the journal. Raises CleanupError and OSError."""
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
        self.lines.append(f"{counted(len(going), 'file')} of the journal: {human(foreseen)}")

    @staticmethod
    def journals() -> list[logs.Journal]:
        """The journal's files. Raises OSError."""
        now = time.time()
        found = []
        for path in (path for root in JOURNALS for path in root.glob("*/*.journal*")):
            # journald removes old files by itself, also while this list is made.
            with contextlib.suppress(FileNotFoundError):
                status = path.stat()
                if stat.S_ISREG(status.st_mode):
                    archived, began = "@" in path.name, logs.began(path.name)
                    age = now - (status.st_mtime if began is None else min(began, status.st_mtime))
                    found.append(logs.Journal(str(path), status.st_blocks * 512, age, archived))
        return found

    def rotation(self) -> None:
        """Rotate logs with logrotate. Raises CleanupError and OSError."""
        if not LOGROTATE.exists() or not self.module.get_bin_path("logrotate"):
            return
        if self.module.check_mode:
            rotated = logs.due(self.run("logrotate", "--debug", str(LOGROTATE)))
        else:
            before = files.text(LOGROTATE_STATUS) or ""
            self.run("logrotate", str(LOGROTATE))
            after = files.text(LOGROTATE_STATUS) or ""
            rotated = logs.rotated(before, after)
        self.lines += [f"rotate {path}" for path in rotated]


def run(module: Call) -> None:
    """Answer a call."""
    lines: list[str] = []
    try:
        cleanup = Cleanup(module, Paths())
        lines = cleanup.lines
        if module.params["images"] or module.params["keep_releases"]:
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
