# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of status and the console in a real browser: the console through the tunnel of docs/monitoring.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser
from node import Node, playbook, wait_for
from watcher import Watcher

PAGE = "/consoles/inference.html"


@pytest.fixture(scope="module")
def page(watcher: Watcher) -> Iterator[tuple[Browser, str]]:
    with watcher.tunnel() as url, Browser() as browser:
        yield browser, f"{url}{PAGE}"


def open_page(watcher: Watcher, page: tuple[Browser, str]) -> Browser:
    browser, url = page
    browser.show(url, f"{watcher.user}:{watcher.password}")
    return browser


def test_the_report_of_status_is_one_page_that_loads_no_other_file(tmp_path: Path, deb12: Node, deb13: Node) -> None:
    report = tmp_path / "fleet.html"
    playbook(f"{deb12.name},{deb13.name}", name="baremetal.inference.status", report=str(report))
    with Browser() as browser:
        browser.show(report.as_uri())
        text = browser.text()
        assert all(name in text for name in (deb12.name, deb13.name, "tiny-a", "healthy"))
        assert browser.value("document.querySelectorAll('svg').length") > 0
        assert browser.value("performance.getEntriesByType('resource').length") == 0
        assert not browser.errors


def test_the_page_requires_a_password(page: tuple[Browser, str]) -> None:
    browser, url = page
    browser.show(url)
    assert "Unauthorized" in browser.text() and not browser.table("#nodes")


def test_the_page_shows_the_fleet(watcher: Watcher, page: tuple[Browser, str], deb12: Node, deb13: Node) -> None:
    browser = open_page(watcher, page)
    assert browser.value("document.title") == "Inference fleet"
    summary = " ".join(browser.text("#summary").split())
    assert "2 / 2 hosts answer" in summary and "2 / 2 instances serve" in summary
    names = [deb12.name, deb13.name]
    instances = browser.table("#instances")
    assert [row["node"] for row in instances] == names
    for row in instances:
        assert (row["instance"], row["model"], row["verdict"]) == ("main", "tiny-a", "healthy")
        assert row["release"].isdigit() and row["KV cache"].endswith("%")
    nodes = browser.table("#nodes")
    assert [(row["node"], row["answers"]) for row in nodes] == [(name, "yes") for name in names]
    assert all(row["memory free"].endswith("%") and row["doctor"] != "–" for row in nodes)
    assert [row["model"] for row in browser.table("#models")] == ["tiny-a"]
    assert [(row["gateway"], row["answers"]) for row in browser.table("#gateways")] == [(deb12.name, "yes")]
    # No part fails to load or is too wide for the window, and no template has a leftover.
    assert browser.errors == []
    assert browser.value("document.documentElement.scrollWidth <= innerWidth")
    assert not any(word in browser.text() for word in ("{{", "NaN", "error executing"))


def test_the_page_shows_a_drain_and_its_alert(watcher: Watcher, page: tuple[Browser, str], deb13: Node) -> None:
    deb13.run("inferctl drain main --reason test")
    try:
        wait_for("the drain is in Prometheus", lambda: ("InstanceDrained", deb13.name) in watcher.fired(), 60)
        browser = open_page(watcher, page)
        verdicts = {row["node"]: row["verdict"] for row in browser.table("#instances")}
        assert verdicts[deb13.name] == "healthy, drained"
        alerts = [(row["severity"], row["alert"], row["node"]) for row in browser.table("#alerts")]
        assert ("info", "InstanceDrained", deb13.name) in alerts
    finally:
        deb13.run("inferctl undrain main")
    wait_for("the drain has ended", lambda: ("InstanceDrained", deb13.name) not in watcher.fired(), 60)
    shown = {row["node"]: row["verdict"] for row in open_page(watcher, page).table("#instances")}
    assert shown[deb13.name] == "healthy"
