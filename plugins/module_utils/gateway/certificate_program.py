# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command `inference-gateway-certificate`. A timer and operators call it, and certbot after a renewal.

Private to the collection. Exit codes: 0 success, 1 failed, 2 wrong usage.
"""

# pylint: disable=ansible-bad-function  # a command, which prints
from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from ..core.systemd import SystemdError
from . import runtime, serving
from .certificates import CertificateError
from .names import CONTROL_SOCKET
from .places import CERTIFICATE_COMMAND

NAME = CERTIFICATE_COMMAND.name


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code."""
    parser = argparse.ArgumentParser(prog=NAME, description="The certificate that this gateway serves.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    update = commands.add_parser(
        "update", help="renew the certificate if it is due and the site's own CA signs, and hand it to HAProxy"
    )
    update.add_argument("--renew", action="store_true", help="renew it now; only with the site's own CA")
    commands.add_parser(
        "status", help="show the certificate; exit code 1 if it ends within 21 days, is not valid yet, or is not served"
    )
    options = parser.parse_args(arguments)
    if os.geteuid() != 0:
        print(f"{NAME}: must run as root: sudo {NAME} {options.command}", file=sys.stderr)
        return 2
    ask, now = runtime.ask(Path(CONTROL_SOCKET)), datetime.now(UTC)
    try:
        own = serving.load()
        if options.command == "status":
            lines, sound = own.status(ask, now)
            print("\n".join(lines))
            return 0 if sound else 1
        for line in own.update(ask, now, renew=options.renew):
            print(line)
    except (CertificateError, SystemdError, OSError, ValueError) as error:
        print(f"{NAME}: {error}", file=sys.stderr)
        return 1
    return 0
