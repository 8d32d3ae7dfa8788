# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The services and files of this collection on a gateway, for their removal. Private to the collection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core import files
from ..debian.service_files import Part
from . import floating
from .authority import Authority
from .names import CERTIFICATE, CONFIG, HEADER
from .places import DIRECTORY, DROP_IN, FLOATING, HAPROXY, KEEPALIVED, LINKS, SERVER_STATES, STATE, UNITS


def holder() -> Sequence[Part]:
    """keepalived, which holds the floating address."""
    return [Part([KEEPALIVED], configs=[FLOATING], header=HEADER)]


def everything() -> Sequence[Part]:
    """The parts to remove. keepalived comes first, so that another gateway has the address before HAProxy stops.
    Raises OSError, ValueError."""
    written = files.read_written(STATE).get("files", [])
    # The links are removed; the certificate and its key stay.
    links = [path for name in LINKS if (path := DIRECTORY / name).is_symlink()]
    texts = [DIRECTORY / name for name in written if name != CONFIG]
    return [
        *holder(),
        Part(
            [HAPROXY],
            configs=[DIRECTORY / CONFIG],
            header=HEADER,
            others=[DROP_IN, *links, *texts, *SERVER_STATES, STATE],
            roots=[UNITS],
        ),
    ]


def floating_address() -> str:
    """The address that keepalived shares with other gateways, if its configuration is ours. Raises OSError."""
    return floating.address_in(files.text(FLOATING) or "")


def serves() -> str:
    """`plain` or `tls`, as HAProxy's configuration says, if it is ours; empty otherwise. Raises OSError."""
    text = files.text(DIRECTORY / CONFIG) or ""
    if not text.startswith(HEADER):
        return ""
    return "tls" if f" ssl crt {CERTIFICATE}" in text else "plain"


def authority() -> dict[str, Any]:
    """Whether the gateway has the key of the site's own CA, and the fingerprint of the CA that it uses."""
    own = Authority()
    return {"lead": own.is_lead(), "root": own.fingerprint()}
