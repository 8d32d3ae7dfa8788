# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads how this machine reaches Debian's archive, so that images are built from, and keep, the same mirror.

Only repositories of Debian itself count: a bare node has no others. On another system than Debian, no source is found,
and mmdebstrap uses Debian's own mirror.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

APT = Path("/etc/apt")
CERTIFICATES = Path("/usr/local/share/ca-certificates")
RELEASE = Path("/etc/os-release")
# A one-line source: deb [options] URI suite component…
ONE_LINE = re.compile(
    r"^deb\s+(?:\[(?P<options>[^]]*)\]\s*)?(?P<uri>\S+)\s+(?P<suite>\S+)\s+(?P<components>[^#\n]+)", re.M
)
# The URI of a Debian mirror, for sources without a key. A source with a key is Debian's if the key is Debian's.
DEBIAN = re.compile(r"/debian(-security)?/?$")
# Options of apt that a node needs to reach the mirror. Not a program that detects proxies: the node does not have it.
OPTION = re.compile(r"^Acquire::(?:https?::Proxy(?:::\S+)?|Check-Valid-Until|Check-Date) \".+\";$", re.M)


def sources(suite: str) -> list[str]:
    """This machine's sources of Debian, as one-line sources of another release; empty if it has none."""
    release = re.search(r"^VERSION_CODENAME=(\w+)", _text(RELEASE), re.M)
    if release is None:
        return []
    files = [APT / "sources.list", *sorted((APT / "sources.list.d").glob("*"))]
    found = [line for file in files for line in parse(_text(file), release[1], suite, deb822=file.suffix == ".sources")]
    # The updates of a release are of no use without the release itself.
    return list(dict.fromkeys(found)) if any(line.split()[2] == suite for line in found) else []


def parse(text: str, codename: str, suite: str, deb822: bool) -> list[str]:
    """The sources of Debian's release `codename` in a file of either format, turned into sources of `suite`."""
    lines = []
    for uri, name, components, keyring in _deb822(text) if deb822 else _one_line(text):
        ours = name in (codename, f"{codename}-updates", f"{codename}-security")
        debian = "debian-archive" in keyring if keyring else DEBIAN.search(uri)
        if ours and debian and "main" in components and uri.startswith(("http://", "https://")):
            lines.append(f"deb {uri} {name.replace(codename, suite, 1)} main")
    return lines


def _one_line(text: str) -> list[tuple[str, str, list[str], str]]:
    """(URI, suite, components, keyring) of each line."""
    return [
        (entry["uri"], entry["suite"], entry["components"].split(), (entry["options"] or "").partition("signed-by=")[2])
        for entry in ONE_LINE.finditer(text)
    ]


def _deb822(text: str) -> list[tuple[str, str, list[str], str]]:
    """(URI, suite, components, keyring) of each pair of URI and suite in each stanza."""
    entries = []
    without_comments = re.sub(r"^#.*\n", "", text, flags=re.M)
    for stanza in re.split(r"\n\s*\n", without_comments):
        fields: dict[str, str] = {}
        for name, value in re.findall(r"^(\S+):(.*(?:\n[ \t].*)*)", stanza, re.M):
            fields[name.lower()] = value.strip()
        if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes").lower() in ("no", "false"):
            continue
        for uri in fields.get("uris", "").split():
            for suite in fields.get("suites", "").split():
                entries.append((uri, suite, fields.get("components", "").split(), fields.get("signed-by", "")))
    return entries


def apt_options() -> list[str]:
    """Proxies and clock checks of this machine's apt, as lines of apt.conf."""
    try:
        result = subprocess.run(["apt-config", "dump"], capture_output=True, text=True)
    except OSError:
        return []
    return OPTION.findall(result.stdout)


def certificates() -> list[Path]:
    """The certificate authorities that were added to this machine. A mirror's certificate may need one of them."""
    return sorted(CERTIFICATES.glob("*.crt"))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
