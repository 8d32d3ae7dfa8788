# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Transcriptions and translations by a speech model, with the official client, through the gateway."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from openai import OpenAI
from talk import sound

ANSWER = "I am tiny-speech."


@pytest.mark.parametrize("name", ["speech", "tiny-speech"])
def test_speech_becomes_text(client: OpenAI, name: str) -> None:
    answer = client.audio.transcriptions.create(model=name, file=sound(), language="en", temperature=0)
    assert answer.text.strip() == ANSWER


def test_speech_is_translated(client: OpenAI) -> None:
    answer = client.audio.translations.create(model="speech", file=sound(), temperature=0)
    assert answer.text.strip() == ANSWER


def test_a_transcription_can_be_a_stream(client: OpenAI) -> None:
    text = ""
    for event in client.audio.transcriptions.create(
        model="speech", file=sound(), language="en", temperature=0, stream=True
    ):
        # vLLM sends the parts in the form of chats.
        choices: Any = event.to_dict().get("choices", [])
        text += "".join(choice["delta"].get("content") or "" for choice in choices)
    assert text.strip() == ANSWER


def test_a_file_that_is_no_sound_is_refused(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError):
        client.audio.transcriptions.create(model="speech", file=("talk.wav", b"no sound"), language="en")
