# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
# Its libraries are the engine image's, not the test tools'.
# mypy: disable-error-code="import-not-found"
"""Trains LoRA adapters of a tiny model, and writes them in the form of PEFT, which is not in the engine's image."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

RANK = 16
ALPHA = 32
TARGETS = ("q_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


class Adapted(torch.nn.Module):
    """A linear layer, whose weights stay, plus a product of two small matrices, which learn."""

    def __init__(self, base: torch.nn.Linear) -> None:
        super().__init__()
        self.base = base
        self.down = torch.nn.Parameter(torch.randn(RANK, base.in_features) / RANK)
        self.up = torch.nn.Parameter(torch.zeros(base.out_features, RANK))

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        added: torch.Tensor = given @ self.down.T @ self.up.T * (ALPHA / RANK)
        learned: torch.Tensor = self.base(given) + added
        return learned


def adapt(model: Any) -> dict[str, Adapted]:
    """Put an adapter beside each target of a model. Returns the adapters by the name of their layer."""
    for parameter in model.parameters():
        parameter.requires_grad = False
    found = {}
    for name, layer in list(model.named_modules()):
        parent, _dot, last = name.rpartition(".")
        if last in TARGETS:
            found[name] = Adapted(layer)
            setattr(model.get_submodule(parent), last, found[name])
    return found


def parameters(adapters: dict[str, Adapted]) -> list[torch.nn.Parameter]:
    """What learns."""
    return [parameter for each in adapters.values() for parameter in (each.down, each.up)]


def save(adapters: dict[str, Adapted], target: Path, base: str) -> None:
    """Write an adapter's files as PEFT writes them: adapter_config.json and adapter_model.safetensors."""
    target.mkdir(parents=True)
    weights = {}
    for name, adapter in adapters.items():
        weights[f"base_model.model.{name}.lora_A.weight"] = adapter.down.detach().contiguous()
        weights[f"base_model.model.{name}.lora_B.weight"] = adapter.up.detach().contiguous()
    save_file(weights, target / "adapter_model.safetensors", metadata={"format": "pt"})
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base,
        "r": RANK,
        "lora_alpha": ALPHA,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": list(TARGETS),
    }
    (target / "adapter_config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
