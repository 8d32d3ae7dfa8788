# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The expressions for vLLM's log distinguish harmless lines from lines that may have a prompt."""

from __future__ import annotations

import re
import subprocess

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.adapters.vllm_log import LOG, SOURCES

CORE = "(EngineCore pid=86) ERROR 11-22 12:31:15 [core.py:1750] "
API = "(APIServer pid=1) INFO 11-22 12:31:15 [request_logger.py:65] "

CASES = {
    "line": {
        CORE + "x": True,
        "INFO 01-02 03:04:05 [loggers.py:271] x": True,
        "(APIServer pid=1) DEBUG 01-02 03:04:05 [v1/engine/core.py:1] x": True,
        '(APIServer pid=1) INFO:     127.0.0.1:5 - "POST /v1/completions HTTP/1.1" 200 OK': False,
        "a prompt": False,
    },
    "known": {
        CORE + "x": True,
        CORE.replace("core.py", "v1/engine/core.py") + "x": True,
        API + "x": False,
        CORE.replace("core.py", "my_core.py") + "x": False,
        "[core.py:1750] x": False,
    },
    "exceptions": {
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB": True,
        "torch.AcceleratorError: CUDA error: an illegal memory access was encountered": True,
        "RuntimeError: NCCL error: unhandled system error": True,
        "RuntimeError: Engine core initialization failed. See root cause above.": True,
        "FileNotFoundError: [Errno 2] No such file or directory: '/mnt/models/x'": True,
        "ValueError: The model's max seq len (4096) is larger than": True,
        "ValueError: a prompt": False,
        "RuntimeError: a prompt about CUDA": False,
    },
    "bare": {
        "(APIServer pid=1) INFO:     Application startup complete.": True,
        "gpu7:86:86 [0] NCCL WARN NET/IB : Unable to open device": True,
        "[rank0]:[W1122 12:31:15.000000000 ProcessGroupNCCL.cpp:1] x": True,
        "Fatal Python error: Segmentation fault": True,
        '(APIServer pid=1) INFO:     127.0.0.1:5 - "POST /v1/completions?prompt=x HTTP/1.1" 200 OK': False,
        "a prompt": False,
    },
    "content": {
        "failed with prompt: 'x'": True,
        "SamplingParams(n=1, bad_words=['x'])": True,
        "{'messages': [1]}": True,
        "'api_key': 'x'": True,
        "Engine 000: Avg prompt throughput: 1.0 tokens/s, Running: 1 reqs": False,
        "Maximum concurrency for 2,048 tokens per request: 1.00x": False,
    },
}


@pytest.mark.parametrize("name", CASES)
def test_each_pattern_finds_only_the_lines_that_it_is_for(name: str) -> None:
    pattern = getattr(LOG, name)
    assert {text: bool(re.search(pattern, text)) for text in CASES[name]} == CASES[name]
    # rsyslog reads the pattern as a POSIX expression, as grep -E does.
    found = subprocess.run(
        ["grep", "-E", "-e", pattern], input="\n".join(CASES[name]), capture_output=True, text=True, check=False
    )
    assert found.stdout.splitlines() == [text for text, finds in CASES[name].items() if finds], found.stderr


def test_a_log_line_is_split_into_process_level_and_place() -> None:
    found = re.search(LOG.line, CORE + "words")
    assert found is not None
    parts = (LOG.process, LOG.level, LOG.place)
    assert [found[part] for part in parts] == ["EngineCore", "ERROR", "core.py:1750"]
    assert (CORE + "words")[found.end() :] == "words"


def test_no_file_that_logs_requests_is_a_harmless_source() -> None:
    """These files of vLLM 0.32 and before log requests."""
    risky = {"request_logger", "logger", "log_response", "async_llm", "dump_input", "serving", "chat_utils", "hf"}
    assert not risky & set(SOURCES)
    assert len(set(SOURCES)) == len(SOURCES)
