# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""This collection's lines in /etc/fstab, and lines of other origin."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian import fstab
from ansible_collections.baremetal.inference.plugins.module_utils.debian.fstab import Line

OURS = Line("UUID=aa", "/mnt/models", "ext4", ("noatime", "nofail", "x-inference=models"), 2)
TEXT = "# by the installer\nUUID=root / ext4 errors=remount-ro 0 1\n\nLABEL=old\t/srv/my\\040data ext4\n"


def test_a_line_is_added_once_and_all_others_stay() -> None:
    text = fstab.with_line(TEXT, OURS)
    assert text == TEXT + "UUID=aa /mnt/models ext4 noatime,nofail,x-inference=models 0 2\n"
    assert fstab.with_line(text, OURS) is text


def test_our_own_line_is_replaced_even_if_its_source_differs() -> None:
    """The source differs after a dead disk was replaced."""
    text = fstab.with_line(TEXT, OURS)
    new = Line("UUID=bb", OURS.path, "xfs", OURS.options)
    assert fstab.with_line(text, new) == TEXT + "UUID=bb /mnt/models xfs noatime,nofail,x-inference=models 0 0\n"


def test_a_hand_made_line_for_the_same_file_system_becomes_ours() -> None:
    assert fstab.with_line("UUID=aa /mnt/models/ ext4 defaults\n", OURS) == f"{OURS}\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("LABEL=other /mnt/models xfs defaults 0 0\n", "line 1, mounts LABEL=other at /mnt/models: remove"),
        ("# x\nUUID=aa /srv/old ext4 defaults 0 0\n", "line 2, mounts UUID=aa at /srv/old: unmount it there"),
        ("UUID=aa /mnt/models ext4\nUUID=aa /mnt/models ext4\n", "in the lines 1 and 2"),
    ],
)
def test_a_conflicting_line_of_other_origin_is_an_error(text: str, words: str) -> None:
    with pytest.raises(fstab.FstabError, match=words):
        fstab.with_line(text, OURS)


def test_only_lines_of_this_collection_can_be_undeclared() -> None:
    text = fstab.with_line(TEXT, OURS)
    assert fstab.undeclared(text, []) == [OURS]
    assert fstab.undeclared(text, ["/mnt/models"]) == []


def test_an_order_that_is_no_decimal_number_means_no_check() -> None:
    line = fstab.parse_line("UUID=1 /data ext4 noatime 0 ²")
    assert line is not None and line.check == 0


def test_blanks_in_a_path_are_read() -> None:
    line = fstab.parse_line(TEXT.splitlines()[3])
    assert line is not None and line.path == "/srv/my data" and line.options == ("defaults",)
