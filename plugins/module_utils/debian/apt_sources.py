# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the files with APT's sources, proxies and certificate authorities. Private to the collection."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from ..core.problems import InputError, Problem
from . import openpgp

HEADER = "Managed by Ansible, module baremetal.inference.apt_sources: changes made here are lost."

CODENAME = "$(CODENAME)"
"""Placeholder in a suite for the release's name, in the style of apt's own $(ARCH)."""

PROXY_FILE = "apt.conf.d/52-inference-proxy"
CA_FILE = "inference-ca.pem"

NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
"""A source's name, which becomes a file's name. apt allows letters, digits, _, - and . there: sources.list(5)."""

FINGERPRINT = re.compile(r"[0-9A-F]{40}|[0-9A-F]{64}")

WORD = re.compile(r"[^\s#\"';]+")
"""A value in a list of deb822. White space separates values."""

ARMOUR = "-----BEGIN PGP PUBLIC KEY BLOCK-----"
CERTIFICATE = "-----BEGIN CERTIFICATE-----"

SCHEMES = ("http", "https", "file", "copy", "mirror", "mirror+http", "mirror+https", "mirror+file")
"""Schemes that apt supports without another package. Source: sources.list(5)."""

PROXY_SCHEMES = ("http", "https", "socks5h")
"""Source: apt-transport-http(1)."""

PROXY_URL = re.compile(r"[^\s\"'{};\\]+")
"""A proxy's address that needs no escapes in the quotes of apt.conf."""

HOST = re.compile(r"[A-Za-z0-9.-]+|[0-9A-Fa-f:]+")


@dataclass(frozen=True)
class File:
    """The wanted text and mode of a file."""

    text: str
    mode: int = 0o644


@dataclass(frozen=True)
class Source:
    """A declared source: one file in the format deb822."""

    name: str
    uris: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    components: tuple[str, ...] = ()
    types: tuple[str, ...] = ("deb",)
    architectures: tuple[str, ...] = ()
    key: str = ""
    fingerprints: tuple[str, ...] = ()
    """The fingerprints that the key's primary keys may have, in upper case without blanks; empty for all."""
    present: bool = True

    @property
    def file(self) -> str:
        """Path of the file, below /etc/apt."""
        return f"sources.list.d/{self.name}.sources"

    @property
    def keyring(self) -> str:
        """Path of the key's file if the key was given as text, below /etc/apt."""
        return f"keyrings/inference-{self.name}.asc"

    @property
    def key_is_text(self) -> bool:
        return ARMOUR in self.key

    def text(self, etc: str, codename: str) -> str:
        """The text of the file. `etc` is the directory that stands for /etc/apt."""
        key = f"{etc}/{self.keyring}" if self.key_is_text else self.key
        fields = {
            "Types": self.types,
            "URIs": self.uris,
            "Suites": [suite.replace(CODENAME, codename) for suite in self.suites],
            "Components": self.components,
            "Architectures": self.architectures,
            "Signed-By": [key] if key else [],
        }
        lines = [f"{field}: {' '.join(values)}" for field, values in fields.items() if values]
        return "\n".join([f"# {HEADER}", *lines, ""])


def read_sources(entries: Iterable[Mapping[str, object]]) -> list[Source]:
    """Parse the declared sources. Raises InputError with all problems."""
    sources = [_source(entry) for entry in entries]
    names = [source.name for source in sources]
    problems = [problem for source in sources for problem in _problems(source)]
    problems += [
        Problem(f"source {name}", "is used twice: rename one of the sources", "name", name)
        for name in sorted(set(names))
        if names.count(name) > 1
    ]
    if problems:
        raise InputError(problems)
    return sources


def _source(entry: Mapping[str, object]) -> Source:
    def words(key: str) -> tuple[str, ...]:
        value = entry.get(key) or ()
        return tuple(str(item) for item in ([value] if isinstance(value, str) else value))  # type: ignore[attr-defined]

    return Source(
        name=str(entry.get("name") or ""),
        uris=words("uris"),
        suites=words("suites"),
        components=words("components"),
        types=words("types") or ("deb",),
        architectures=words("architectures"),
        key=str(entry.get("key") or "").strip(),
        fingerprints=tuple(re.sub(r"\s", "", one).upper() for one in words("fingerprints")),
        present=entry.get("state", "present") != "absent",
    )


def _problems(source: Source) -> list[Problem]:
    where = f"source {source.name or '?'}"
    found: list[Problem] = []
    if not NAME.fullmatch(source.name):
        found.append(Problem(where, "must have only a-z, 0-9, _ and -", "name", source.name))
    if not source.present:
        return found
    for key in ("uris", "suites", "components", "architectures"):
        values: tuple[str, ...] = getattr(source, key)
        found += [
            Problem(where, "must be one word: use a list for several", key, _hidden(value))
            for value in values
            if not WORD.fullmatch(value)
        ]
        if not values and key in ("uris", "suites"):
            found.append(Problem(where, "is missing: apt needs at least one", key))
    found += [
        Problem(where, "must be deb or deb-src", "types", value)
        for value in source.types
        if value not in ("deb", "deb-src")
    ]
    found += [problem for uri in source.uris for problem in _uri_problems(where, uri)]
    # A suite that ends in a slash is the path of a flat repository, which has no components.
    for suite in source.suites:
        flat = suite.endswith("/")
        if flat and source.components:
            found.append(Problem(where, "is a path (ends in /), which has no components: remove them", "suites", suite))
        if not flat and not source.components:
            found.append(Problem(where, f"is missing: the suite {suite} needs components, such as main", "components"))
    if source.key and not source.key_is_text and not re.fullmatch(r"/\S+", source.key):
        shown = source.key if len(source.key) < 80 else source.key[:80] + "…"
        found.append(
            Problem(where, f"must be an absolute path on the node, or text that begins with {ARMOUR}", "key", shown)
        )
    return [*found, *_fingerprint_problems(where, source)]


def _fingerprint_problems(where: str, source: Source) -> list[Problem]:
    found = [
        Problem(where, "must be 40 or 64 hexadecimal digits, as gpg --show-keys prints them", "fingerprints", value)
        for value in source.fingerprints
        if not FINGERPRINT.fullmatch(value)
    ]
    if source.fingerprints and not source.key:
        found.append(Problem(where, "is missing: fingerprints are for a key", "key"))
    if source.fingerprints and source.key_is_text and not found:
        found += check_key(source, source.key.encode())
    return found


def check_key(source: Source, data: bytes) -> list[Problem]:
    """A problem if a source has fingerprints, and its key `data` cannot be read or has another primary key."""
    message = openpgp.refusal(data, source.fingerprints)
    return [Problem(f"source {source.name}", message, "key")] if message else []


def _hidden(value: str) -> str:
    """The value, with asterisks in place of the text before an @, which may be a login in a wrong address."""
    _before, sign, after = value.rpartition("@")
    return f"********@{after}" if sign else value


def _uri_problems(where: str, uri: str) -> list[Problem]:
    try:
        parts = urlsplit(uri)
    except ValueError as error:
        # Not quoted, because the address may contain a login.
        message = f"has no host that can be read ({error}): use an address such as https://deb.debian.org/debian"
        return [Problem(where, message, "uris")]
    if parts.scheme not in SCHEMES:
        return [Problem(where, f"must begin with one of {', '.join(SCHEMES)} and a colon", "uris", _hidden(uri))]
    if "@" in parts.netloc:
        return [
            Problem(
                where,
                "must not contain a login, because every user may read the file: put it into /etc/apt/auth.conf.d",
                "uris",
                redact(uri, [uri]),
            )
        ]
    if not parts.netloc and parts.scheme not in ("file", "copy", "mirror+file"):
        return [Problem(where, "has no host: use an address such as https://deb.debian.org/debian", "uris", uri)]
    return []


@dataclass(frozen=True)
class Transport:
    """Proxies and certificate authorities of apt."""

    http_proxy: str = ""
    https_proxy: str = ""
    no_proxy: tuple[str, ...] = ()
    ca: str = ""

    @property
    def proxies(self) -> dict[str, str]:
        """The declared proxies, by scheme."""
        both = {"http": self.http_proxy, "https": self.https_proxy}
        return {scheme: url for scheme, url in both.items() if url}

    @property
    def secret(self) -> bool:
        """Whether a proxy's address contains a login."""
        return any("@" in urlsplit(url).netloc for url in self.proxies.values())

    def problems(self) -> list[Problem]:
        """All problems with proxies and authorities."""
        found: list[Problem] = []
        for scheme, url in self.proxies.items():
            try:
                parts = urlsplit(url)
                usable = parts.scheme in PROXY_SCHEMES and bool(parts.hostname) and (parts.port or 1) > 0
            except ValueError:
                usable = False
            if not usable or not PROXY_URL.fullmatch(url):
                shape = f"must be SCHEME://[USER:PASSWORD@]HOST:PORT, with a scheme of {', '.join(PROXY_SCHEMES)}"
                found.append(Problem(f"{scheme}_proxy", f"{shape}; other characters as %XX"))
        found += [
            Problem(f"no_proxy {host!r}", "must be the name of a host or an address, without wildcards and networks")
            for host in self.no_proxy
            if not HOST.fullmatch(host) or host.startswith(".")
        ]
        if self.ca:
            try:
                ssl.create_default_context(cadata=self.ca)
            except (ssl.SSLError, ValueError, TypeError) as error:
                found.append(Problem("ca", f"must be a bundle of certificates in PEM: {error}"))
        return found

    def text(self, etc: str) -> str:
        """The text of the file in apt.conf.d; empty if nothing is declared. `etc` stands for /etc/apt."""
        lines = [f'Acquire::{scheme}::Proxy "{url}";' for scheme, url in self.proxies.items()]
        lines += [f'Acquire::{scheme}::Proxy::{host} "DIRECT";' for scheme in self.proxies for host in self.no_proxy]
        if self.ca:
            lines.append(f'Acquire::https::CAInfo "{etc}/{CA_FILE}";')
        return "\n".join([f"// {HEADER}", *lines, ""]) if lines else ""


def declared_files(sources: Iterable[Source], transport: Transport, etc: str, codename: str) -> dict[str, File]:
    """All files of the declaration, by path below `etc`, the directory that stands for /etc/apt."""
    files: dict[str, File] = {}
    for source in sources:
        if not source.present:
            continue
        files[source.file] = File(source.text(etc, codename))
        if source.key_is_text:
            files[source.keyring] = File(source.key + "\n")
    options = transport.text(etc)
    if options:
        # A user who cannot read a file of apt.conf.d gets a warning from every apt command. So only secrets are hidden.
        files[PROXY_FILE] = File(options, 0o600 if transport.secret else 0o644)
    if transport.ca:
        files[CA_FILE] = File(transport.ca.strip() + "\n")
    return files


def redact(text: str, urls: Iterable[str]) -> str:
    """The text, with asterisks in place of the logins in these addresses."""
    for url in urls:
        try:
            login = urlsplit(url).netloc.rpartition("@")[0]
        except ValueError:
            # Without a readable host, any text before the @ may be a login.
            before = url.rpartition("@")[0]
            text = text.replace(before, "********") if before else text
            continue
        if login:
            text = text.replace(f"{login}@", "********@")
            password = login.partition(":")[2]
            text = text.replace(password, "********") if password else text
    return text


def active(text: str) -> bool:
    """Whether a file may declare a source: it has a line that is neither empty nor a comment."""
    return any(line.strip() and not line.lstrip().startswith("#") for line in text.splitlines())


def complaints(words: str, output: str = "") -> list[str]:
    """The errors and warnings of apt, each once, without its summary.

    `words` is stderr. If a source is not signed, only the progress messages in `output` name other failed sources.
    """
    lines = [line.strip() for line in words.splitlines() if re.match(r"[EW]: ", line)]
    found = [line for line in lines if not line.startswith("E: Some index files failed to download")]
    for uri, suite, item, reason in re.findall(r"^Err:\d+ (\S+) (\S+) (.+)\n +(.+)$", output, re.M):
        if not any(f"{uri} {suite} " in line or f"{uri}/dists/{suite}/" in line for line in found):
            found.append(f"E: Failed to fetch {uri} {suite} {item}: {reason}")
    return list(dict.fromkeys(found))


def fatal(complaint: str) -> bool:
    """Whether a message means that a source is unusable. For a missing component, apt only warns."""
    return complaint.startswith("E: ") or "Skipping acquire of configured file" in complaint


def duplicates(output: str) -> list[tuple[str, str]]:
    """The pairs of files that declare the same source, from apt's warnings."""
    pattern = re.compile(r"^W: Target .* is configured multiple times in (\S+?)(?::\d+)? and (\S+?)(?::\d+)?$", re.M)
    return list(dict.fromkeys(pattern.findall(output)))


def attribute(complaint: str, sources: Iterable[Source], codename: str) -> str:
    """Add the names of the sources that a message is about, if it mentions them."""

    def mentions(source: Source) -> bool:
        # apt writes file:///srv as file:/srv.
        uris = (re.sub(r"^(file|copy)://(?=/)", r"\1:", uri).rstrip("/") for uri in source.uris)
        places = (source.file, source.keyring, *uris)
        return any(place in complaint for place in places)

    def mentions_suite(source: Source) -> bool:
        suites = [suite.replace(CODENAME, codename).strip("/") for suite in source.suites]
        return any(re.search(rf"[ /]{re.escape(suite)}[ /]", complaint) for suite in suites if suite)

    about = [source for source in sources if source.present and mentions(source)]
    about = [source for source in about if mentions_suite(source)] or about
    names = ", ".join(source.name for source in about)
    return f"source {names}: {complaint}" if names else complaint
