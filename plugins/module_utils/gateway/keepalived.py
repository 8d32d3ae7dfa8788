# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""keepalived, which holds the floating address of the gateways. Private to the collection."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..core import files
from ..debian.service_files import ServiceError, ServiceFiles
from .names import HEADER
from .places import FLOATING, KEEPALIVED


class Keepalived(ServiceFiles):
    """keepalived, with the configuration that the option `plan` has."""

    units = (KEEPALIVED,)

    def inspect(self) -> None:
        self.program = self.module.get_bin_path("keepalived", opt_dirs=["/usr/sbin"])
        if self.program is None and not self.module.check_mode:
            raise ServiceError(
                "keepalived is not installed: install the package keepalived first. Nothing of keepalived was changed."
            )
        self.compare({FLOATING: self.params["plan"]["floating"]})
        self.refuse_foreign(
            {FLOATING: "keepalived"},
            HEADER,
            "Set gateway_replace to true to replace this file. The module keeps a copy beside it.",
        )
        self.read_units()
        if self.program is not None:
            with self.staged(FLOATING.parent) as stage:
                check = [self.program, "--config-test", f"--use-file={stage / FLOATING.name}"]
                why = self.refusal(check, stage, FLOATING.parent)
            if why:
                raise ServiceError(
                    f"keepalived refuses the new configuration. Nothing was changed. keepalived says:\n{why}"
                )

    def kept(self, path: Path) -> bool:
        return files.own(path)

    def write(self, path: Path, text: str | None, place: Path) -> None:
        super().write(path, text, place)
        if text is not None:
            os.chown(place, os.geteuid(), os.getegid())

    def decide(self) -> dict[str, Any]:
        running = "reload" if self.altered else "none"
        self.actions = {KEEPALIVED: running if self.active[KEEPALIVED] else "start"}
        return {"changed": self.changes, "diff": self.diff()}

    def back_up(self) -> dict[str, Any]:
        return {"backup_file": self.module.backup_local(str(self.foreign[0]))} if self.foreign else {}
