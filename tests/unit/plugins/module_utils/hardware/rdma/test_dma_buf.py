# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The check for dma-buf by the real program, with a library of verbs that the test builds."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import commands
from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma import dma_buf

VERBS = """
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
static int devices[3] = {0, 1, 2};
static void *list[4] = {&devices[0], &devices[1], &devices[2], NULL};
static char *names[3] = {"mlx5_0", "rxe0", "odd0"};
void **ibv_get_device_list(int *number) { *number = 3; return list; }
const char *ibv_get_device_name(void *device) { return names[*(int *)device]; }
void *ibv_open_device(void *device) { return device; }
void *ibv_alloc_pd(void *context) { return context; }
int ibv_dealloc_pd(void *domain) { return 0; }
int ibv_close_device(void *context) { return 0; }
void *ibv_reg_dmabuf_mr(void *domain, uint64_t offset, size_t length, uint64_t address, int handle, int access) {
  int errors[3] = {EBADF, EOPNOTSUPP, EINVAL};
  errno = handle == -1 && !offset && !length && !address && !access ? errors[*(int *)domain] : EIO;
  return NULL;
}
"""


def run(command: Sequence[str]) -> Outcome:
    return commands.run(command, 20)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="the library is built by gcc")
def test_each_device_has_its_own_answer(tmp_path: Path) -> None:
    library = tmp_path / "libibverbs.so.1"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, "-x", "c", "-"], input=VERBS, text=True, check=True)
    answer = dma_buf.ask(sys.executable, run, str(library))
    assert answer == dma_buf.Answer({"mlx5_0": True, "rxe0": False, "odd0": None})


def test_a_missing_library_is_an_error() -> None:
    answer = dma_buf.ask(sys.executable, run, "/nowhere/libibverbs.so.1")
    assert answer.by_device == {} and "/nowhere/libibverbs.so.1" in (answer.error or "")


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (Outcome(None, failure="timeout", message="python did not end"), "did not end"),
        (Outcome(-11, "", ""), "exit status -11"),
        (Outcome(0, "[]"), "not the expected answer"),
        (Outcome(0, "{"), "not the expected answer"),
    ],
)
def test_a_child_process_that_fails_is_an_error(outcome: Outcome, words: str) -> None:
    answer = dma_buf.ask("python", lambda command: outcome)
    assert answer.by_device == {} and words in (answer.error or "")


def test_without_an_interpreter_there_is_no_answer() -> None:
    assert dma_buf.ask(None, run) == dma_buf.Answer()
