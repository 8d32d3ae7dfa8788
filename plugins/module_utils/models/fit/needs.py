# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Computes the GPUs that the entries of a model registry need, without any node. Private to the collection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...core.problems import Problem
from ..config.computed import compute
from ..config.facts import ModelFacts
from ..flags.catalogue import choose
from ..registry import drafts
from ..registry.entries import Entry, read
from . import over_nodes
from .devices import Device, hypothetical
from .fit import fit
from .flags import read as read_flags
from .overhead import GIB
from .proposal import MEMORY, propose

SERVERS = ("L4", "L40S", "RTX-PRO-6000-Server", "A100-80GB", "H100-80GB", "H200", "B200", "B300")
"""Common GPUs of servers, from small to large, for which the need is computed if no GPUs are named."""

COUNTS = (1, 2, 4, 8)
"""Numbers of GPUs of a node that are tried."""

UNREAD = "only the files of a model from a hub, or in a directory of the controller, can be read"

WITHOUT_RDMA, WITH_RDMA = "without RDMA", "with RDMA"

_WIDTH = 10
"""Width of the column of headings, in characters."""


TO_CORRECT = "to correct:"
"""The line above the mistakes of a model registry."""


def needs(
    models: Any,
    facts: Mapping[str, Mapping[str, Any]],
    gpus: str = "",
    nodes: int = 1,
    *,
    unknown: Mapping[str, str] | None = None,
    wrong: Sequence[Problem] = (),
) -> str:
    """A text with each entry of a model registry except adapters, its size, and the GPUs that it needs, or whether it
    fits `gpus`.

    `facts` and `unknown` are from the module model_facts, by the name of the entry with the weights: facts, and reasons
    why there are none. `wrong` are mistakes in the sources of models. With `nodes`, a model is divided over this number
    of nodes, each with `gpus`. Raises ValueError for unknown GPUs, for a wrong number of nodes, and for
    several nodes without GPUs.
    """
    if nodes != 1 and (not gpus or not 1 < nodes <= over_nodes.MOST_NODES):
        most = over_nodes.MOST_NODES
        raise ValueError(f"nodes is {nodes}: it must be 1 to {most}, and more than 1 needs gpus, the GPUs of each node")
    named = hypothetical(gpus) if gpus else None
    registry = read(models, choose())
    blocks = []
    for name, entry in registry.entries.items():
        if entry.adapter_of:
            # Its base needs the GPUs.
            continue
        draft = registry.entries.get(drafts.named(entry.flags) or "")
        draft_facts = facts.get(draft.store_name) if draft else None
        known = facts.get(entry.store_name)
        if known is None:
            reason = (unknown or {}).get(entry.store_name, "")
            lines = iter([_row("unknown", f"the model: {reason or UNREAD}")])
        else:
            lines = _model(entry, known, named, _facts(draft_facts) if draft_facts else None, nodes)
        blocks.append("\n".join([f"{name}: {entry.model}", *lines]))
    if mistakes := [*registry.problems, *wrong]:
        blocks.append("\n".join([TO_CORRECT, *(_row("PROBLEM", str(one)) for one in mistakes)]))
    return "\n\n".join(blocks) or "the model registry has no model"


def _facts(values: Mapping[str, Any]) -> ModelFacts:
    """The facts. Without files, the weights are computed: before a model is fetched, config.json is enough."""
    facts = ModelFacts.from_dict(values)
    computed = compute(facts.config) if facts.weights is None else None
    return replace(facts, weights=computed, problems=()) if computed else facts


def _model(
    entry: Entry,
    values: Mapping[str, Any],
    named: Sequence[Device] | None,
    draft: ModelFacts | None,
    nodes: int,
) -> Iterator[str]:
    facts = _facts(values)
    yield from _sizes(facts, entry)
    if facts.problems or facts.weights is None:
        yield from (_row("PROBLEM", f"{one.file or 'directory'}: {one.message}") for one in facts.problems)
        if facts.weights is None:
            yield _row(
                "unknown",
                f"GPUs: the configuration of a {facts.config.model_type} model does not show the size of its weights",
            )
    elif named is None:
        yield from _needs(facts, entry, draft)
    elif nodes > 1:
        for has_rdma, network in ((False, WITHOUT_RDMA), (True, WITH_RDMA)):
            yield from _fits_nodes(facts, entry, named, draft, nodes, network, has_rdma=has_rdma)
    else:
        yield from _fits(facts, entry, named, draft)


def _needs(facts: ModelFacts, entry: Entry, draft: ModelFacts | None) -> Iterator[str]:
    """Lines with the sufficient GPUs. If none are sufficient for sure, lines with the reasons for the largest GPUs."""
    found = [line for product in SERVERS if (line := _enough(facts, entry, product, draft))]
    for number, line in enumerate(found):
        yield _row("or" if number else "needs", line)
    if found:
        return
    devices = hypothetical(f"{COUNTS[-1]}x{SERVERS[-1]}")
    proposed = propose(facts, entry.flags, devices, draft=draft)
    answer = fit(facts, {**entry.flags, **proposed}, devices, draft=draft)
    if any(one.check in MEMORY for one in answer.misfits):
        yield _row("needs", f"more than {COUNTS[-1]} x {SERVERS[-1]}")
    yield from (_row("PROBLEM", str(one)) for one in answer.misfits if one.check not in MEMORY)
    yield from (_row("unknown", one) for one in answer.unknown)


def _fits(facts: ModelFacts, entry: Entry, named: Sequence[Device], draft: ModelFacts | None) -> Iterator[str]:
    """Lines about whether a model fits named GPUs, with its misfits."""
    proposed = propose(facts, entry.flags, named, draft=draft)
    answer = fit(facts, {**entry.flags, **proposed}, named, draft=draft)
    verdict = {True: "yes", False: "no", None: "unknown"}[answer.ok]
    yield _row("fits", f"{verdict}{_with(proposed)}")
    yield from (_row("PROBLEM", str(one)) for one in answer.misfits)
    yield from (_row("unknown", one) for one in answer.unknown)


def _fits_nodes(
    facts: ModelFacts,
    entry: Entry,
    named: Sequence[Device],
    draft: ModelFacts | None,
    nodes: int,
    network: str,
    *,
    has_rdma: bool,
) -> Iterator[str]:
    """Lines about whether a model fits nodes with named GPUs, and how to divide the model."""
    found = over_nodes.propose(facts, entry.flags, named, nodes, network, has_rdma=has_rdma, draft=draft)
    verdict = "no" if found.misfits else "unknown" if found.unknown else "yes"
    yield _row("fits", f"{network}: {verdict}{_with(found.flags)}")
    yield from (_row("PROBLEM", str(one)) for one in found.misfits)
    yield from (_row("unknown", one) for one in found.unknown)
    yield from (_row("because", reason) for reason in found.reasons)


def _enough(facts: ModelFacts, entry: Entry, product: str, draft: ModelFacts | None) -> str:
    """The smallest sufficient number of GPUs of a product; empty if no number in COUNTS is sufficient for sure."""
    for count in COUNTS:
        devices = hypothetical(f"{count}x{product}")
        proposed = propose(facts, entry.flags, devices, draft=draft)
        if fit(facts, {**entry.flags, **proposed}, devices, draft=draft).ok:
            return f"{count} x {product}{_with(proposed)}"
    return ""


def _sizes(facts: ModelFacts, entry: Entry) -> Iterator[str]:
    """A line with the size of the model and the longest request."""
    length = read_flags(entry.flags)[0].max_model_len or facts.config.default_length
    weights = f"{facts.weights.bytes / GIB:.1f} GiB of weights" if facts.weights else "weights of unknown size"
    yield _row("size", f"{weights}, requests up to {length or 'an unknown number of'} tokens")


def _with(flags: Mapping[str, int]) -> str:
    return f" ({', '.join(f'{flag}: {size}' for flag, size in flags.items())})" if flags else ""


def _row(heading: str, text: str) -> str:
    return f"  {heading:<{_WIDTH}}{text}"
