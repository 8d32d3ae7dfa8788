# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file that a speech model transcribes."""

from __future__ import annotations

import io
import wave

RATE = 16000


def sound(seconds: float = 1.0) -> tuple[str, bytes]:
    """Name and content of a WAV file with `seconds` of silence."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(RATE)
        writer.writeframes(bytes(2 * int(RATE * seconds)))
    return "talk.wav", file.getvalue()
