# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The releases of Debian on which services are tested."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian import tested


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('PRETTY_NAME="Debian GNU/Linux 13 (trixie)"\nVERSION_ID="13"\nID=debian\n', ""),
        ('PRETTY_NAME="Debian GNU/Linux 11"\nVERSION_ID="11"\nID=debian\n', "runs Debian GNU/Linux 11, but backup"),
        (
            'PRETTY_NAME="Mint 12"\nVERSION_ID="12"\nID=mint\n',
            "runs Mint 12, but backup needs restic of Debian 12 or 13",
        ),
        ("ID=debian\n", "an unknown system"),
        (None, "an unknown system"),
    ],
)
def test_only_a_tested_release_is_accepted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str | None, words: str
) -> None:
    monkeypatch.setattr(tested, "OS_RELEASE", tmp_path / "os-release")
    if text is not None:
        tested.OS_RELEASE.write_text(text)
    found = tested.refusal("backup", "restic")
    assert words in found and bool(found) is bool(words)
