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
from .meant import MAY_HOLD_SECRETS, MEANT, near

_TLS = "TLS at the gateway; the node's own probe speaks plain HTTP"
_NODES = "the instance's nodes, gang_port and rendezvous_port, which decide how engines of several nodes connect,"
_RANKS = (
    "data-parallel-size for ranks on one node, and an instance of the same name on each further node, between which "
    "the gateway balances,"
)
_ADAPTERS = "an entry with base and adapter for each LoRA adapter"

OWNED_FLAGS: Mapping[str, str] = {
    "host": "inference_address",
    "port": "the instance's port",
    "uds": "inference_address and the instance's port",
    "grpc": "the HTTP API, which the gateway and the node's own probe speak",
    "grpc-port": "the HTTP API, which the gateway and the node's own probe speak",
    "root-path": "the gateway; the node's own probe asks below /",
    "api-key": "vllm_api_key",
    "served-model-name": "the instance's name, beside which the model's own name is served,",
    "tokenizer-revision": "revision",
    "code-revision": "revision",
    "download-dir": "the model store; engines are offline",
    "hf-token": "HF_TOKEN in vllm_secret_environment",
    "shutdown-timeout": "vllm_drain_timeout",
    "ssl-keyfile": _TLS,
    "ssl-certfile": _TLS,
    "ssl-ca-certs": _TLS,
    "ssl-cert-reqs": _TLS,
    "ssl-ciphers": _TLS,
    "enable-ssl-refresh": _TLS,
    "config": "the keys of the registry entry themselves",
    "enable-lora": _ADAPTERS,
    "lora-modules": _ADAPTERS,
    "device-ids": "the instance's gpus",
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
"""Flags that the role sets itself, or that would stop probes and gateway from reaching the engine, and what to use
instead."""

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

_NAME = re.compile(r"^[a-z0-9]+(?:-[a-z0-9]+)*$")


def check(where: str, flags: Mapping[str, Any], catalogue: Catalogue, own_keys: Iterable[str], found: Findings) -> None:
    """Add every mistake in an entry's flags. `own_keys` are the registry's own keys, for hints about misspelt keys."""
    known = {*catalogue.flags, *own_keys} - set(OWNED_FLAGS)
    for name, value in flags.items():
        if owned := _owned(name, catalogue):
            # Without the value, which may be a key or a token.
            found.problem(where, f"is set by the role: use {OWNED_FLAGS[owned]} instead", name)
        elif spelling := _spelling(name, value, catalogue, known):
            found.problem(where, spelling, name, None if _kebab(name) in MAY_HOLD_SECRETS else value)
        else:
            _check_flag(where, name, value, catalogue, known, found)


def _check_flag(where: str, name: str, value: Any, catalogue: Catalogue, known: Iterable[str], found: Findings) -> None:
    """Add the mistakes of a flag whose name has the right form."""
    flag = catalogue.flag(name)
    # An engine of another version may have more flags and values, so they are only warnings. The engine itself refuses
    # wrong ones.
    doubt = found.problem if catalogue.exact else found.warning
    if name in MEANT and name not in catalogue.flags:
        # A key that belongs elsewhere is wrong in every version and with every value.
        found.problem(where, _unknown(name, catalogue, known), name, None if name in MAY_HOLD_SECRETS else value)
    elif name not in catalogue.flags and catalogue.exact:
        found.problem(where, _unknown(name, catalogue, known), name, value)
    elif mistake := values.mistake(flag, value):
        found.problem(where, mistake, name, value)
    elif outside := sizes.mistake(name, value):
        found.problem(where, outside, name, value)
    elif name not in catalogue.flags:
        found.warning(where, _unknown(name, catalogue, known), name, value)
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
        return f"is not written as the engine's flags are: write {kebab!r}"
    if kebab in catalogue.aliases:
        return f"is another name of a flag: write {catalogue.aliases[kebab]!r}"
    if kebab in catalogue.inverse:
        return f"is the opposite of a flag: write {catalogue.inverse[kebab]}: {str(value is False).lower()}"
    if dot and head in catalogue.flags:
        return f"is a part of a flag: write {head} as a dictionary, with {rest} in it"
    if _NAME.match(name):
        return ""
    if kebab in MEANT and kebab not in catalogue.flags:
        return _unknown(kebab, catalogue, known)
    # Only if the engine's version is known, and differs from the catalogue's, can the engine have this flag.
    written = _NAME.match(kebab) and not catalogue.exact
    return f"is not in kebab-case: write {kebab!r}" if written else _unknown(kebab, catalogue, known)


def _unknown(name: str, catalogue: Catalogue, known: Iterable[str]) -> str:
    hint = MEANT.get(name) or near(name, known) or "`vllm serve --help=all` lists the flags"
    # A key that belongs elsewhere is wrong in every version.
    guess = "" if name in MEANT else catalogue.guess
    return f"is neither a key of the registry nor a flag of vLLM {catalogue.version}{guess}: {hint}"
