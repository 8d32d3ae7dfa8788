# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hints for wrong keys of an entry for which the nearest flag would be misleading. Private to the collection."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from ...core.problems import names_secret

_OVERRIDES = "write it as hf-overrides: {%s: …}, which changes the model's config.json"
_INSTANCE = "set it in the instance, an item of instances"
_GPUS = "set gpus in the instance, an item of instances; tensor-parallel-size divides the model over them"
_ENVIRONMENT = (
    "set environment or secret_environment in the instance, an item of instances; or vllm_environment, or "
    "vllm_secret_environment, for all engines of a node"
)
_OWN = "set %s in the instance, an item of instances; or %s, for all engines of a node"
_HERE = "write each flag as a key of the entry itself, without its dashes"
_SOURCE = "write it as model: a hub id, a path on the node, controller:/path, or the URL of an archive"
_DRAFT = "write it in speculative-config: {model: ENTRY, num_speculative_tokens: 3}, where ENTRY is another entry"
_REQUEST = "write override-generation-config: {…}, the values for requests that do not set them"
_PARALLEL = "write tensor-parallel-size, the number of GPUs that share each layer"
_SHARE = "write gpu-memory-utilization, a share of each GPU from 0 to 1"
_BATCH = "write max-num-seqs for the requests of a step, or max-num-batched-tokens for its tokens"

MEANT: Mapping[str, str] = {
    **dict.fromkeys(("rope-scaling", "rope-parameters", "rope-theta", "yarn", "rope"), _OVERRIDES % "rope_parameters"),
    "max-position-embeddings": _OVERRIDES % "max_position_embeddings",
    "sliding-window": _OVERRIDES % "sliding_window",
    **dict.fromkeys(("gpus", "gpu", "accelerator", "bridge-port", "state"), _INSTANCE),
    **dict.fromkeys(("num-gpus", "gpu-count", "gpu-ids", "devices", "device", "cuda-visible-devices"), _GPUS),
    **dict.fromkeys(("node", "nodes", "host-name"), "set model in an item of instances, in host_vars of the node"),
    **dict.fromkeys(("replicas", "instances"), "write an item of instances for each engine, all with the same model"),
    "image": _OWN % ("image", "engine_image"),
    **dict.fromkeys(("env", "environment", "secret-environment"), _ENVIRONMENT),
    **dict.fromkeys(("memory", "memory-limit", "mem-limit"), _OWN % ("memory", "vllm_memory")),
    **dict.fromkeys(("shm", "shm-size"), _OWN % ("shm_size", "vllm_shm_size")),
    **dict.fromkeys(("args", "extra-args", "flags", "command", "engine-args", "vllm-args", "model-args"), _HERE),
    **dict.fromkeys(
        (
            *("source", "repo", "repository", "hub", "hub-id", "path", "url", "model-path", "uri"),
            *("model-id", "model-name", "model-url", "hf", "hf-repo", "hf-model", "hf-id", "huggingface", "repo-id"),
        ),
        _SOURCE,
    ),
    **dict.fromkeys(("tag", "commit", "branch", "version"), "write revision, a commit of the hub"),
    **dict.fromkeys(("sha256", "digest", "hash"), "write checksum: sha256:…, of an archive"),
    "name": "the key of the entry is its name; clients see the instance's name as well",
    "task": "remove it: the engine reads the task from the model. runner: pooling is for vectors, scores and classes",
    **dict.fromkeys(
        (
            *("context", "context-length", "max-context-length", "context-window", "ctx-size", "n-ctx", "max-seq-len"),
            *("max-total-tokens", "max-sequence-length"),
        ),
        "write max-model-len",
    ),
    **dict.fromkeys(("tp-size", "tensor-parallel", "num-shard", "tensor-split"), _PARALLEL),
    **dict.fromkeys(("pp-size", "pipeline-parallel"), "write pipeline-parallel-size, the number of stages"),
    **dict.fromkeys(("dp-size", "data-parallel"), "write data-parallel-size, the number of copies of the layers"),
    "quantize": "write quantization, or remove it: the engine reads the model's config.json",
    **dict.fromkeys(("draft", "draft-model", "speculative-model", "num-speculative-tokens", "mtp"), _DRAFT),
    **dict.fromkeys(("temperature", "top-p", "top-k", "max-tokens", "repetition-penalty"), _REQUEST),
    **dict.fromkeys(
        ("batch-size", "max-batch-size", "max-concurrent-requests", "max-concurrency", "max-running-requests"), _BATCH
    ),
    **dict.fromkeys(("user", "ulimits"), "set it in the instance, an item of instances"),
    **dict.fromkeys(("enable-reasoning", "reasoning", "thinking"), "write reasoning-parser, as the model's card says"),
    **dict.fromkeys(
        ("lora", "loras", "adapters", "lora-adapters"),
        "write an entry with base and adapter for each LoRA adapter; the engine's flags follow",
    ),
    **dict.fromkeys(("gpu-memory", "gpu-memory-fraction", "mem-fraction-static", "cuda-memory-fraction"), _SHARE),
    "swap-space": "remove it: this version has no swap space. kv-offloading-size keeps KV cache in host memory",
}
"""Wrong keys that operators often use, and what to use instead."""

MAY_HOLD_SECRETS = frozenset(name for name, hint in MEANT.items() if hint in (_ENVIRONMENT, _HERE))
"""Wrong keys whose values no message shows: variables and command lines may have a token in them."""

CLOSE = 0.75
"""Least similarity of two names (difflib), about one wrong letter in four."""

PART = 4
"""Least number of letters of a key that is a part of a flag's name."""


def may_hold_secret(name: str) -> bool:
    """Whether no message may show the value of a wrong key. `name` is in kebab-case."""
    return name in MAY_HOLD_SECRETS or names_secret(name)


def near(name: str, known: Iterable[str]) -> str:
    """A hint for a wrong key: a similar name, or the shortest name of which the key is a part; else empty. Less similar
    names would be misleading."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=CLOSE)
    close = close or sorted((one for one in names if len(name) >= PART and name in one), key=len)[:1]
    return f"did you mean {close[0]!r}?" if close else ""
