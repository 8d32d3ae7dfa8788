# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sends the warm-up prompts of a model to an engine that has just loaded. Private to the collection.

The supervisor sends them before it reports the engine as ready: at a start, in a swap, and after recovery alike.
"""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...core.sizes import counted
from ...models.registry.warm_up import MESSAGES, PROMPT, TOKENS
from ..adapters.contract import GENERATE, Body, json_body
from . import probe
from .probe import Target, Verdict, WrongAnswer

_REPEATED = (408, 425, 429)
"""The statuses from 400 to 499 after which the same prompt may succeed later."""


def run(target: Target, prompts: Sequence[Mapping[str, Any]], progress: Callable[[str], None]) -> tuple[Verdict, float]:
    """Send all prompts in order. Returns a verdict, and the seconds that the prompts took.

    The caller uses the verdict as that of the whole probe.

    `progress` gets what is under way, in words. probe.REQUEST_TIMEOUT limits each read of an answer.
    """
    began = time.monotonic()
    for number, prompt in enumerate(prompts, 1):
        place = f"warm-up prompt {number} of {len(prompts)}"
        progress(place)
        try:
            _send(target, prompt)
        except WrongAnswer as error:
            final = 400 <= error.status < 500 and error.status not in _REPEATED
            return Verdict(False, f"{place}: {error}", final), time.monotonic() - began
        except (OSError, http.client.HTTPException) as error:
            message = f"{place}: no answer on {target}: {str(error) or type(error).__name__}"
            return Verdict(False, message), time.monotonic() - began
    return Verdict(True, f"warmed up by {counted(len(prompts), 'prompt')}"), time.monotonic() - began


def _send(target: Target, prompt: Mapping[str, Any]) -> None:
    """Raises WrongAnswer, OSError and HTTPException."""
    model, path = target.served_names[0], target.request.path
    if target.task != GENERATE and MESSAGES in prompt:
        message = f"has {MESSAGES}, and this model's task is {target.task}: write {PROMPT}"
        raise WrongAnswer(message, http.HTTPStatus.BAD_REQUEST)
    if target.task != GENERATE:
        body = target.request.body(model, prompt[PROMPT])
        probe.judge(probe.ask(target, "POST", path, body, probe.REQUEST_TIMEOUT), target)
        return
    if MESSAGES in prompt:
        path = target.adapter.chat_path
    answer = probe.ask(target, "POST", path, _generation(model, prompt), probe.REQUEST_TIMEOUT)
    if not answer.get("choices"):
        raise WrongAnswer(f"{path} answers without a choice")


def _generation(model: str, prompt: Mapping[str, Any]) -> Body:
    given = {MESSAGES: prompt[MESSAGES]} if MESSAGES in prompt else {"prompt": prompt[PROMPT]}
    return json_body(model=model, max_tokens=prompt.get(TOKENS, 1), temperature=0, **given)
