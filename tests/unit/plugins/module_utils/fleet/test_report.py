# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet as a screen and as a page, from what nodes tell, and from nodes that tell nothing."""

from __future__ import annotations

import copy
import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.fleet import page, screen
from ansible_collections.baremetal.inference.plugins.module_utils.fleet.report import BAD, GOOD, NONE, POOR, ago, read

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


BACKUP = {
    "since": "2026-03-01T12:00:00Z",
    "interval": 86400,
    "succeeded": "2026-05-01T03:00:00Z",
    "ok": True,
    "error": "",
}


def instance(name: str = "main", **changes: Any) -> dict[str, Any]:
    told = {
        "name": name,
        "state": "serving",
        "serving": True,
        "desired": True,
        "pending": False,
        "since": "2026-04-29T12:00:00Z",
        "model": "tiny-a",
        "revision": "ab12cd34ef56",
        "image": "registry.example.org/vllm@sha256:" + "ab" * 32,
        "release": {"desired": 3, "wanted": 3, "active": 3, "current": 3},
        "gpus": ["0", "1"],
        "probe": {"verdict": "healthy", "since": "2026-04-29T12:00:00Z", "stale": False},
        "drain": None,
        "problems": [],
    }
    return {**told, **changes}


def node(*instances: dict[str, Any], **changes: Any) -> dict[str, Any]:
    told = {
        "schema": 1,
        "time": "2026-05-01T12:00:00Z",
        "system": {"debian": "12.9", "kernel": "6.1.0-30-amd64", "reboot_required": False},
        "instances": list(instances),
        "gpus": {
            "present": 4,
            "reported": 4,
            "models": ["NVIDIA H200"],
            "memory_total_mib": 4 * 143771,
            "memory_used_mib": 200000,
            "hottest_c": 61,
            "power_w": 1400,
            "driver": "580.95.05",
            "error": "",
        },
        "doctor": {"verdict": "ok", "problems": []},
        "lock": None,
        "updated": "2026-04-28T12:00:00Z",
        "backup": BACKUP,
        "errors": {},
    }
    return {**copy.deepcopy(told), **changes}


DRAIN = {"owner": "ada@ops", "reason": "new fan", "since": "2026-05-01T10:00:00Z", "until": None}

FLEET = {
    "gpu1": node(instance(), instance("side", gpus=["2"], drain=DRAIN)),
    "gpu2": node(
        instance(
            pending=True,
            release={"desired": 4, "wanted": 4, "active": 3, "current": 3},
            probe={"verdict": "hung", "since": "2026-05-01T11:59:20Z", "stale": False},
            model="tiny-b",
        ),
        system={"debian": "13.1", "kernel": "6.12.0", "reboot_required": True},
        doctor={"verdict": "fail", "problems": ["fail: gpu-count: 3 of 4"]},
        backup=None,
        updated=None,
        lock={
            "run_id": "1",
            "user": "bob",
            "host": "ops",
            "playbook": "update-model.yml",
            "since": "2026-05-01T11:00:00Z",
            "until": "",
            "stale": True,
        },
    ),
    "gpu3": {"unreachable": True, "msg": "Failed to connect to the host via ssh:\n no route"},
    "gpu4": {"failed": True, "msg": "sudo: a password is required"},
}


def lines(told: dict[str, Any], width: int = screen.WIDTH) -> list[str]:
    return screen.render(read(told, NOW), width)


def test_the_screen_says_it_in_a_row() -> None:
    told = lines(FLEET)
    assert told[0] == "2 nodes, 3 instances, 8 GPUs, 2 healthy, 1 hung, 1 drained, 2 UNREACHABLE"
    rows = {tuple(line.split()[:2]): line for line in told}
    assert re.search(r"main +tiny-a +3 +healthy +2d +4 61°C +ok +3d +9h$", rows["gpu1", "main"])
    assert "healthy (D)" in rows["side", "tiny-a"]
    assert re.search(r"tiny-b +3\* +HUNG +40s +4 61°C +FAIL +- +none$", rows["gpu2", "main"])
    text = "\n".join(told)
    for words in (
        "gpu3: UNREACHABLE: Failed to connect to the host via ssh: no route",
        "gpu4: UNREACHABLE: sudo: a password is required",
        "gpu1: side is drained by ada@ops, until undrained: new fan",
        "gpu2: main: release 4 is pending: update-model.yml rolls it out",
        "gpu2: update-model.yml has left its lock (by bob on ops, since 2026-05-01T11:00:00Z)",
        "gpu2: a reboot is due",
        "gpu2: doctor: fail: gpu-count: 3 of 4",
    ):
        assert words in text


@pytest.mark.parametrize("length", [5, 80])
def test_no_line_is_too_wide(length: int) -> None:
    """Names of any length: the widest columns give way, and the numbers stay."""
    name = "n" * length
    problems = {"verdict": "warn", "problems": ["warn: docker-cdi: " + "x" * 300]}
    told = {f"gpu.{name}": node(instance(name, model=name), doctor=problems)}
    shown = lines(told)
    assert max(map(len, shown)) <= screen.WIDTH
    assert any("healthy" in line and "9h" in line for line in shown)


def test_a_fleet_in_trouble_keeps_its_table() -> None:
    problems = {"verdict": "fail", "problems": [f"fail: check-{number}: bad" for number in range(200)]}
    shown = lines({"gpu1": node(instance(), doctor=problems)})
    assert len(shown) < 50 and shown[-1].startswith("and 160 more: ")


def test_what_a_node_cannot_tell() -> None:
    """Nothing breaks, and what is not known does not look well."""
    blind = node(instances=None, system=None, gpus=None, doctor=None, backup=None, updated=None, errors={"gpus": "hm"})
    fleet = read({"gpu1": blind, "gpu2": {}}, NOW)
    assert fleet.nodes[0].doctor.tone == POOR and fleet.unreachable == {"gpu2": "gave no answer"}
    assert "gpu1: gpus cannot be told: hm" in screen.render(fleet)
    assert "gpu1" in page.render(fleet)


def test_an_instance_that_nobody_probes() -> None:
    told = node(
        instance(probe=None, serving=False, state="failed"),
        instance("old", probe={"verdict": "healthy", "since": "2026-05-01T11:00:00Z", "stale": True}),
    )
    first, second = read({"gpu1": told}, NOW).nodes[0].instances
    assert (first.verdict.text, first.verdict.tone) == ("failed", BAD)
    assert (second.verdict.text, second.verdict.tone, second.serving) == ("stale", POOR, False)


@pytest.mark.parametrize(
    ("told", "text", "tone"),
    [
        ({}, "9h", GOOD),
        ({"ok": False}, "9h, failed", BAD),
        ({"succeeded": None, "ok": False}, "never, failed", BAD),
        # When one is overdue follows from its schedule, as with the alert BackupOld.
        ({"succeeded": "2026-04-28T12:00:00Z"}, "3d", POOR),
        ({"succeeded": "2026-04-28T12:00:00Z", "interval": None}, "3d", POOR),
        ({"succeeded": "2026-04-28T12:00:00Z", "interval": 604800}, "3d", GOOD),
        ({"succeeded": "2026-04-22T12:00:00Z", "interval": 604800}, "9d", POOR),
        ({"succeeded": "2026-04-30T10:00:00Z", "interval": 3600}, "1d", POOR),
        ({"succeeded": "2026-03-01T12:00:00Z", "interval": 0}, "61d", GOOD),
        # The first one is being made, or waits for its time; then it is overdue.
        ({"succeeded": None, "ok": None, "since": "2026-04-30T12:00:00Z"}, "never", NONE),
        ({"succeeded": None, "ok": None, "since": "2026-04-29T11:00:00Z"}, "never", POOR),
        ({"succeeded": None, "ok": None, "interval": 0}, "never", NONE),
        ({"succeeded": None, "ok": None, "since": None}, "never", NONE),
    ],
)
def test_backups(told: dict[str, Any], text: str, tone: str) -> None:
    word = read({"a": node(backup={**BACKUP, **told})}, NOW).nodes[0].backup
    assert (word.text, word.tone) == (text, tone)


def test_ago() -> None:
    for seconds, text in ((0, "0s"), (59, "59s"), (61, "1m"), (7200, "2h"), (86400 * 3.9, "3d"), (-50, "0s")):
        assert ago(NOW, datetime.fromtimestamp(NOW.timestamp() - seconds, UTC)) == text


class Page(HTMLParser):
    """Whether tags are closed, and what is loaded from elsewhere."""

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


def parsed(told: dict[str, Any]) -> Page:
    html = page.render(read(told, NOW))
    assert "url(" not in html and "@import" not in html
    result = Page()
    result.feed(html)
    assert result.open == [] and result.foreign == []
    return result


def test_the_page_stands_alone_and_tells_all() -> None:
    text = parsed(FLEET).text
    assert "2 of 4 nodes answered, 2026-05-01 12:00 UTC" in text
    for words in ("gpu3", "sudo: a password is required", "HUNG".lower(), "3, another pending", "2 of 4 serve"):
        assert words in text
    # Kernel, Debian and the model differ between the two; driver and GPUs do not.
    differ = text.partition("Versions that differ")[2].partition("Last updates")[0]
    assert "6.12.0" in differ and "main: model" in differ and "580.95.05" not in differ and "NVIDIA H200" not in differ


def test_the_page_escapes_what_it_shows() -> None:
    text = '<script>alert(1)</script>&"'
    drain = {**DRAIN, "reason": text}
    told = {f"gpu{text}": node(instance(text, drain=drain, model=text)), "b": {"msg": text}}
    assert "alert(1)" in parsed(told).text


def test_an_empty_fleet() -> None:
    assert lines({})[0] == "0 nodes, 0 instances, 0 GPUs"
    assert "0 of 0 nodes answered" in parsed({}).text
