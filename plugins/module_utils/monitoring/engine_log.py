# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which lines of an engine's log may leave the machine, as a script for rsyslog. Private to the collection; pure.

Only lines that are known to be harmless leave, since a later version of the engine may log requests anywhere. Source of
the forms: vllm/logger.py and vllm/logging_utils/formatter.py of vLLM 0.32, which put the same beginning before every
line of a record. The expressions are POSIX extended ones that Python's re reads in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence

LEFT_OUT = "(left out)"

LINE = (
    r"^(\(([^)]*) pid=[0-9]+\) )?(DEBUG|INFO|WARNING|ERROR|CRITICAL) [0-9]+-[0-9]+ [0-9:]+"
    r" \[([^]:]*/)?([A-Za-z0-9_]+\.py:[0-9]+)\] ?"
)
"""The beginning of a line in vLLM's form: process (group 2), level (3), file and line (5)."""

PROCESS, LEVEL, PLACE = 2, 3, 5

SEVERITIES = {"INFO": "info", "WARNING": "warning", "ERROR": "err", "CRITICAL": "crit"}
"""Levels to ship, with their names in syslog. At DEBUG, an engine logs whole requests."""

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
or answer. vLLM 0.32 has no file of the same name elsewhere that does."""

KNOWN = rf"{LINE[:-2]}".replace(r"([A-Za-z0-9_]+\.py:[0-9]+)", rf"(({'|'.join(SOURCES)})\.py:[0-9]+)")

FRAME = (
    r'^ *(Traceback \(most recent call last\):|File "[^"]+", line [0-9]+, in [^ ]+'
    r"|(During handling of|The above exception was) [a-z ,:]+)$"
)
"""The frames of a traceback. The lines of code stay: the engine's source has them."""

EXCEPTION = r"^([A-Za-z_][A-Za-z0-9_.]*(Error|Exception|Interrupt|Exit))(:|$)"
"""The exception that ended the traceback. Its message may quote a request."""

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

TOLD = (
    r"^([A-Za-z_.]*(OutOfMemoryError|AcceleratorError|DistBackendError|DistNetworkError|DistStoreError|MemoryError"
    r"|ImportError|ModuleNotFoundError|TimeoutError|EngineDeadError)"
    r"|[A-Za-z_.]*Error: (\[Errno [0-9]|CUDA|NCCL|NVML|CUBLAS|cuBLAS|cuDNN|Triton|Engine core|Worker|"
    + "|".join(_STARTING)
    + r"))"
)
"""Exceptions about machine, driver and configuration. Operators need their messages."""

BARE = (
    r"^(\([^)]*\) )?(INFO: +(Started server process|Waiting for application|Application (startup|shutdown)"
    r"|Shutting down|Finished server process)|[^ ]+:[0-9]+:[0-9]+ \[[0-9]+\] NCCL (INFO|WARN) "
    r"|(\[rank[0-9]+\]:)?\[[EWF][0-9]+ [0-9:.]+ [A-Za-z_]+[.](cpp|cu|h|hpp):[0-9]+\]"
    r"|Fatal Python error: |terminate called after |Segmentation fault)"
)
"""Lines in another form than vLLM's: of its web server, NCCL, PyTorch and the interpreter. None contains a request.
The web server's line for each request is not among them, since it has the request's path."""

CONTENT = (
    r"^((.*[^A-Za-z_])?(prompts?|prompt_token_ids|messages|content|input|input_value|output|outputs|text|stop|bad_words"
    r"""|api[_-]key|token|password|secret|[Aa]uthorization)['"]* *[:=])"""
)
"""Names in an engine's log after which a client's text may follow. The last check before a line leaves."""

PREFIX = r"^\([^)]*\) "
"""The beginning of lines in another form than vLLM's, if a process of its own prints them."""


def quoted(text: str) -> str:
    """A constant in a script for rsyslog."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def matches(expression: str, pattern: str) -> str:
    return f"re_match({expression}, {quoted(pattern)})"


def extract(expression: str, pattern: str, part: int) -> str:
    """The text that a group of a pattern matches; empty if nothing matches."""
    return f"re_extract({expression}, {quoted(pattern)}, 0, {part}, '')"


def script() -> Sequence[str]:
    """Copies what may leave from $msg to $.line, with level, process and place. Stops if nothing may leave."""
    levels = [
        f"    if $.level == '{level}' then {{ set $.line!severity = '{word}'; }}" for level, word in SEVERITIES.items()
    ]
    return [
        # Every line of a record except its last ends with a carriage return.
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
        "    # The exception's message may continue in further lines of the record.",
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
