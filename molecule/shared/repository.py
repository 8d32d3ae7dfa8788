# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small signed APT repository on a node, in place of a vendor's repository.

Its packages have the vendor's names and relations, and almost no content."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from node import Node

ROOT = "/srv/repositories"

# $1: the origin of the repository. A tree of each package lies below build; the packages of earlier calls are kept.
BUILD = """
set -eu
export DEBIAN_FRONTEND=noninteractive GNUPGHOME=$PWD/gnupg
apt-get -qq install --yes --no-install-recommends gpg gpg-agent apt-utils >/dev/null
mkdir -p pool
for tree in build/*; do dpkg-deb --root-owner-group --build $tree pool/ >/dev/null; done
rm -r build
if [ ! -d gnupg ]; then
  mkdir -m 700 gnupg
  gpg --batch --quiet --passphrase '' --quick-generate-key "$1" rsa3072 sign never 2>/dev/null
  gpg --export >key.gpg
fi
apt-ftparchive packages pool | sed 's#^Filename: #&./#' >Packages
apt-ftparchive -o APT::FTPArchive::Release::Origin="$1" release . >/tmp/Release
rm -f InRelease
gpg --batch --quiet --clearsign --output InRelease /tmp/Release
"""


@dataclass(frozen=True)
class Package:
    """A Debian package."""

    name: str
    version: str
    fields: Mapping[str, str] = field(default_factory=dict)
    """Fields of the control file, such as Depends."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Content by absolute path. Files in a bin directory are executable."""
    scripts: Mapping[str, str] = field(default_factory=dict)
    """Maintainer scripts such as postinst, for sh."""

    def tree(self) -> Iterable[tuple[str, str, int]]:
        """Path, content and mode of each file from which dpkg-deb builds the package."""
        control = {
            "Package": self.name,
            "Version": self.version,
            "Architecture": "amd64",
            "Maintainer": "test",
            "Description": "test",
            **self.fields,
        }
        yield "DEBIAN/control", "".join(f"{key}: {value}\n" for key, value in control.items()), 0o644
        for name, text in self.scripts.items():
            yield f"DEBIAN/{name}", f"#!/bin/sh\nset -e\n{text}\n", 0o755
        for path, text in self.files.items():
            yield path.lstrip("/"), text, 0o755 if "/bin/" in path else 0o644


class Repository:
    """A repository of one origin on one node."""

    def __init__(self, node: Node, origin: str) -> None:
        self.node = node
        self.origin = origin
        self.path = f"{ROOT}/{origin}"
        self.source = f"/etc/apt/sources.list.d/{origin.lower()}.list"

    def publish(self, packages: Iterable[Package]) -> None:
        """Add packages to the repository, and run apt-get update on the node."""
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w") as archive:
            for package in packages:
                for path, text, mode in package.tree():
                    info = tarfile.TarInfo(f"build/{package.name}_{package.version}/{path}")
                    info.size, info.mode = len(text.encode()), mode
                    archive.addfile(info, io.BytesIO(text.encode()))
        self.node.run(f"mkdir -p {self.path}")
        subprocess.run(self.node.argv("tar", "-C", self.path, "-x"), input=data.getvalue(), check=True)
        self.node.run(f"cd {self.path}; set -- {self.origin}; {BUILD}")
        self.node.run(f"echo 'deb [signed-by={self.path}/key.gpg] file:{self.path} ./' >{self.source}")
        self.node.run("apt-get -qq update")

    def remove(self) -> None:
        """Remove the repository from the node."""
        self.node.run(f"rm -rf {self.path} {self.source}; apt-get -qq update")
