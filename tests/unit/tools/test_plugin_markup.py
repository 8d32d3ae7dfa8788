# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Descriptions become Markdown that shows what they say, and no line becomes a list by accident."""

from __future__ import annotations

import pytest

# A tool of `make lint`, which the environments of newer ansible-cores do not have.
pytest.importorskip("antsibull_docs_parser")

import plugin_markup


def page(kind: str, name: str) -> str:
    return f"{kind}s/{name.rpartition('.')[2]}.md" if name.startswith("a.b.") else ""


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("Set V(true), or O(vllm_set=x).", "Set `true`, or `vllm_set=x`."),
        ("Run C(inferctl drain NAME) with E(HOME).", "Run `inferctl drain NAME` with `HOME`."),
        ("See M(a.b.disks), M(x.y.copy).", "See [`a.b.disks`](modules/disks.md), `x.y.copy`."),
        ("See P(a.b.vllm#role).", "See [`a.b.vllm`](roles/vllm.md)."),
        ("B(Never) by I(hand).", "**Never** by *hand*."),
        ("L(This,https://x.org/) or U(https://y.org/).", "[This](https://x.org/) or <https://y.org/>."),
        ("All of vllm@*, <role>_x and [a].", r"All of vllm@\*, \<role>_x and \[a\]."),
        ("RV(differs) is C(a`b).", "`differs` is `` a`b ``."),
    ],
)
def test_markup_becomes_markdown(text: str, markdown: str) -> None:
    assert plugin_markup.wrap(plugin_markup.paragraph(text, page)) == markdown


def test_markup_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(ValueError, match="M"):
        plugin_markup.paragraph("See M(disks).", page)


def test_lines_are_wrapped_with_their_indents() -> None:
    lines = plugin_markup.wrap("word " * 60, "- ", "  ").splitlines()
    assert [line[:3] for line in lines] == ["- w", "  w", "  w"]
    assert max(map(len, lines)) <= plugin_markup.WIDTH


def test_a_line_never_ends_inside_of_code() -> None:
    text = plugin_markup.wrap("x" * 110 + " " + plugin_markup.code("one two - three"))
    assert text.splitlines()[1] == "`one two - three`"


@pytest.mark.parametrize(
    ("start", "kept"), [("-", r"\- end"), ("12.", r"12\. end"), ("#", r"\# end"), ("+3", "+3 end")]
)
def test_a_wrapped_line_begins_no_list(start: str, kept: str) -> None:
    assert plugin_markup.wrap(f"{'x' * 119} {start} end").splitlines()[1] == kept
