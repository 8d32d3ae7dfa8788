#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: apt_sources
short_description: Configure APT's sources, proxies and authorities, and try them before they replace the old files
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Writes all sources in one call, as deb822 files below C(/etc/apt/sources.list.d), with their keys, proxies and
    authorities.
  - If anything differs from the node, APT first tries the declared sources in a temporary directory, also in check
    mode. If a source does not answer, has a wrong signature, or lacks a suite or component, the module fails with
    APT's message, and changes nothing.
  - Then the module replaces the files, and refreshes APT's lists of the declared sources. If this fails, it puts all
    old files back.
  - Removes a proxy or authority that this module has set earlier and that is no longer declared.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - Check mode tries differing sources as well, in a temporary directory.
  diff_mode:
    support: full
    details:
      - Logins of proxies are not shown.
options:
  sources:
    description: The sources. If the list is empty, the node's sources stay unchanged.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: The name of the file, C(/etc/apt/sources.list.d/NAME.sources).
        type: str
        required: true
      uris:
        description: The addresses of the repository. Put a login into C(/etc/apt/auth.conf.d), not here.
        type: list
        elements: str
        default: []
      suites:
        description:
          - The suites. V($(CODENAME\)) stands for the name of the node's Debian release.
          - A suite that ends in C(/) is the path of a flat repository.
        type: list
        elements: str
        default: []
      components:
        description: The components. A flat repository has none.
        type: list
        elements: str
        default: []
      types:
        description: The types, V(deb) or V(deb-src).
        type: list
        elements: str
        default: [deb]
      architectures:
        description: The architectures. An empty list means the node's architectures.
        type: list
        elements: str
        default: []
      key:
        description:
          - The key that signs the repository, as the path of a keyring on the node, or as ASCII armoured text. The text
            is written to C(/etc/apt/keyrings/inference-NAME.asc).
          - If empty, APT accepts every key in its trusted keyrings.
        type: str
        default: ""
      fingerprints:
        description:
          - The fingerprints that the key may have, as C(gpg --show-keys) prints them. A primary key with another
            fingerprint is refused. An empty list allows each key.
        type: list
        elements: str
        default: []
      state:
        description: V(absent) removes the source's file, and the key that this module wrote for the source.
        type: str
        choices: [present, absent]
        default: present
  exclusive:
    description:
      - Disable every other source. Their files are renamed to names that end in C(.inference.save), which APT ignores.
    type: bool
    default: false
  keep:
    description: Sources that O(exclusive) does not disable, as file names without their suffix; C(*) is a wildcard.
    type: list
    elements: str
    default: []
  http_proxy:
    description: The proxy for C(http).
    type: str
    default: ""
  https_proxy:
    description: The proxy for C(https).
    type: str
    default: ""
  no_proxy:
    description: Names of hosts that are reached without a proxy. APT supports no wildcards and no networks here.
    type: list
    elements: str
    default: []
  ca:
    description: The authorities in PEM that APT trusts for C(https), in place of the machine's authorities.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Use only the site's mirror
  baremetal.inference.apt_sources:
    sources:
      - name: debian
        uris: [https://mirror.example.com/debian]
        suites: [$(CODENAME), $(CODENAME)-updates]
        components: [main, non-free-firmware]
        key: /usr/share/keyrings/debian-archive-keyring.gpg
    exclusive: true
"""

RETURN = r"""
differs:
  description: The files that were changed, or would be in check mode.
  returned: success
  type: list
  elements: str
saved:
  description: The files that O(exclusive) has disabled, or would in check mode.
  returned: success
  type: list
  elements: str
undeclared:
  description: The files of sources that are not declared and stay enabled.
  returned: success
  type: list
  elements: str
duplicates:
  description:
    - Pairs of files that declare the same packages, about which APT warns at every use. Only determined if anything
      differs.
  returned: success
  type: list
  elements: list
"""

import fnmatch
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError, Problem
from ansible_collections.baremetal.inference.plugins.module_utils.debian.apt_sources import (
    CA_FILE,
    PROXY_FILE,
    File,
    Source,
    Transport,
    active,
    attribute,
    check_key,
    complaints,
    declared_files,
    duplicates,
    fatal,
    read_sources,
    redact,
)

ETC_APT = Path("/etc/apt")
OS_RELEASE = Path("/etc/os-release")

SAVED = ".inference.save"
"""The suffix of a disabled file. apt ignores *.save silently. Source: Dir::Ignore-Files-Silently."""

CONNECT_SECONDS = 15
"""Time limit in seconds for a connection to a source."""

TRY_SECONDS = 300
"""Time limit of one call of apt-get with the temporary files, in seconds."""

LOCK_SECONDS = 120
"""How long to wait in seconds while another apt, for example one of a timer, locks the lists."""

BACK = "The old sources are back, because "
"""The beginning of an error after which the old files are put back."""

# apt reads this last: in a file that also has the text of /etc/apt/apt.conf, after all files of apt.conf.d. The call
# of apt-get needs no descriptions, uses compressed lists, and calls no hook.
OPTIONS = """\
Dir::Etc::SourceList "{root}/sources.list";
Dir::Etc::SourceParts "{root}/sources.list.d";
Dir::State::Lists "{root}/lists";
Dir::Cache "{root}/cache";
Acquire::http::Timeout "{seconds}";
Acquire::https::Timeout "{seconds}";
Acquire::Retries "1";
Acquire::Languages "none";
Acquire::GzipIndexes "true";
APT::Update::Error-Mode "any";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
"""


class SourceError(Exception):
    """The declared sources cannot be used. The text is for the operator."""


class Manager:
    """One run: inspects the node, tries the sources, and (outside check mode) replaces the files."""

    def __init__(self, module: AnsibleModule, sources: list[Source], transport: Transport) -> None:
        self.module = module
        self.sources = sources
        self.present = [source for source in sources if source.present]
        self.transport = transport
        self.codename = codename()
        self.wanted: dict[Path, File] = {ETC_APT / name: file for name, file in self.files(str(ETC_APT)).items()}
        self.saved: list[Path] = []
        self.undeclared: list[Path] = []
        for path in self.others():
            spared = any(fnmatch.fnmatchcase(path.stem, pattern) for pattern in module.params["keep"])
            (self.saved if module.params["exclusive"] and not spared else self.undeclared).append(path)
        # Files that this module may have written and that are no longer declared.
        mine = [ETC_APT / PROXY_FILE, ETC_APT / CA_FILE, *(ETC_APT / source.keyring for source in sources)]
        mine += [ETC_APT / source.file for source in sources if not source.present]
        self.gone = [path for path in mine if path not in self.wanted and path.exists()]

    def files(self, etc: str) -> dict[str, File]:
        return declared_files(self.sources, self.transport, etc, self.codename)

    def others(self) -> list[Path]:
        """The files with enabled sources that are not declared."""
        parts = ETC_APT / "sources.list.d"
        found = [ETC_APT / "sources.list", *sorted(parts.glob("*.list")), *sorted(parts.glob("*.sources"))]
        declared = {ETC_APT / source.file for source in self.sources}
        return [path for path in found if path not in declared and path.is_file() and active(files.text(path) or "")]

    def apply(self) -> dict[str, object]:
        """The module's result. Raises SourceError and OSError."""
        before = {path: files.text(path) or "" for path in [*self.wanted, *self.gone]}
        changed = [path for path, file in self.wanted.items() if before[path] != file.text or mode(path) != file.mode]
        differing = [*changed, *self.gone, *self.saved]
        # Read before the change: after the change, saved() returns other names.
        renamed = [f"{path} is renamed to {saved(path)}\n" for path in self.saved]
        found: list[tuple[str, str]] = []
        if differing:
            found = self.try_out()
            if not self.module.check_mode:
                self.replace(changed)
        diff = [
            {
                "before_header": str(path),
                "after_header": str(path),
                "before": self.shown(before[path]),
                "after": self.shown(self.wanted[path].text if path in self.wanted else ""),
            }
            for path in [*changed, *self.gone]
        ]
        diff += [{"prepared": words} for words in renamed]
        return {
            "changed": bool(differing),
            "differs": [str(path) for path in differing],
            "saved": [str(path) for path in self.saved],
            "undeclared": [str(path) for path in self.undeclared],
            "duplicates": [list(pair) for pair in found],
            "diff": diff,
        }

    def shown(self, text: str) -> str:
        """A text without the logins of declared and earlier proxies."""
        old = [word.strip('";') for word in text.split() if "://" in word]
        return redact(text, [*self.transport.proxies.values(), *old])

    # --- Try the sources

    def try_out(self) -> list[tuple[str, str]]:
        """Try the declared sources in a temporary directory. Returns duplicates. Raises SourceError."""
        with temporary_directory() as root:
            self.lay_out(root)
            # Without declared sources, a proxy or an authority is tried with the node's sources.
            if not self.present:
                self.add_others(root)
            if self.present or {ETC_APT / PROXY_FILE, ETC_APT / CA_FILE} & {*self.wanted, *self.gone}:
                self.judge(root, "update", "Nothing was changed, because APT cannot use the sources as declared:")
            if self.present:
                self.add_others(root)
            # apt may accept each source alone and still refuse them together: the same repository with two keys.
            output = self.judge(root, "indextargets", "Nothing was changed, because APT refuses the sources together:")
            return duplicates(output.replace(str(root), str(ETC_APT)))

    def lay_out(self, root: Path) -> None:
        """Write the declared sources, and the node's options with the declared proxies and authorities."""
        for part in ("sources.list.d", "keyrings", "apt.conf.d", "lists/partial", "cache/archives/partial"):
            (root / part).mkdir(parents=True)
        (root / "apt.conf.d").chmod(0o700)
        for path in sorted((ETC_APT / "apt.conf.d").glob("*")):
            if path.is_file() and path != ETC_APT / PROXY_FILE:
                shutil.copy(path, root / "apt.conf.d")
        for name, file in self.files(str(root)).items():
            write(root / name, file)
        options = OPTIONS.format(root=root, seconds=CONNECT_SECONDS)
        write(root / "last.conf", File(f"{files.text(ETC_APT / 'apt.conf') or ''}\n{options}", 0o600))
        places = f'Dir::Etc::Parts "{root}/apt.conf.d";\nDir::Etc::Main "{root}/last.conf";\n'
        (root / "apt.conf").write_text(places, encoding="utf-8")

    def add_others(self, root: Path) -> None:
        for path in self.undeclared:
            shutil.copy(path, root / path.relative_to(ETC_APT))

    def judge(self, root: Path, verb: str, reason: str) -> str:
        """Run apt-get with the files below `root`. Returns its warnings. Raises SourceError with its errors."""
        code, output, words = self.module.run_command(
            ["timeout", str(TRY_SECONDS), "apt-get", "--quiet", verb],
            environ_update={"APT_CONFIG": str(root / "apt.conf"), "LC_ALL": "C", "LANGUAGE": "C"},
        )
        if code == 124:
            words += f"\nE: apt-get {verb} did not end within {TRY_SECONDS} s"
        if code or any(fatal(line) for line in complaints(words)):
            raise self.failure(reason, words.replace(str(root), str(ETC_APT)), output)
        return words

    def failure(self, reason: str, words: str, output: str) -> SourceError:
        """The error with apt's errors and warnings: the warnings explain what is wrong with a signature."""
        found = complaints(words, output) or [(words or output).strip()]
        lines = [attribute(line, self.present, self.codename) for line in found]
        return SourceError(redact("\n- ".join([reason, *lines]), self.transport.proxies.values()))

    # --- The change

    def replace(self, changed: list[Path]) -> None:
        """Replace all files, and refresh the lists; on an error, put all back. Raises SourceError and OSError."""
        old = {
            path: File(files.text(path) or "", mode(path) or 0o644) if path.exists() else None
            for path in [*changed, *self.gone]
        }
        moved: list[tuple[Path, Path]] = []
        try:
            for path in changed:
                write(path, self.wanted[path])
            for path in self.gone:
                path.unlink()
            for path in self.saved:
                moved.append((path, path.rename(saved(path))))
            if self.present:
                self.refresh()
        except (SourceError, OSError) as error:
            try:
                for path, place in moved:
                    place.rename(path)
                for path, file in old.items():
                    if file:
                        write(path, file)
                    else:
                        path.unlink(missing_ok=True)
            except OSError as second:
                # This error must not replace the first one.
                raise SourceError(
                    f"{str(error).removeprefix(BACK)}\n- Not all old files could be put back: {second}"
                ) from error
            raise

    def refresh(self) -> None:
        """Refresh the lists of the declared sources alone: other sources may not answer. Raises SourceError."""
        with temporary_directory() as root:
            for source in self.present:
                shutil.copy(ETC_APT / source.file, root)
            options = [
                f"Dir::Etc::SourceParts={root}",
                "Dir::Etc::SourceList=/dev/null",
                "APT::Get::List-Cleanup=0",
                "APT::Update::Error-Mode=any",
            ]
            deadline = time.monotonic() + LOCK_SECONDS
            while True:
                code, output, words = self.module.run_command(
                    ["apt-get", "--quiet", *(f"--option={option}" for option in options), "update"],
                    environ_update={"LC_ALL": "C", "LANGUAGE": "C"},
                )
                if not code or "Could not get lock" not in words or time.monotonic() > deadline:
                    break
                time.sleep(5)
        if code:
            reason = "APT's lists could not be refreshed from the new ones:"
            raise self.failure(BACK + reason, words.replace(str(root), f"{ETC_APT}/sources.list.d"), output)


@contextmanager
def temporary_directory() -> Iterator[Path]:
    """A temporary directory that the user _apt can enter."""
    root = Path(tempfile.mkdtemp(prefix="inference-apt-"))
    try:
        root.chmod(0o755)
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


def codename() -> str:
    """The name of the node's Debian release, such as bookworm."""
    lines = OS_RELEASE.read_text(encoding="utf-8").splitlines()
    values = dict(line.split("=", 1) for line in lines if "=" in line)
    return values.get("VERSION_CODENAME", "").strip('"')


def saved(path: Path) -> Path:
    """The new path for a disabled file, which overwrites no file that was saved before."""
    names = (f"{path.name}{number}{SAVED}" for number in ("", *(f".{count}" for count in range(2, 1000))))
    return next(place for place in map(path.with_name, names) if not place.exists())


def mode(path: Path) -> int | None:
    """A file's permissions; None if the file does not exist."""
    return stat.S_IMODE(path.stat().st_mode) if path.exists() else None


def write(path: Path, file: File) -> None:
    """Replace a file atomically."""
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    # apt ignores names with this suffix, which may stay if the run is cut off.
    new = path.with_name(f"{path.name}.dpkg-new")
    new.unlink(missing_ok=True)
    # Mode 0600 from the start: the text may contain a login.
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
        stream.write(file.text)
        os.fchmod(stream.fileno(), file.mode)
        stream.flush()
        os.fsync(stream.fileno())
    new.replace(path)


def check_key_file(source: Source) -> list[Problem]:
    """A problem if the key of a source is a file that is not there, cannot be read, or has another fingerprint."""
    where, path = f"source {source.name}", Path(source.key)
    if not path.is_file():
        return [Problem(where, "must be a file on the node: correct the path", "key", source.key)]
    try:
        return check_key(source, path.read_bytes())
    except OSError as error:
        return [Problem(where, f"cannot be read ({error.strerror}): replace the file", "key", source.key)]


def check(sources: list[Source], transport: Transport, exclusive: bool) -> list[Problem]:
    """Mistakes in the input that read_sources does not find."""
    found = transport.problems()
    found += [
        problem
        for source in sources
        if source.present and source.key and not source.key_is_text
        for problem in check_key_file(source)
    ]
    if exclusive and not any(source.present for source in sources):
        found.append(Problem("exclusive", "would leave the node without any source: declare at least one"))
    return found


def main() -> None:
    words = {"type": "list", "elements": "str", "default": []}
    text = {"type": "str", "default": ""}
    module = AnsibleModule(
        argument_spec={
            "sources": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "name": {"type": "str", "required": True},
                    "uris": words,
                    "suites": words,
                    "components": words,
                    "types": {"type": "list", "elements": "str", "default": ["deb"]},
                    "architectures": words,
                    # A public key.
                    "key": {"type": "str", "default": "", "no_log": False},
                    "fingerprints": words,
                    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
                },
            },
            "exclusive": {"type": "bool", "default": False},
            "keep": words,
            # May contain a login.
            "http_proxy": {**text, "no_log": True},
            "https_proxy": {**text, "no_log": True},
            "no_proxy": words,
            "ca": text,
        },
        supports_check_mode=True,
    )
    # The user _apt must be able to read the files, independent of root's umask.
    os.umask(0o022)
    params = module.params
    transport = Transport(params["http_proxy"], params["https_proxy"], tuple(params["no_proxy"]), params["ca"].strip())
    problems: list[Problem] = []
    sources: list[Source] = []
    try:
        sources = read_sources(params["sources"])
    except InputError as error:
        problems = error.problems
    problems += check(sources, transport, params["exclusive"] and not problems)
    if problems:
        module.fail_json(msg="\n- ".join(["Nothing was changed.", *map(str, problems)]))
    try:
        result = Manager(module, sources, transport).apply()
    except (SourceError, OSError) as error:
        module.fail_json(msg=str(error))
    pairs = result["duplicates"]
    if pairs:
        module.warn(
            "APT finds the same packages in two files, and warns at every use: "
            + "; ".join(" and ".join(pair) for pair in pairs)  # type: ignore[attr-defined]
            + ". Disable other sources by common_apt_exclusive (role common), or remove one declaration."
        )
    module.exit_json(**result)


if __name__ == "__main__":
    main()
