# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet as a page of HTML."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from ansible_collections.baremetal.inference.plugins.module_utils.fleet import page
from ansible_collections.baremetal.inference.plugins.module_utils.fleet.report import read

from .conftest import DRAIN, FLEET, NOW, instance, node


class Page(HTMLParser):
    """Records open tags, and the addresses from which the page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.foreign: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "rect", "line", "circle"):
            self.open.append(tag)
        self.foreign += [tag] if tag in ("script", "link", "img", "iframe") else []
        self.foreign += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("circle",):
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += f"{data}\n"


def parsed(reported: dict[str, Any]) -> Page:
    html = page.render(read(reported, NOW))
    assert "url(" not in html and "@import" not in html
    result = Page()
    result.feed(html)
    assert result.open == [] and result.foreign == []
    return result


def test_the_page_loads_nothing_and_has_the_whole_fleet() -> None:
    text = parsed(FLEET).text
    assert "2 of 4 nodes answered, 2026-05-01 12:00 UTC" in text
    for words in ("gpu3", "sudo: a password is required", "hung", "3, another pending", "2 of 4 serve"):
        assert words in text
    # Kernel, Debian and the model differ between the two nodes; driver and GPUs do not.
    differ = text.partition("Versions that differ")[2].partition("Last updates")[0]
    assert "6.12.0" in differ and "main: model" in differ and "580.95.05" not in differ and "NVIDIA H200" not in differ


def test_the_page_escapes_what_it_shows() -> None:
    text = '<script>alert(1)</script>&"'
    drain = {**DRAIN, "reason": text}
    reported = {f"gpu{text}": node(instance(text, drain=drain, model=text)), "b": {"msg": text}}
    assert "alert(1)" in parsed(reported).text


def test_unknown_facts_of_a_node_break_nothing() -> None:
    blind = node(instances=None, system=None, gpus=None, doctor=None, backup=None, updated=None, errors={"gpus": "hm"})
    text = parsed({"gpu1": blind}).text
    assert "gpu1" in text and "gpus is unknown: hm" in text
    assert "Capacity: GPUs" not in text and "None: all nodes run the same." in text


def test_gpus_that_report_no_memory_break_nothing() -> None:
    silent = node()
    silent["gpus"] |= {
        "reported": 0,
        "memory_total_mib": None,
        "memory_used_mib": None,
        "hottest_c": None,
        "power_w": None,
    }
    text = parsed({"gpu1": silent}).text
    assert "0 of 4" in text and "Capacity: memory of GPUs" not in text


def test_an_empty_fleet_is_a_page() -> None:
    assert "0 of 0 nodes answered" in parsed({}).text
