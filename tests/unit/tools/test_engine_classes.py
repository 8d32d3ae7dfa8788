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
    """The same part as the class Owner has it."""

    model_type = "step"

    def __init__(self, max_position_embeddings: int = 128000) -> None:
        self.max_position_embeddings = max_position_embeddings


class Owner:
    model_type = "owner"
    sub_configs: ClassVar[dict[str, Any]] = {"text_config": OwnText, "vision_config": Text, "any_config": "AutoConfig"}


KNOWN = {"step": Text, "owner": Owner}


class Small:
    """A part whose class computes the size of a head."""

    model_type = "small"

    def __init__(self, hidden_size: int = 64, layers: int = 2, head_dim: int = 0, model_type: str = "small") -> None:
        self.hidden_size, self.layers, self.head_dim = hidden_size, layers, head_dim or hidden_size // 4

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "model_type": self.model_type}


class Giver:
    """An owner that changes values of a given part, and makes a part with other values if none is given."""

    model_type = "giver"

    def __init__(self, text_config: Any = None) -> None:
        self.text_config = Small(**{"layers": 7, "head_dim": 16, **(text_config or {"hidden_size": 96})})

    def get_text_config(self) -> Any:
        return self.text_config


def test_a_part_with_a_class_of_its_own_is_found() -> None:
    assert engine_classes.own_parts(Owner, KNOWN) == {"text_config": OwnText}
    assert engine_classes.own_parts(Text, KNOWN) == {}


def test_a_part_with_a_class_of_its_own_has_a_row_with_its_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_classes, "classes", lambda: KNOWN)
    monkeypatch.setattr(engine_classes, "served", lambda: ({"owner"}, set()))
    found = engine_classes.describe()
    assert set(found) == {"owner", "step", "owner/text_config"}
    assert found["owner"]["parts"] == {"text_config": "owner/text_config", "vision_config": "step"}
    assert found["owner/text_config"]["values"] == {"max_position_embeddings": 128000, "model_type": "step"}
    assert found["step"]["values"] == {"max_seq_len": 4096}


def test_a_language_part_of_a_type_that_no_list_has_is_found() -> None:
    assert engine_classes.own_parts(Giver, {"giver": Giver}) == {"text_config": Small}
    assert engine_classes.own_parts(Giver, {"giver": Giver, "small": Small}) == {}


def test_an_owner_may_give_values_to_its_part() -> None:
    lacking, missing = engine_classes.filled(Giver, "text_config", Small)
    assert lacking == {"layers": 7, "head_dim": 16}
    assert missing == {"hidden_size": 96, "head_dim": 16}
    assert engine_classes.filled(Owner, "vision_config", Text) == ({}, {})


def test_types_that_run_only_with_transformers_code_are_adopted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_classes, "classes", lambda: {**KNOWN, "giver": Giver, "small": Small})
    monkeypatch.setattr(engine_classes, "served", lambda: ({"owner"}, {"giver", "step"}))
    found = engine_classes.describe()
    # The engine itself runs the type `owner`, and so its part, the type `step`.
    assert {name: kind["adopted"] for name, kind in found.items()} == {
        **dict.fromkeys(("owner", "step", "owner/text_config"), False),
        **dict.fromkeys(("giver", "small"), True),
    }
    assert found["giver"]["lacking"] == {"text_config": {"layers": 7, "head_dim": 16}}
