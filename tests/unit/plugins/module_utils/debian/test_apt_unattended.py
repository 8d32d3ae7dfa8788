# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file with the settings of unattended upgrades, as APT itself reads it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian import apt_pins, apt_unattended

ORIGINS = ["origin=Debian,codename=${distro_codename}-security,label=Debian-Security", "o=Site,a=stable"]


@pytest.mark.skipif(shutil.which("apt-config") is None, reason="this machine has no APT")
@pytest.mark.parametrize("enabled", [True, False])
def test_apt_reads_the_file(tmp_path: Path, enabled: bool) -> None:
    file = tmp_path / "52-inference"
    file.write_text(apt_unattended.text(enabled, ORIGINS))
    command = ["apt-config", f"--config-file={file}", "dump"]
    dump = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert f'APT::Periodic::Unattended-Upgrade "{int(enabled)}";' in dump
    assert [origin for origin in ORIGINS if f'Origins-Pattern:: "{origin}";' in dump] == (ORIGINS if enabled else [])
    assert ('Unattended-Upgrade::Automatic-Reboot "false";' in dump) == enabled


@pytest.mark.parametrize("origin", ["Debian", "origin=", 'origin="a', "origin=a;b=c", "origin=a\nb", "origin=a,b"])
def test_an_origin_that_could_break_the_file_is_a_mistake(origin: str) -> None:
    (words,) = apt_unattended.mistakes([*ORIGINS, origin])
    assert repr(origin) in words and "apt-cache policy" in words


def test_the_file_is_written_only_if_it_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apt_pins, "ETC_APT", tmp_path)
    (tmp_path / "apt.conf.d").mkdir()
    (predicted,) = apt_unattended.apply(True, ORIGINS, check=True)
    assert not (tmp_path / apt_unattended.FILE).exists()
    assert apt_unattended.apply(True, ORIGINS, check=False) == [predicted]
    assert apt_unattended.apply(True, ORIGINS, check=True) == []
    (tmp_path / apt_unattended.FILE).chmod(0o600)
    assert apt_unattended.apply(True, ORIGINS, check=True), "APT's timers could not read the file"
    apt_unattended.apply(True, ORIGINS, check=False)
    monkeypatch.setattr(os, "geteuid", lambda: (tmp_path / apt_unattended.FILE).stat().st_uid + 1)
    assert apt_unattended.apply(True, ORIGINS, check=True), "another user could edit the file"
