# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a configuration file is unchanged, by the checksums of dpkg."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian.conffiles import pristine

DIGEST = hashlib.md5(b"global\n", usedforsecurity=False).hexdigest()


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        (" {path} {digest}\n", True),
        (" /etc/other {digest}\n {path} {digest}\n", True),
        (" /etc/other {digest}\n", False),
        (" {path} 27a8e6ee16d2f8c6c7c0dc3c2a7dcd0d\n", False),
        ("", False),
    ],
)
def test_only_an_unchanged_file_of_the_package_is_pristine(tmp_path: Path, shown: str, wanted: bool) -> None:
    path = tmp_path / "haproxy.cfg"
    path.write_text("global\n")
    asked: list[Sequence[str]] = []

    def run(command: Sequence[str]) -> tuple[int, str, str]:
        asked.append(command)
        return 0, shown.format(path=path, digest=DIGEST), ""

    assert pristine(run, "haproxy", path) is wanted
    assert asked == [["dpkg-query", "--show", "--showformat=${Conffiles}", "haproxy"]]
