# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The probe of a start: has this engine answered the smallest request of its task? Private to the collection.

The engine's health path answers 200 while its worker hangs, and an older process may still have the port. Only an
answer that the engine has computed, from the process that was just started, counts.
"""

from __future__ import annotations

import http.client
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...core.addresses import in_url
from .. import adapters, environment
from ..adapters.contract import GENERATE, Adapter, Body, Request
from ..listeners import PROC, ownership
from ..release import Release

CONNECT_TIMEOUT = 5.0
"""Seconds for an answer that needs no GPU work."""

REQUEST_TIMEOUT = 300.0
"""Seconds for the smallest request. The first one may compile kernels; a CPU under load needs 20 s."""

_BODY_SHOWN = 200
"""Characters of a wrong answer that are shown."""


@dataclass(frozen=True)
class Target:
    """The engine to probe, and the names that it must serve."""

    address: str
    port: int
    served_names: list[str]
    api_key: str = ""
    adapter: Adapter = field(default=adapters.get(), repr=False)
    task: str = GENERATE
    """The task that the engine is asked for."""
    lora_names: tuple[str, ...] = ()
    """The LoRA adapters that the engine must serve in addition to its model."""

    @property
    def request(self) -> Request:
        """The request that makes the engine compute."""
        return self.adapter.requests[self.task]

    @property
    def connect_address(self) -> str:
        """The address to connect to: for an engine on all interfaces, the loopback."""
        return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.address, self.address)

    def __str__(self) -> str:
        return f"{in_url(self.address)}:{self.port}"


@dataclass(frozen=True)
class Verdict:
    """The result of one probe. `message` says what is still missing, or what was wrong. `final`: a further probe would
    say the same."""

    ready: bool
    message: str
    final: bool = False


class WrongAnswer(Exception):
    """The engine, or another process on its port, gave a wrong answer; `status` is the HTTP status."""

    def __init__(self, message: str, status: int = 200) -> None:
        self.status = status
        super().__init__(message)


def target(release: Release, variables: Mapping[str, str], task: str = GENERATE) -> Target:
    """The engine that runs a release; `variables` is its environment, `task` the task that it is asked for."""
    key = environment.api_key(variables)
    return Target(release.address, release.port, release.served_names, key, release.adapter, task, tuple(release.lora))


def check(target: Target, init_pid: int, proc: Path = PROC) -> Verdict:
    """Probe an engine whose container's first process is init_pid.

    The engine's list of models may take CONNECT_TIMEOUT. Then the model and each adapter may take REQUEST_TIMEOUT.
    """
    try:
        owner = ownership(target.port, target.connect_address, init_pid, proc)
        if owner.strangers:
            who = ", ".join(str(process) for process in owner.strangers)
            return Verdict(False, f"port {target.port} is taken by another process: {who}: stop it")
        if owner.unknown:
            return Verdict(False, f"port {target.port} is taken by a process that cannot be found in /proc")
        if not owner.ours:
            return Verdict(False, f"the engine does not listen on {target} yet")
        _check_models(target)
        _check_request(target)
    except WrongAnswer as error:
        return Verdict(False, str(error))
    except (OSError, http.client.HTTPException) as error:
        return Verdict(False, f"no answer on {target}: {str(error) or type(error).__name__}")
    return Verdict(True, f"answered {target.request.noun}")


def _check_models(target: Target) -> None:
    """Raise WrongAnswer unless every served name is listed."""
    path = target.adapter.models_path
    answer = ask(target, "GET", path, timeout=CONNECT_TIMEOUT)
    models = answer.get("data")
    listed = [item.get("id") for item in models if isinstance(item, dict)] if isinstance(models, list) else []
    missing = [name for name in (*target.served_names, *target.lora_names) if name not in listed]
    if missing:
        raise WrongAnswer(f"{path} lacks {', '.join(missing)}; it lists {', '.join(map(str, listed)) or 'nothing'}")


def _check_request(target: Target) -> None:
    """Raise WrongAnswer unless the model and each adapter compute an answer."""
    for name in (target.served_names[0], *target.lora_names):
        body = request_body(target, name)
        judge(ask(target, "POST", target.request.path, body, REQUEST_TIMEOUT), target, lora_name=name)


def request_body(target: Target, model: str) -> Body:
    """The body of the target's smallest request.

    The text begins with random characters, so that neither a prefix cache nor a proxy can answer.
    """
    return target.request.body(model, f"{uuid.uuid4().hex[:12]} probe")


def judge(answer: dict[str, Any], target: Target, lora_name: str = "") -> None:
    """Raise WrongAnswer unless `answer` is right for the target's smallest request: to the model, or to the adapter
    `lora_name`.

    An engine names itself by the first of its names, whichever name was in the request, and answers 404 to a name that
    it does not have. Source: model_name of OpenAIServingModels in vLLM.
    """
    path = target.request.path
    # Under the name of an adapter, an engine answers with that name.
    names = [lora_name] if lora_name in target.lora_names else target.served_names
    if target.request.names_model and answer.get("model") not in names:
        expected = " or ".join(map(repr, names))
        raise WrongAnswer(f"{path} answers for model {answer.get('model')!r} instead of {expected}")
    if mistake := target.request.mistake(answer):
        raise WrongAnswer(f"{path} {mistake}: {json.dumps(answer)[:_BODY_SHOWN]}")


def decode(path: str, status: int, body: bytes) -> dict[str, Any]:
    """The JSON object of an answer. Raises WrongAnswer for another status than 200, or another body."""
    text = body.decode(errors="replace")
    if status != http.HTTPStatus.OK:
        shown = " ".join(text.split())[:_BODY_SHOWN] or "empty body"
        raise WrongAnswer(f"{path} answers HTTP {status}: {shown}", status)
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise WrongAnswer(f"{path} answers no JSON object: {' '.join(text.split())[:_BODY_SHOWN]}")
    return answer


def headers(target: Target, body: Body | None = None) -> dict[str, str]:
    """The headers of a request to an engine."""
    known = {} if body is None else {"Content-Type": body.content_type}
    if target.api_key:
        known["Authorization"] = f"Bearer {target.api_key}"
    return known


def ask(
    target: Target, method: str, path: str, body: Body | None = None, timeout: float = CONNECT_TIMEOUT
) -> dict[str, Any]:
    """One request. `timeout` limits each read, in seconds.

    Raises WrongAnswer for another status than 200 or another answer than a JSON object, OSError and HTTPException.
    """
    connection = http.client.HTTPConnection(target.connect_address, target.port, timeout=CONNECT_TIMEOUT)
    try:
        connection.connect()
        connection.sock.settimeout(timeout)
        connection.request(method, path, body.data if body else None, headers(target, body))
        response = connection.getresponse()
        return decode(path, response.status, response.read())
    finally:
        connection.close()
