# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gives a renewed certificate to the running HAProxy. Private to the collection.

By the runtime API: the process goes on, and only new connections get the new certificate.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from . import certificates
from .names import CERTIFICATE
from .runtime import Ask, RuntimeRefusal


def served(send: Ask) -> str:
    """The fingerprint of the certificate that HAProxy serves; empty if it serves none or does not answer."""
    try:
        shown = send(f"show ssl cert {CERTIFICATE}")
    except OSError:
        return ""
    found = re.search(r"^SHA1 FingerPrint: ([0-9A-F]+)$", shown, re.M)
    return found[1] if found else ""


def differs(send: Ask, certificate: Path) -> bool:
    """Whether HAProxy serves another certificate than that of the file. Raises CertificateError, OSError."""
    current = served(send)
    return bool(current) and current != certificates.fingerprint(certificate)


def hand_over(send: Ask, certificate: Path, key: Path | None) -> None:
    """Replace the certificate in the running process. Raises RuntimeRefusal, CertificateError, OSError."""
    wanted = certificates.fingerprint(certificate)
    parts = [path.read_text(encoding="utf-8") for path in (certificate, key) if path is not None]
    blocks = [found[0].strip() for part in parts for found in certificates.BLOCK.finditer(part)]
    # An empty line would end the payload.
    lines = [line for block in blocks for line in block.splitlines() if line.strip()]
    payload = "\n".join(lines)
    answer = send(f"set ssl cert {CERTIFICATE} <<\n{payload}\n")
    if "ransaction" in answer:
        answer = send(f"commit ssl cert {CERTIFICATE}")
    if served(send) != wanted:
        with suppress(OSError):
            send(f"abort ssl cert {CERTIFICATE}")
        raise RuntimeRefusal(f"HAProxy did not take the certificate {certificate}: {answer}")
