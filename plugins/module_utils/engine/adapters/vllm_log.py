# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How vLLM writes its log. Private to the collection; data.

Source: vllm/logger.py and vllm/logging_utils/formatter.py of vLLM 0.32, which puts the same beginning before every line
of a record. The expressions are POSIX extended regular expressions, written so that Python's re reads them alike.
"""

from __future__ import annotations

from .contract import Log

_LINE = (
    r"^(\(([^)]*) pid=[0-9]+\) )?(DEBUG|INFO|WARNING|ERROR|CRITICAL) [0-9]+-[0-9]+ [0-9:]+"
    r" \[([^]:]*/)?([A-Za-z0-9_]+\.py:[0-9]+)\] ?"
)

SOURCES = (
    # Start and end of the engine, and what it finds out meanwhile.
    *("core", "core_client", "coordinator", "abstract", "multiproc_executor", "uniproc_executor", "ray_executor"),
    *("gpu_worker", "cpu_worker", "worker_base", "gpu_model_runner", "cpu_model_runner", "workspace"),
    *("arg_utils", "vllm", "parallel", "speculative", "interface", "cuda", "cpu", "numa_utils"),
    # Throughput, queue and cache, every ten seconds.
    *("loggers", "kv_cache_utils", "kv_cache_manager"),
    # Weights, compilation, kernels.
    *("base_loader", "default_loader", "sharded_state_loader", "weight_utils", "backends", "compilation", "caching"),
    *("compiler_interface", "monitor", "fa_utils", "flash_attn", "flashinfer", "cumem", "torch_utils", "jit_monitor"),
    # Connections between GPUs.
    *("parallel_state", "pynccl", "nccl", "cuda_communicator", "custom_all_reduce", "symm_mem", "shm_broadcast"),
)
"""Files of vLLM that log about the engine, never about a request: none of them logs a request's text, parameters, tools
or answer. Other files of the same names in vLLM 0.32 do not log these either."""

_KNOWN = _LINE[:-2].replace(r"([A-Za-z0-9_]+\.py:[0-9]+)", rf"(({'|'.join(SOURCES)})\.py:[0-9]+)")

_STARTING = (
    "Bfloat16 is only supported",
    "Free memory on device",
    "No available memory",
    "The model's max seq len",
    "The number of required GPUs",
    "To serve at least one request",
    "Total number of attention heads",
    "User-specified max_model_len",
)
"""Beginnings of the messages of exceptions that refuse a configuration."""

_EXCEPTIONS = (
    r"^([A-Za-z_.]*(OutOfMemoryError|AcceleratorError|DistBackendError|DistNetworkError|DistStoreError|MemoryError"
    r"|ImportError|ModuleNotFoundError|TimeoutError|EngineDeadError)"
    r"|[A-Za-z_.]*Error: (\[Errno [0-9]|CUDA|NCCL|NVML|CUBLAS|cuBLAS|cuDNN|Triton|Engine core|Worker|"
    + "|".join(_STARTING)
    + r"))"
)

_BARE = (
    r"^(\([^)]*\) )?(INFO: +(Started server process|Waiting for application|Application (startup|shutdown)"
    r"|Shutting down|Finished server process)|[^ ]+:[0-9]+:[0-9]+ \[[0-9]+\] NCCL (INFO|WARN) "
    r"|(\[rank[0-9]+\]:)?\[[EWF][0-9]+ [0-9:.]+ [A-Za-z_]+[.](cpp|cu|h|hpp):[0-9]+\]"
    r"|Fatal Python error: |terminate called after |Segmentation fault)"
)

_CONTENT = (
    r"^((.*[^A-Za-z_])?(prompts?|prompt_token_ids|messages|content|input|input_value|output|outputs|text|stop|bad_words"
    r"""|api[_-]key|token|password|secret|[Aa]uthorization)['"]* *[:=])"""
)

LOG = Log(
    line=_LINE,
    process=2,
    level=3,
    place=5,
    severities={"INFO": "info", "WARNING": "warning", "ERROR": "err", "CRITICAL": "crit"},
    known=_KNOWN,
    exceptions=_EXCEPTIONS,
    # Lines of the web server, NCCL, PyTorch and the interpreter. The web server's line for each request is not among
    # them: that line has the path of the request.
    bare=_BARE,
    content=_CONTENT,
    prefix=r"^\([^)]*\) ",
)
