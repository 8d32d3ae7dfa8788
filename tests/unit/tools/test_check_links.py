# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A link to a missing file or heading is named with its line; a good link, and a link to another site, is not."""

from __future__ import annotations

from pathlib import Path

import check_links
import pytest

GUIDE = """\
# The `site` playbook: what it does

## What happens, and when?

## Twice

## Twice

<a id="by-hand"></a>
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/guide.md").write_text(GUIDE)
    (tmp_path / "README.md").write_text("# Start\n")
    return tmp_path


def test_each_heading_has_its_anchor() -> None:
    assert check_links.anchors(GUIDE) == {
        "the-site-playbook-what-it-does",
        "what-happens-and-when",
        "twice",
        "twice-1",
        "by-hand",
    }


@pytest.mark.parametrize(
    "target",
    [
        "docs/guide.md",
        "docs/guide.md#twice-1",
        "docs/guide.md#by-hand",
        "docs",
        "#start",
        "https://example.com/x#y",
        "mailto:a@b.c",
    ],
)
def test_a_good_link_is_not_reported(root: Path, target: str) -> None:
    (root / "README.md").write_text(f"# Start\n\nSee [this]({target}).\n")
    assert check_links.broken(root / "README.md", root) == []


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("docs/gone.md", "there is no file docs/gone.md"),
        ("docs/guide.md#thrice", "docs/guide.md has no heading #thrice"),
        ("#begin", "README.md has no heading #begin"),
        ("../other.md", "lies outside"),
    ],
)
def test_a_broken_link_is_reported_with_its_line(root: Path, target: str, words: str) -> None:
    text = f"# Start\n\n| a | b |\n|---|---|\n| x | [this]({target}) |\n\n`[code](gone.md)`\n"
    (root / "README.md").write_text(text)
    (problem,) = check_links.broken(root / "README.md", root)
    assert problem.startswith("README.md:5: ") and words in problem


def test_a_guide_that_code_names_must_exist(root: Path) -> None:
    file = root / "x.py"
    file.write_text("# docs/guide.md, docs/guide.md#twice\n# https://a.b/docs/x.md\nX = 'docs/gone.md'\n")
    (problem,) = check_links.misnamed(file, root)
    assert problem == "x.py:3: docs/gone.md: there is no file docs/gone.md"
