# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What configuration classes declare, with classes that the test makes up."""

from __future__ import annotations

from typing import Any, ClassVar

import engine_classes
import pytest


class Text:
    """A part as the engine has it."""

    model_type = "step"

    def __init__(self, max_seq_len: int = 4096) -> None:
        self.max_seq_len = max_seq_len


class OwnText:
    """The same part as its owner has it."""

    model_type = "step"

    def __init__(self, max_position_embeddings: int = 128000) -> None:
        self.max_position_embeddings = max_position_embeddings


class Owner:
    model_type = "owner"
    sub_configs: ClassVar[dict[str, Any]] = {"text_config": OwnText, "vision_config": Text, "any_config": "AutoConfig"}


KNOWN = {"step": Text, "owner": Owner}


def test_a_part_with_a_class_of_its_own_is_found() -> None:
    assert engine_classes.own_parts(Owner, KNOWN) == {"text_config": OwnText}
    assert engine_classes.own_parts(Text, KNOWN) == {}


def test_it_has_a_row_of_its_own_which_names_its_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_classes, "classes", lambda: KNOWN)
    monkeypatch.setattr(engine_classes, "served", lambda: {"owner"})
    found = engine_classes.describe()
    assert set(found) == {"owner", "step", "owner/text_config"}
    assert found["owner"]["parts"] == {"text_config": "owner/text_config", "vision_config": "step"}
    assert found["owner/text_config"]["values"] == {"max_position_embeddings": 128000, "model_type": "step"}
    assert found["step"]["values"] == {"max_seq_len": 4096}
