# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of rails on a node."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings import (
    files,
    infiniband,
    units,
    written,
)
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings.desired import Desired
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings.differences import Difference
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings.variables import Wish
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings.written import Change

LINK = "/etc/systemd/network/60-inference-rdma-ens1.link"
PROFILE = "/etc/NetworkManager/system-connections/60-inference-rdma-ens1.nmconnection"


def run(command: Sequence[str]) -> Outcome:
    return Outcome(0)


def place(root: Path, path: str) -> Path:
    return root / path.lstrip("/")


def test_files_are_written_once_with_their_mode(tmp_path: Path) -> None:
    texts = {LINK: "a\n", PROFILE: "b\n"}
    changes = written.differing(tmp_path, texts, None)
    assert changes == {LINK: Change(None, "a\n"), PROFILE: Change(None, "b\n")}
    written.write(tmp_path, changes, run)
    assert place(tmp_path, LINK).stat().st_mode & 0o777 == 0o644
    assert place(tmp_path, PROFILE).stat().st_mode & 0o777 == 0o600
    assert written.differing(tmp_path, texts, None) == {}
    place(tmp_path, PROFILE).chmod(0o644)
    assert list(written.differing(tmp_path, texts, None)) == [PROFILE]


def test_files_of_earlier_runs_are_removed_and_files_of_the_operator_remain(tmp_path: Path) -> None:
    inner = "/etc/systemd/network/60-inference-rdma-ib0.network.d/60-inference-rdma-ib0.8001.conf"
    other = "/etc/systemd/network/60-mine.link"
    for path in (LINK, inner, other):
        place(tmp_path, path).parent.mkdir(parents=True, exist_ok=True)
        place(tmp_path, path).write_text("x\n")
    recorded = Desired([], "networkd", (PROFILE,)).as_dict()
    changes = written.differing(tmp_path, {}, recorded)
    assert changes == {LINK: Change("x\n", None), inner: Change("x\n", None)}
    written.write(tmp_path, changes, run)
    assert place(tmp_path, other).exists() and not place(tmp_path, LINK).exists()
    assert written.differing(tmp_path, {}, "damaged") == {}


def test_networkmanager_reads_its_configuration_after_a_change(tmp_path: Path) -> None:
    commands: list[list[str]] = []

    def record(command: Sequence[str]) -> Outcome:
        commands.append(list(command))
        return Outcome(0)

    for texts in ({files.NM_CONF: "a\n"}, {}):
        written.write(tmp_path, written.differing(tmp_path, texts, None), record)
    assert commands == [["nmcli", "general", "reload", "conf"]] * 2


def test_opensm_reads_new_partitions(tmp_path: Path) -> None:
    commands: list[list[str]] = []

    def record(command: Sequence[str]) -> Outcome:
        commands.append(list(command))
        return Outcome(0)

    texts = infiniband.texts(Wish(subnet_manager=True, partition_keys=["0x1"]))
    changes = written.differing(tmp_path, texts, None)
    written.write(tmp_path, changes, record)
    assert commands == [["systemctl", "try-restart", "opensm.service"]]
    path, text = next(iter(texts.items()))
    assert len(texts) == 1
    stored = Desired([], "none", (path,)).as_dict()
    assert written.differing(tmp_path, texts, stored) == {}
    assert written.differing(tmp_path, {}, stored) == {path: Change(text, None)}
    # A file of the operator, in place of the file that an earlier run wrote, remains.
    (tmp_path / path.lstrip("/")).write_text("Default=0x7fff : ALL ;\n")
    assert written.differing(tmp_path, {}, stored) == {}


def test_a_change_has_a_diff() -> None:
    assert written.diff({LINK: Change(None, "a\n")}) == [
        {"before_header": LINK, "after_header": LINK, "before": "", "after": "a\n"}
    ]
    assert written.diff_of_settings([]) == []
    (found,) = written.diff_of_settings([Difference(0, "rocep1s0/1", "mtu", 1500, 9000)])
    assert found["before"] == "rail 0 (rocep1s0/1): mtu = 1500\n"
    assert found["after"] == "rail 0 (rocep1s0/1): mtu = 9000\n"


def test_units_are_enabled_and_later_removed(tmp_path: Path) -> None:
    commands: list[str] = []

    def record(command: Sequence[str]) -> Outcome:
        commands.append(" ".join(command))
        return Outcome(0)

    texts = units.texts(Paths(tmp_path))
    written.write(tmp_path, written.differing(tmp_path, texts, None), record)
    link = place(tmp_path, units.LINK)
    assert link.resolve() == place(tmp_path, f"/etc/systemd/system/{units.SERVICE}")
    assert commands == ["systemctl daemon-reload", "udevadm control --reload"]
    written.write(tmp_path, written.differing(tmp_path, {}, None), record)
    assert not link.is_symlink() and not place(tmp_path, units.RULES).exists() and len(commands) == 4
