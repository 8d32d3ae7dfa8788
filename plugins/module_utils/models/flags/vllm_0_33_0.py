# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The flags of `vllm serve` 0.33.0 that differ from those of 0.32.0. Private to the collection.

Made by `make catalogue`: do not edit. versions.py says what the tables mean, catalogue.py what the keys mean.
"""

from __future__ import annotations

from typing import Any

VERSION = "0.33.0"

ADDED: dict[str, dict[str, Any]] = {
    "monokernel": {"negatable": True, "type": "switch"},
    "reasoning-effort-map": {"type": "json"},
    "sleep-mode-backend": {"type": "text"},
    "watchdog-config": {"type": "object"},
}

REMOVED: tuple[str, ...] = ()

CHANGED: dict[str, dict[str, Any]] = {
    "disable-cascade-attn": {"inverse": ["enable-cascade-attn"]},
    "disable-chunked-mm-input": {"inverse": ["enable-chunked-mm-input"]},
    "disable-custom-all-reduce": {"inverse": ["enable-custom-all-reduce"]},
    "disable-fastapi-docs": {"inverse": ["enable-fastapi-docs"]},
    "disable-hybrid-kv-cache-manager": {"inverse": ["enable-hybrid-kv-cache-manager"]},
    "disable-nccl-for-dp-synchronization": {"inverse": ["enable-nccl-for-dp-synchronization"]},
    "disable-sliding-window": {"inverse": ["enable-sliding-window"]},
    "disable-uvicorn-access-log": {"inverse": ["enable-uvicorn-access-log"]},
    "enable-auto-tool-choice": {"inverse": ["disable-auto-tool-choice"]},
    "enable-batch-sharded-sampling": {"inverse": ["disable-batch-sharded-sampling"]},
    "enable-chunked-prefill": {"inverse": ["disable-chunked-prefill"]},
    "enable-cumem-allocator": {"inverse": ["disable-cumem-allocator"]},
    "enable-dbo": {"inverse": ["disable-dbo"]},
    "enable-elastic-ep": {"inverse": ["disable-elastic-ep"]},
    "enable-ep-weight-filter": {"inverse": ["disable-ep-weight-filter"]},
    "enable-eplb": {"inverse": ["disable-eplb"]},
    "enable-expert-parallel": {"inverse": ["disable-expert-parallel"]},
    "enable-fault-tolerance": {"inverse": ["disable-fault-tolerance"]},
    "enable-flash-late-interaction": {"inverse": ["disable-flash-late-interaction"]},
    "enable-flashinfer-autotune": {"inverse": ["disable-flashinfer-autotune"]},
    "enable-force-include-usage": {"inverse": ["disable-force-include-usage"]},
    "enable-hc-sp": {"inverse": ["disable-hc-sp"]},
    "enable-layerwise-nvtx-tracing": {"inverse": ["disable-layerwise-nvtx-tracing"]},
    "enable-log-deltas": {"inverse": ["disable-log-deltas"]},
    "enable-log-outputs": {"inverse": ["disable-log-outputs"]},
    "enable-log-requests": {"inverse": ["disable-log-requests"]},
    "enable-logging-iteration-details": {"inverse": ["disable-logging-iteration-details"]},
    "enable-lora": {"inverse": ["disable-lora"]},
    "enable-mamba-cache-stochastic-rounding": {"inverse": ["disable-mamba-cache-stochastic-rounding"]},
    "enable-mamba-shared-prefix-checkpoint": {"inverse": ["disable-mamba-shared-prefix-checkpoint"]},
    "enable-mfu-metrics": {"inverse": ["disable-mfu-metrics"]},
    "enable-mixed-moe-lora-format": {"inverse": ["disable-mixed-moe-lora-format"]},
    "enable-mm-embeds": {"inverse": ["disable-mm-embeds"]},
    "enable-moe-shared-loras": {"inverse": ["disable-moe-shared-loras"]},
    "enable-nccl-comm-suspend": {"inverse": ["disable-nccl-comm-suspend"]},
    "enable-offline-docs": {"inverse": ["disable-offline-docs"]},
    "enable-per-request-metrics": {"inverse": ["disable-per-request-metrics"]},
    "enable-prefix-caching": {"inverse": ["disable-prefix-caching"]},
    "enable-prompt-embeds": {"inverse": ["disable-prompt-embeds"]},
    "enable-prompt-tokens-details": {"inverse": ["disable-prompt-tokens-details"]},
    "enable-request-id-headers": {"inverse": ["disable-request-id-headers"]},
    "enable-return-routed-experts": {"inverse": ["disable-return-routed-experts"]},
    "enable-scale-out": {"inverse": ["disable-scale-out"]},
    "enable-server-load-tracking": {"inverse": ["disable-server-load-tracking"]},
    "enable-shm-tensor-arena": {"inverse": ["disable-shm-tensor-arena"]},
    "enable-sleep-mode": {"inverse": ["disable-sleep-mode"]},
    "enable-ssl-refresh": {"inverse": ["disable-ssl-refresh"]},
    "enable-tokenizer-info-endpoint": {"inverse": ["disable-tokenizer-info-endpoint"]},
    "enable-tower-connector-lora": {"inverse": ["disable-tower-connector-lora"]},
    "enable-trace-replay": {"inverse": ["disable-trace-replay"]},
    "kv-cache-dtype": {
        "choices": None,
        "suggested": [
            "auto",
            "bfloat16",
            "float16",
            "fp8",
            "fp8_ds_mla",
            "fp8_e4m3",
            "fp8_e5m2",
            "fp8_inc",
            "fp8_per_token_head",
            "int4_per_token_head",
            "int8_per_token_head",
            "nvfp4",
            "nvfp4_4over6",
            "nvfp4_ds_mla",
            "octave_k3v3",
            "octave_k3v3_compact",
            "octave_k3v4",
            "turboquant_3bit_nc",
            "turboquant_4bit_nc",
            "turboquant_k3v4_nc",
            "turboquant_k8v4",
            "ultraquant_4bit",
        ],
    },
    "mamba-cache-mode": {"deprecated": {"removed": "0.33.0"}},
    "tool-strict-level": {"optional": True},
}
"""The facts that differ; None where 0.33.0 no longer has a fact."""

ADDED_VALUES: dict[str, dict[str, list[Any]]] = {
    "gdn-prefill-backend": {"choices": ["sycl"]},
    "moe-backend": {"choices": ["aiter_triton_mxfp4_mxfp4"]},
    "spec-method": {"choices": ["step5_mtp"]},
    "tokenizer-mode": {"suggested": ["alpamayo2_super"]},
    "tool-call-parser": {"suggested": ["beam", "muse", "musespark1x", "step5"]},
}

REMOVED_VALUES: dict[str, dict[str, list[Any]]] = {
    "spec-method": {"choices": ["medusa", "mlp_speculator"]},
}
