# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which words of an engine's log may leave the machine, as a script of rsyslog's. Private to the collection; pure.

What is not known to be harmless stays: a later version of the engine may log requests anywhere. Source of the forms:
vllm/logger.py and vllm/logging_utils/formatter.py of vLLM 0.32, which puts the same beginning before every line of a
record. The expressions are POSIX's extended ones, written so that Python's re reads them alike.
"""

from __future__ import annotations

from collections.abc import Sequence

LEFT_OUT = "(left out)"

LINE = (
    r"^(\(([^)]*) pid=[0-9]+\) )?(DEBUG|INFO|WARNING|ERROR|CRITICAL) [0-9]+-[0-9]+ [0-9:]+"
    r" \[([^]:]*/)?([A-Za-z0-9_]+\.py:[0-9]+)\] ?"
)
"""How a line of vLLM's own begins: process (2), level (3), file and line (5)."""

PROCESS, LEVEL, PLACE = 2, 3, 5

SEVERITIES = {"INFO": "info", "WARNING": "warning", "ERROR": "err", "CRITICAL": "crit"}
"""Levels that are shipped, in the words of syslog. At DEBUG, an engine logs whole requests."""

SOURCES = (
    # Starting, dying, and what was found out meanwhile.
    *("core", "core_client", "coordinator", "abstract", "multiproc_executor", "uniproc_executor", "ray_executor"),
    *("gpu_worker", "cpu_worker", "worker_base", "gpu_model_runner", "cpu_model_runner", "workspace"),
    *("arg_utils", "vllm", "parallel", "speculative", "interface", "cuda", "cpu", "numa_utils"),
    # Throughput, queue and cache, every ten seconds.
    *("loggers", "kv_cache_utils", "kv_cache_manager"),
    # Weights, compilation, kernels.
    *("base_loader", "default_loader", "sharded_state_loader", "weight_utils", "backends", "compilation", "caching"),
    *("compiler_interface", "monitor", "fa_utils", "flash_attn", "flashinfer", "cumem", "torch_utils", "jit_monitor"),
    # GPUs among each other.
    *("parallel_state", "pynccl", "nccl", "cuda_communicator", "custom_all_reduce", "symm_mem", "shm_broadcast"),
)
"""Files of vLLM whose words are of the engine and never of a request: none of them puts a request's text, parameters,
tools or answer into its log. Of the same name elsewhere in vLLM 0.32 there is none that does."""

KNOWN = rf"{LINE[:-2]}".replace(r"([A-Za-z0-9_]+\.py:[0-9]+)", rf"(({'|'.join(SOURCES)})\.py:[0-9]+)")

FRAME = (
    r'^ *(Traceback \(most recent call last\):|File "[^"]+", line [0-9]+, in [^ ]+'
    r"|(During handling of|The above exception was) [a-z ,:]+)$"
)
"""Where a traceback has been. The code beside it is to be read in the engine's source."""

EXCEPTION = r"^([A-Za-z_][A-Za-z0-9_.]*(Error|Exception|Interrupt|Exit))(:|$)"
"""What ended it. Its words may quote a request."""

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
"""How exceptions begin that refuse a configuration."""

TOLD = (
    r"^([A-Za-z_.]*(OutOfMemoryError|AcceleratorError|DistBackendError|DistNetworkError|DistStoreError|MemoryError"
    r"|ImportError|ModuleNotFoundError|TimeoutError|EngineDeadError)"
    r"|[A-Za-z_.]*Error: (\[Errno [0-9]|CUDA|NCCL|NVML|CUBLAS|cuBLAS|cuDNN|Triton|Engine core|Worker|"
    + "|".join(_STARTING)
    + r"))"
)
"""Exceptions of machine, driver and configuration, whose words are what an operator needs."""

BARE = (
    r"^(\([^)]*\) )?(INFO: +(Started server process|Waiting for application|Application (startup|shutdown)"
    r"|Shutting down|Finished server process)|[^ ]+:[0-9]+:[0-9]+ \[[0-9]+\] NCCL (INFO|WARN) "
    r"|(\[rank[0-9]+\]:)?\[[EWF][0-9]+ [0-9:.]+ [A-Za-z_]+[.](cpp|cu|h|hpp):[0-9]+\]"
    r"|Fatal Python error: |terminate called after |Segmentation fault)"
)
"""Lines that are not in vLLM's form, of its web server, NCCL, PyTorch and the interpreter. None has a request in it;
not among them is the web server's line for each request, which has its path."""

CONTENT = (
    r"^((.*[^A-Za-z_])?(prompts?|prompt_token_ids|messages|content|input|input_value|output|outputs|text|stop|bad_words"
    r"""|api[_-]key|token|password|secret|[Aa]uthorization)['"]* *[:=])"""
)
"""A name in an engine's words after which text of a client may follow. The last line of defence."""

PREFIX = r"^\([^)]*\) "
"""What stands before lines that are not in vLLM's form, where a process of its own prints them."""


def quoted(text: str) -> str:
    """A constant of a script of rsyslog's."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def matches(expression: str, pattern: str) -> str:
    return f"re_match({expression}, {quoted(pattern)})"


def extract(expression: str, pattern: str, part: int) -> str:
    """What a part of a pattern has matched; empty for nothing."""
    return f"re_extract({expression}, {quoted(pattern)}, 0, {part}, '')"


def script() -> Sequence[str]:
    """Puts what may leave of $msg into $.line, with level, process and place; stops where that is nothing."""
    levels = [
        f"    if $.level == '{level}' then {{ set $.line!severity = '{word}'; }}" for level, word in SEVERITIES.items()
    ]
    return [
        # All lines of a record but its last end with one.
        "set $.said = replace($msg, '\\r', '');",
        f"set $.head = {extract('$.said', LINE, 0)};",
        f"set $.level = {extract('$.said', LINE, LEVEL)};",
        "if $.level == 'DEBUG' then { stop }",
        "if $.level != '' then {",
        *levels,
        f"    set $.line!data!process = {extract('$.said', LINE, PROCESS)};",
        f"    set $.line!data!source = {extract('$.said', LINE, PLACE)};",
        "} else {",
        f"    set $.head = {extract('$.said', PREFIX, 0)};",
        "}",
        "set $.text = substring($.said, strlen($.head), strlen($.said));",
        f"if {matches('$.text', FRAME)} then {{",
        "    set $.line!message = $.text;",
        f"}} else if {matches('$.text', TOLD)} then {{",
        "    set $.line!message = $.text;",
        f"}} else if {matches('$.text', EXCEPTION)} then {{",
        "    # Its words may go on in lines of the same record.",
        "    set $/cut = $.unit & $.head;",
        f"    set $.line!message = {extract('$.text', EXCEPTION, 1)} & ': {LEFT_OUT}';",
        f"}} else if $.level == '' and {matches('$.said', BARE)} then {{",
        "    set $.line!message = $.text;",
        "} else if $.level == '' or $.text startswith ' ' or $/cut == $.unit & $.head then {",
        "    stop",
        f"}} else if {matches('$.said', KNOWN)} then {{",
        f"    set $.kept = {extract('$.text', CONTENT, 1)};",
        "    set $.line!message = $.text;",
        f"    if $.kept != '' then {{ set $.line!message = $.kept & ' {LEFT_OUT}'; }}",
        "} else if $.level == 'INFO' then {",
        "    stop",
        "} else {",
        f"    set $.line!message = '{LEFT_OUT}';",
        "}",
    ]
