# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The engine vLLM. Private to the collection; data and pure functions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...models.fit import flags
from ...models.flags import variables
from .contract import Adapter, ArgumentCheck, ConfigFile, Gangs, Metrics, Rank, Serving, Stop, Variables
from .vllm_log import LOG
from .vllm_paths import PATH_FLAGS
from .vllm_ray import SECRET as RAY_SECRET
from .vllm_ray import executor as ray
from .vllm_requests import PATHS, QUESTIONS, REQUESTS, transcription


def _model_argv(path: str, names: Sequence[str]) -> list[str]:
    return ["serve", path, *(["--served-model-name", *names] if names else [])]


def _server_argv(serving: Serving) -> list[str]:
    return [
        *("--host", serving.address, "--port", str(serving.port)),
        *("--shutdown-timeout", str(serving.drain_timeout)),
    ]


def _adapter_flags(entry: Mapping[str, Any], paths: Mapping[str, str], rank: int) -> dict[str, Any]:
    # An earlier check refuses a rank above the highest value.
    least = next((each for each in ADAPTER_RANKS if each >= rank), ADAPTER_RANKS[-1])
    given = {flag: value for flag, value in entry.items() if value is not None}
    return {
        "max-loras": len(paths),
        ADAPTER_RANK: least,
        **given,
        "enable-lora": True,
        "lora-modules": [f"{name}={path}" for name, path in paths.items()],
    }


def _environment(serving: Serving) -> dict[str, str]:
    return {
        "VLLM_NO_USAGE_STATS": "1",
        # 5 s is the engine's default, but only an explicit value gives the workers this grace on SIGTERM.
        "VLLM_WORKER_SHUTDOWN_TIMEOUT_SECONDS": "5",
        "VLLM_ENGINE_READY_TIMEOUT_S": str(serving.start_timeout),
        "VLLM_CACHE_ROOT": serving.cache_path,
    }


_EXECUTOR = "distributed-executor-backend"
_ADDRESS = "VLLM_HOST_IP"
_API_KEY = "VLLM_API_KEY"

_PER_NODE = frozenset(
    {
        *(_ADDRESS, "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "TP_SOCKET_IFNAME"),
        *("NCCL_IB_HCA", "NCCL_IB_GID_INDEX", "UCX_NET_DEVICES"),
        *("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "VLLM_CPU_OMP_THREADS_BIND", "VLLM_CPU_KVCACHE_SPACE"),
    }
)

_OF_RAY = ("RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", RAY_SECRET)


def _rank_argv(rank: Rank) -> list[str]:
    """The arguments of an engine that starts its own processes on several nodes.

    A member without an API serves only its part of the model.
    """
    return [
        *(f"--{_EXECUTOR}", "mp"),
        *("--nnodes", str(rank.nodes), "--node-rank", str(rank.number)),
        *("--master-addr", rank.leader, "--master-port", str(rank.port)),
        *(["--headless"] if rank.number else []),
    ]


def _rank_environment(rank: Rank) -> dict[str, str]:
    """The variables of a member. Without its address, an engine takes the address of the default route."""
    # vLLM's own limit is 300 s: a leader whose network is cut would answer /health for that long.
    return {_ADDRESS: rank.address, **rank.network, "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS": "120"}


def _claimed_share(entry: Mapping[str, Any]) -> float:
    """The value of --gpu-memory-utilization, also with a KV cache of a given size.

    Source: request_memory in vLLM 0.32.0, vllm/v1/worker/utils.py.
    """
    return flags.read(entry)[0].gpu_memory_utilization


ADAPTER_RANK = "max-lora-rank"
ADAPTER_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""MaxLoRARanks in vllm/config/lora.py of vLLM 0.32.0."""

_SECONDS = 300
"""The longest time of a check of the arguments. Measured: 10 s on an idle machine, 50 s while two engines load."""

_UNKNOWN_PLACE = 64
"""Exit code where a version of vLLM has its parser in another place."""

_QUESTION = f"""
import importlib, signal, sys
from importlib.util import find_spec

signal.alarm({_SECONDS})
# The parser looks at the command line itself.
sys.argv = ["vllm", *sys.argv[1:]]
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.utils.argparse_utils import FlexibleArgumentParser

# The parser is in `common` from vLLM 0.33 on, and in `launchers` in 0.32.
places = [f"vllm.entrypoints.{{name}}" for name in ("common", "launchers")]
place = next((place for place in places if find_spec(place) and find_spec(f"{{place}}.cli_args")), None)
if place is None:
    sys.exit({_UNKNOWN_PLACE})
cli = importlib.import_module(f"{{place}}.cli_args")
arguments = cli.make_arg_parser(FlexibleArgumentParser()).parse_args(sys.argv[2:])
cli.validate_parsed_serve_args(arguments)
arguments.model = arguments.model_tag or arguments.model
AsyncEngineArgs.from_cli_args(arguments).create_engine_config()

# In 0.32 and before, only the server checks the names of parsers. A plugin can add names.
plugins = [getattr(arguments, f"{{kind}}_parser_plugin", None) for kind in ("tool", "reasoning")]
for name in (f"{{place}}.launcher", "vllm.entrypoints.openai.api_server"):
    check = find_spec(name) and getattr(importlib.import_module(name), "validate_api_server_args", None)
    if check and not any(plugins):
        check(arguments)
        break
"""

ADAPTER = Adapter(
    name="vllm",
    title="vLLM",
    program="vllm",
    package="vllm",
    health_path="/health",
    models_path="/v1/models",
    chat_path="/v1/chat/completions",
    exact_tokens={"ignore_eos": True},
    model_argv=_model_argv,
    server_argv=_server_argv,
    adapter_flags=_adapter_flags,
    adapter_rank=ADAPTER_RANK,
    adapter_ranks=ADAPTER_RANKS,
    environment=_environment,
    variables=Variables(
        api_key=_API_KEY,
        public=frozenset({"VLLM_CACHE_ROOT", "VLLM_CONFIG_ROOT", "RAY_AUTH_TOKEN_PATH"}),
        deciding=(variables.CPU_CACHE, variables.LONGER),
        # ParallelConfig in vllm/config/parallel.py reads these variables if an entry has no data-parallel-size.
        ranks=frozenset(f"VLLM_DP_{name}" for name in ("SIZE", "RANK", "RANK_LOCAL", "MASTER_IP", "MASTER_PORT")),
    ),
    gangs=Gangs(
        argv=_rank_argv,
        flags=frozenset({_EXECUTOR}),
        environment=_rank_environment,
        computed={_ADDRESS: "inference_fabric_address", **dict.fromkeys(_OF_RAY, "executor and gang_key")},
        per_node=_PER_NODE | {*_OF_RAY},
        executor="mp",
        executors={"ray": ray({*_PER_NODE, _API_KEY})},
    ),
    # There is no variable for several keys.
    config_file=ConfigFile(flag="--config", api_keys="api-key"),
    requests=REQUESTS,
    questions=QUESTIONS,
    transcription=transcription,
    # The default of VLLM_MAX_AUDIO_CLIP_FILESIZE_MB in vllm/envs.py of vLLM 0.32.
    audio_mib=25,
    paths=PATHS,
    # Source: vllm/v1/metrics/loggers.py of vLLM 0.33, measured.
    metrics=Metrics(
        path="/metrics",
        started="process_start_time_seconds",
        progress=frozenset(
            {
                "vllm:generation_tokens_total",
                "vllm:prompt_tokens_total",
                "vllm:iteration_tokens_total_count",
                # A lone long prefill moves no counter before its first token, but fills the cache with every step.
                "vllm:kv_cache_usage_perc",
            }
        ),
        in_flight=frozenset({"vllm:num_requests_running", "vllm:num_requests_waiting"}),
        tokens_made="vllm:generation_tokens_total",
        tokens_read="vllm:prompt_tokens_total",
        tokens_cached="vllm:prompt_tokens_cached_total",
        answers="vllm:time_to_first_token_seconds_count",
        seconds_between_tokens="vllm:inter_token_latency_seconds_sum",
    ),
    # With --shutdown-timeout, an idle engine needs 6 to 10 s to end. An engine that still has requests after that
    # time-out hangs until it is killed. Measured with vLLM 0.32.
    stop=Stop(idle_grace=0.5, kill_grace=30),
    exits={0: "vLLM also returns 0 if its engine core has died"},
    argument_check=ArgumentCheck(
        question=_QUESTION,
        seconds=_SECONDS,
        no_result=_UNKNOWN_PLACE,
        caches=("HOME", "VLLM_CACHE_ROOT"),
        # A line of pydantic, the last line of a traceback, or a line of the parser.
        reason=re.compile(r"^(?:Value error, |[\w.]*(?:Error|Exception): |vllm: error: |.*?: error: )"),
    ),
    log=LOG,
    path_flags=PATH_FLAGS,
    claimed_share=_claimed_share,
    # Measured with vLLM 0.32: 2.9 GB with a tiny model and 1 GiB of cache, where the estimate of the worker is 2 GiB.
    server_mib=1024,
)
