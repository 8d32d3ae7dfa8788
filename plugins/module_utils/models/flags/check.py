# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks the engine flags of an entry with a catalogue, and renders them. Private to the collection."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ...core.problems import Findings, did_you_mean
from ..fit import flags as sizes
from . import objects, values
from .catalogue import Catalogue
from .meant import MEANT, may_hold_secret, near

_HTTP = "remove the flag: gateways and probes use the HTTP API"
_TLS = "configure TLS at the gateway: probes speak plain HTTP to the engine"
_NODES = "set nodes, gang_port and rendezvous_port of the instance: they decide how engines on several nodes connect"
_RANKS = (
    "write data-parallel-size for ranks on one node. For each further node, declare an instance of the same name: the "
    "gateway balances between them"
)
_ADAPTERS = "write an entry with base and adapter for each LoRA adapter"

OWNED_FLAGS: Mapping[str, str] = {
    "host": "set inference_address of the node",
    "port": "set port of the instance",
    "uds": "set inference_address of the node and port of the instance",
    "grpc": _HTTP,
    "grpc-port": _HTTP,
    "root-path": "remove the flag: probes send their requests to paths below /",
    "api-key": "set vllm_api_key",
    "served-model-name": "set name of the instance. Clients use this name, or the name of the entry",
    "tokenizer-revision": "write revision",
    "code-revision": "write revision",
    "download-dir": "remove the flag: engines are offline, and load models from the store",
    "hf-token": "set HF_TOKEN in vllm_secret_environment",
    "shutdown-timeout": "set vllm_drain_timeout",
    "ssl-keyfile": _TLS,
    "ssl-certfile": _TLS,
    "ssl-ca-certs": _TLS,
    "ssl-cert-reqs": _TLS,
    "ssl-ciphers": _TLS,
    "enable-ssl-refresh": _TLS,
    "config": "write each flag as a key of the entry itself",
    "enable-lora": _ADAPTERS,
    "lora-modules": _ADAPTERS,
    "device-ids": "set gpus of the instance",
    "headless": _NODES,
    "nnodes": _NODES,
    "node-rank": _NODES,
    "master-addr": _NODES,
    "master-port": _NODES,
    "data-parallel-address": _RANKS,
    "data-parallel-rpc-port": _RANKS,
    "data-parallel-rank": _RANKS,
    "data-parallel-start-rank": _RANKS,
    "data-parallel-external-lb": _RANKS,
    "data-parallel-hybrid-lb": _RANKS,
    "data-parallel-multi-port-external-lb": _RANKS,
    "data-parallel-supervisor-port": _RANKS,
}
"""Flags that an entry must not have, each with the advice of its message: the role or another variable decides them, or
they would stop probes and gateways from reaching the engine."""

QUANTIZATIONS = frozenset(
    {
        *("auto_awq", "auto_gptq", "awq", "awq_marlin", "compressed-tensors", "deepseek_v4_fp8", "experts_int8"),
        *("fbgemm_fp8", "fp8", "fp8_per_block", "fp8_per_channel", "fp8_per_tensor", "fp_quant", "gptq"),
        *("gptq_marlin", "gpt_oss_mxfp4", "humming", "inc", "int8_per_channel_weight_only", "modelopt"),
        *("modelopt_fp4", "modelopt_mixed", "modelopt_mxfp8", "moe_wna16", "mxfp4", "mxfp8", "nvfp4_per_token"),
        *("online", "quark", "torchao"),
    }
)
"""Values of the flag `quantization` (QuantizationMethods in vllm/model_executor/layers/quantization/__init__.py). The
engine's parser takes any text."""

_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def check(where: str, flags: Mapping[str, Any], catalogue: Catalogue, own_keys: Iterable[str], found: Findings) -> None:
    """Add the first mistake of each flag of an entry. `own_keys` are the collection's own keys, for hints on misspelt
    keys."""
    known = {*catalogue.flags, *own_keys} - set(OWNED_FLAGS)
    for name, value in flags.items():
        if owned := _owned(name, catalogue):
            # Without the value, which may be a key or a token.
            found.problem(where, f"is not allowed here: {OWNED_FLAGS[owned]}", name)
        elif spelling := _spelling(name, value, catalogue, known):
            found.problem(where, spelling, name, None if may_hold_secret(_kebab(name)) else value)
        else:
            _check_flag(where, name, value, catalogue, known, found)


def _check_flag(where: str, name: str, value: Any, catalogue: Catalogue, known: Iterable[str], found: Findings) -> None:
    """Add the mistakes of a flag whose name has the right form."""
    flag = catalogue.flag(name)
    # An engine of another version may have more flags and values, so they are only warnings. The engine itself refuses
    # wrong ones.
    doubt = found.problem if catalogue.exact else found.warning
    shown = None if name not in catalogue.flags and may_hold_secret(name) else value
    if name in MEANT and name not in catalogue.flags:
        # A key that belongs elsewhere is wrong in every version and with every value.
        found.problem(where, _unknown(name, catalogue, known), name, shown)
    elif name not in catalogue.flags and catalogue.exact:
        found.problem(where, _unknown(name, catalogue, known), name, shown)
    elif mistake := values.mistake(flag, value):
        found.problem(where, mistake, name, shown)
    elif outside := sizes.mistake(name, value):
        found.problem(where, outside, name, value)
    elif name not in catalogue.flags:
        found.warning(where, _unknown(name, catalogue, known), name, shown)
    elif name == "quantization" and value is not None and str(value).lower() not in QUANTIZATIONS:
        hint = did_you_mean(str(value), QUANTIZATIONS)
        doubt(where, f"must be one of {', '.join(sorted(QUANTIZATIONS))}{hint and f'; {hint}'}", name, value)
    elif other := objects.no_object(name, value):
        found.problem(where, other, name, value)
    elif strange := objects.unknown(name, value) or objects.unlisted(name, value):
        # The keys and values of one version are known. Those of another version are a guess.
        sure = catalogue.exact and catalogue.version == objects.VERSION
        (found.problem if sure else found.warning)(where, strange, name, value)
    elif unlisted := values.unlisted(flag, value):
        doubt(where, f"{unlisted}{catalogue.guess}", name, value)
    elif unfamiliar := values.unfamiliar(flag, value):
        found.warning(where, unfamiliar, name, value)
    if flag.deprecated is not None:
        removed = f", to be removed in {flag.deprecated['removed']}" if "removed" in flag.deprecated else ""
        instead = f": use {flag.deprecated['use']}" if "use" in flag.deprecated else ": remove it"
        found.warning(where, f"is deprecated in vLLM {catalogue.version}{removed}{instead}", name, value)


def arguments(flags: Mapping[str, Any], catalogue: Catalogue) -> list[str]:
    """The engine's arguments, sorted by flag so that the same entry always gives the same arguments."""
    return [part for name in sorted(flags) for part in values.arguments(catalogue.flag(name), flags[name])]


def _kebab(name: str) -> str:
    return name.strip().lstrip("-").replace("_", "-").lower()


def _owned(name: str, catalogue: Catalogue) -> str:
    """The owned flag that a key means in any spelling; empty if it means none."""
    kebab = _kebab(name)
    names = (kebab, catalogue.aliases.get(kebab), catalogue.inverse.get(kebab))
    return next((owned for owned in names if owned and owned in OWNED_FLAGS), "")


def _spelling(name: str, value: Any, catalogue: Catalogue, known: Iterable[str]) -> str:
    """The mistake in the spelling of a key, with the right one; empty if the key could be a flag."""
    kebab = _kebab(name)
    head, dot, rest = kebab.partition(".")
    if name in known:
        return ""
    if kebab in known:
        return f"is not the spelling of the flag: write {kebab!r}"
    if kebab in catalogue.aliases:
        return f"is another name of a flag: write {catalogue.aliases[kebab]!r}"
    if kebab in catalogue.inverse:
        return f"is the opposite of a flag: write {catalogue.inverse[kebab]}: {str(value is False).lower()}"
    if dot and head in catalogue.flags:
        return f"is a part of a flag: write {head} as a dictionary, with {rest} in it"
    if _NAME.fullmatch(name):
        return ""
    if kebab in MEANT and kebab not in catalogue.flags:
        return _unknown(kebab, catalogue, known)
    # Only if the engine's version is known, and differs from the catalogue's, can the engine have this flag.
    written = _NAME.fullmatch(kebab) and not catalogue.exact
    return f"is not in kebab-case: write {kebab!r}" if written else _unknown(kebab, catalogue, known)


def _unknown(name: str, catalogue: Catalogue, known: Iterable[str]) -> str:
    hint = MEANT.get(name) or near(name, known) or "`vllm serve --help=all` lists the flags"
    # A key that belongs elsewhere is wrong in every version.
    guess = "" if name in MEANT else catalogue.guess
    return f"is neither a key of the model registry nor a flag of vLLM {catalogue.version}{guess}: {hint}"
