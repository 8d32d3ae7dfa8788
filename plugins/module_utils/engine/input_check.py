# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistakes in the role vllm's input that the checks of model registry, instances and settings do not find. Private
to the collection."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core.controller import ON_CONTROLLER
from ..core.problems import Problem
from ..models.config import tasks
from ..models.config.facts import gather
from ..models.registry import golden, keyless, routing
from ..models.registry.entries import Entry
from ..store import stored, variants
from ..store.sources.source import load_sources
from . import adapters, agent_service
from .gang import executors
from .inventory import present_instances
from .served import served_models
from .settings import BY_DIGEST

ROLE = "role vllm"


def image_problems(image: str) -> list[Problem]:
    """The mistake of an image that is not named by its digest: a tag may mean another image on each node."""
    if BY_DIGEST.fullmatch(image):
        return []
    message = (
        "(site variable engine_image) must name the image by digest, REPOSITORY@sha256: and 64 hexadecimal digits, so "
        "that every node runs the same bytes: `docker buildx imagetools inspect IMAGE:TAG`, or the web page of the "
        "image registry, shows the digest"
    )
    return [Problem(ROLE, message, "vllm_image", image)]


def source_problems(models: Mapping[str, Any], instances: Sequence[Any]) -> list[Problem]:
    """Mistakes in the sources of the models that instances need. The store finds them, too, but in a later check: here,
    they are reported with all other mistakes of the model registry. The check of entries reports a missing source."""
    entries = {name: entry for name, entry in models.items() if isinstance(name, str) and isinstance(entry, Mapping)}
    needed = served_models(entries, instances)
    return load_sources({name: entry for name, entry in needed.items() if str(entry.get("model") or "").strip()})[1]


def agent_problems(address: str, port: int, pid: int, instances: Sequence[Any]) -> list[Problem]:
    """Why the agent cannot listen on this address and port. `pid`: the running agent, which may listen there.

    Raises OSError where /proc cannot be read.
    """
    found = []
    keys = ("port", "bridge_port", "gang_port", "rendezvous_port")
    declared = [raw for raw in present_instances(instances) if isinstance(raw, Mapping)]
    if any(port in [raw.get(key) for key in keys] or port in executors.ports(raw) for raw in declared):
        message = (
            "(site variable inference_agent_port) is the port of an instance as well: give one of the two another port"
        )
        found.append(Problem(ROLE, message, "vllm_agent_port", port))
    if problem := agent_service.problem_with(address, port, pid):
        message = f"(site variable inference_address) the agent cannot listen: {problem}"
        found.append(Problem(ROLE, message, "vllm_agent_address", address))
    return found


def prompt_problems(entries: Iterable[Entry], store: Path) -> list[Problem]:
    """Why models of this node cannot have the system prompts of their entries. Raises OSError.

    Models on the controller are checked there. A missing model is reported by the check of models.
    """
    found = []
    for entry in entries:
        if entry.system_prompt is not None and not entry.model.startswith(ON_CONTROLLER):
            files = stored.find(store, entry).files
            found += variants.check_model(entry, files) if files is not None and files.is_dir() else []
    return found


def golden_problems(
    entries: Iterable[Entry], adapters_of: Callable[[str], Iterable[Entry]], store: Path
) -> list[Problem]:
    """Golden prompts of models and their adapters that this node cannot ask. Raises OSError.

    The plan checks the golden prompts of a model that is not in the store yet.
    """
    found = []
    for entry in entries:
        asked = [one for one in (entry, *adapters_of(entry.name)) if one.golden_prompts]
        files = stored.find(store, entry).files if asked else None
        if files is not None and files.is_dir():
            known = tasks.certain(gather(files), entry.flags)
            found += [
                Problem(f"models.{one.name}", message, golden.KEY, prompt)
                for one in asked
                for prompt, message in wrong_golden(one, known)
            ]
    return found


def wrong_golden(entry: Entry, known: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each golden prompt of an entry that the node cannot ask, with the mistake: the prompt is for another task, or its
    file is not there. `known`: the model's tasks; empty if unknown.
    """
    yield from golden.wrong_tasks(entry.golden_prompts, known)
    for path in (item["audio"] for item in entry.golden_prompts if "audio" in item):
        if problem := _unreadable(Path(path)):
            yield path, f"is a golden prompt, and on this node the file {problem}"


def _unreadable(path: Path) -> str:
    """Why a file cannot be sent to the engine; empty if it can."""
    try:
        size = path.stat().st_size if path.is_file() else 0
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if not size:
        if path.is_file():
            return "is empty"
        return "is no regular file" if path.exists() else "does not exist: copy the file to each node of this model"
    most = adapters.get().audio_mib
    if size > most << 20:
        return f"has {size / 2**20:.1f} MiB, and the engine reads at most {most} MiB: use a shorter recording"
    return ""


def routing_problems(entries: Iterable[Entry], models: Mapping[str, Any], store: Path) -> list[Problem]:
    """Affinity keys that no request to a model has. Raises OSError.

    The plan checks the affinity keys of a model that is not in the store yet.
    """
    found = []
    for entry in entries:
        files = stored.find(store, entry).files if routing.of(models, entry.name) else None
        if files is not None and files.is_dir():
            message = keyless.mistake(models, entry.name, tasks.certain(gather(files), entry.flags))
            found += [Problem(f"models.{entry.name}", message, routing.KEY)] if message else []
    return found
