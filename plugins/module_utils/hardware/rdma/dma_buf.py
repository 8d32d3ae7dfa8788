# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks each RDMA device whether it takes memory of GPUs as dma-buf. Private to the collection.

NCCL asks in the same way: it registers a dma-buf with an invalid descriptor. A driver that supports dma-buf complains
about the descriptor; any other driver reports that it does not support the call. Source: NCCL, transport/net_ib/gdr.cc.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ...core.commands import Outcome

Run = Callable[[Sequence[str]], Outcome]

LIBRARY = "libibverbs.so.1"

PROGRAM = """
import ctypes, errno, json, sys
try:
    verbs = ctypes.CDLL(sys.argv[1], use_errno=True)
    register = verbs.ibv_reg_dmabuf_mr
except (OSError, AttributeError) as error:
    sys.exit(str(error))
pointer = ctypes.c_void_p
for name in ("ibv_get_device_list", "ibv_get_device_name", "ibv_open_device", "ibv_alloc_pd", "ibv_reg_dmabuf_mr"):
    getattr(verbs, name).restype = pointer
verbs.ibv_get_device_name.restype = ctypes.c_char_p
number = ctypes.c_int(0)
verbs.ibv_get_device_list.restype = ctypes.POINTER(pointer)
devices = verbs.ibv_get_device_list(ctypes.byref(number))
found = {}
for index in range(number.value if devices else 0):
    name = verbs.ibv_get_device_name(pointer(devices[index])).decode()
    context = verbs.ibv_open_device(pointer(devices[index]))
    domain = verbs.ibv_alloc_pd(pointer(context)) if context else None
    if domain:
        size, offset = ctypes.c_size_t(0), ctypes.c_uint64(0)
        ctypes.set_errno(0)
        register(pointer(domain), offset, size, offset, ctypes.c_int(-1), ctypes.c_int(0))
        found[name] = errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))
        verbs.ibv_dealloc_pd(pointer(domain))
    if context:
        verbs.ibv_close_device(pointer(context))
print(json.dumps(found))
"""
"""Runs as a process of its own: a fault in a library of a NIC's vendor then ends only this process."""

SUPPORTED = "EBADF"
UNSUPPORTED = ("ENOTSUP", "EOPNOTSUPP", "EPROTONOSUPPORT", "ENOSYS")
"""On Linux, the first two are one number."""


@dataclass(frozen=True)
class Answer:
    """Whether each device supports dma-buf; None after an unexpected answer. `error`: why there are no answers."""

    by_device: dict[str, bool | None] = field(default_factory=dict)
    error: str | None = None


def ask(python: str | None, run: Run, library: str = LIBRARY) -> Answer:
    """Ask all devices by a Python program. Without `python`, the result is empty."""
    if python is None:
        return Answer()
    outcome = run([python, "-c", PROGRAM, library])
    if outcome.failure or outcome.code:
        return Answer(error=outcome.message or " ".join(outcome.stderr.split())[-300:] or f"exit status {outcome.code}")
    try:
        names = json.loads(outcome.stdout)
        return Answer({str(name): _supported(error) for name, error in names.items()})
    except (ValueError, AttributeError) as error:
        return Answer(error=f"not the expected answer: {error}")


def _supported(error: object) -> bool | None:
    if error == SUPPORTED:
        return True
    return False if error in UNSUPPORTED else None
