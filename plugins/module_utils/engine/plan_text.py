# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan for people. Private to the collection."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from ..models.fit.misfit import in_words
from .changes import NOTHING, START, Change

VERDICTS = {True: "fits", False: "does not fit", None: "unknown whether it fits"}

_WIDTH = 10
"""Characters of the column with the headings."""

_RARE = ("draft", "adapters")


def render(plans: Sequence[Mapping[str, Any]]) -> str:
    """All plans, one below the other."""
    return "\n\n".join("\n".join(_lines(one)) for one in plans)


def of_node(
    plans: Sequence[Mapping[str, Any]],
    problems: Sequence[Mapping[str, Any]],
    warned: Sequence[str],
    orphans: Sequence[str],
) -> str:
    """All plans of a node, and the problems, warnings and orphans of the node as a whole."""
    lines = [*_misfits(problems)]
    lines += [_row("warning", text) for text in warned]
    lines += [_row("orphan", f"{name} is on the node, but not in the inventory") for name in orphans]
    shown = render(plans) if plans else "no instance that can be planned"
    return "\n".join([shown, "", "this node:", *lines]) if lines else shown


def refusal(plans: Sequence[Mapping[str, Any]], problems: Sequence[Mapping[str, Any]]) -> str:
    """Why engines must not start: the misfits of these plans, and the problems of the node as a whole; else empty."""
    blocks = [[*_heading(one), *_estimate(one["estimate"]), *_misfits(one["problems"])] for one in plans]
    blocks += [["this node:", *_misfits(problems)]] if problems else []
    return "\n".join(line for block in blocks for line in block)


def _lines(plan: Mapping[str, Any]) -> Iterator[str]:
    yield from _heading(plan)
    if plan["argv"]:
        yield _row("command", shlex.join(plan["argv"]))
    yield from _estimate(plan["estimate"])
    if plan["change"]:
        change = Change.from_dict(plan["change"])
        yield _row("change", _change(change))
        yield from (_row("", line) for line in change.differences)
    yield from _misfits(plan["problems"])
    yield from (_row("unknown", text) for text in plan["unknown"])
    yield from (_row("note", text) for text in plan["notes"])


def _heading(plan: Mapping[str, Any]) -> Iterator[str]:
    yield f"{plan['instance'] or plan['model']}: {VERDICTS[plan['ok']]}"
    yield _row("model", f"{plan['model']}, revision {plan['revision'] or 'not known yet'}")
    yield _row("runs on", _hardware(plan))


def _misfits(problems: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for problem in problems:
        value = "" if problem["value"] is None else f" {problem['value']!r}:"
        yield _row("PROBLEM", f"{problem['key']}:{value} {problem['message']}")
        if problem["fits"]:
            yield _row("", f"would fit: {in_words(problem['fits'])}")


def _row(heading: str, text: str) -> str:
    return f"  {heading:{_WIDTH}}{text}".rstrip()


def _hardware(plan: Mapping[str, Any]) -> str:
    names = [(len([*same]), name) for name, same in groupby(device["name"] for device in plan["devices"])]
    devices = " and ".join(f"{count} x {name}" if count > 1 else name for count, name in names) or "no GPU"
    here = f"{devices} (GPU {', '.join(plan['gpus'])})" if plan["gpus"] else devices
    return f"{here} on each of {plan['nodes']} nodes" if plan.get("nodes", 1) > 1 else here


def _estimate(estimate: Mapping[str, Any]) -> Iterator[str]:
    """The parts of the estimate that are known. GiB are those of the GPU with the most data."""
    names = {"weights": "weights_gib", "draft": "draft_gib", "adapters": "adapters_gib", "overhead": "overhead_gib"}
    names |= {"KV cache": "kv_cache_gib", "spare": "spare_gib"}
    # Most instances have no draft and no adapters: the row names only those that exist.
    parts = [(name, estimate.get(key)) for name, key in names.items() if estimate.get(key) or name not in _RARE]
    sizes = [f"{name} {size:.2f} GiB" for name, size in parts if size is not None]
    if sizes:
        yield _row("estimate", ", ".join(sizes))
    if estimate["max_concurrency"] is not None:
        yield _row("at once", f"{estimate['max_concurrency']:g} requests of {estimate['max_model_len']} tokens")


def _change(change: Change) -> str:
    active, desired = change.active, change.desired
    wanted = "a new release" if desired is None else f"release {desired}"
    if change.action == NOTHING:
        return f"nothing: release {active} runs"
    if change.action == START:
        before = "" if active in (None, desired) else f", in place of release {active}"
        return f"does not run: baremetal.inference.site starts {wanted}{before}"
    return f"release {active} runs, {wanted} is pending: run baremetal.inference.update_model to swap to it"
