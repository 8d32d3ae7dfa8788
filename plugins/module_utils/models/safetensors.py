# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the headers of safetensors files. Private to the collection.

A file consists of a little-endian u64 (length of the header in bytes), the header (JSON), and the tensors' bytes
without gaps: https://github.com/huggingface/safetensors#format. Only the header is read, so the check of a model of
140 GB takes milliseconds.
"""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LENGTH_BYTES = 8

MAX_HEADER = 100_000_000
"""Largest header in bytes, as in the format's own implementation (MAX_HEADER_SIZE in its tensor.rs)."""

BITS: Mapping[str, int] = {
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    **dict.fromkeys(["BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"], 8),
    **dict.fromkeys(["I16", "U16", "F16", "BF16"], 16),
    **dict.fromkeys(["I32", "U32", "F32"], 32),
    **dict.fromkeys(["I64", "U64", "F64", "C64"], 64),
}
"""Bits of an element by dtype (Dtype in the format's tensor.rs). The size of other dtypes is not checked."""

LFS_POINTER = b"version https://git-lfs.github.com/spec/"


class SafetensorsError(ValueError):
    """A file is wrong. The message is the end of a sentence that starts with the file's name."""


class Truncated(SafetensorsError):
    """The file is shorter than its header requires. Sizes in bytes."""

    def __init__(self, expected: int, found: int) -> None:
        self.expected = expected
        self.found = found
        super().__init__(
            f"is cut: expected {expected:,} bytes, found {found:,} ({expected - found:,} missing); fetch it again"
        )


@dataclass(frozen=True)
class Tensor:
    """One tensor; `begin` and `end` in bytes after the header."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True)
class Header:
    """The content of a file. `weight_bytes` is the size of all tensors, `file_size` the right size of the file."""

    tensors: Mapping[str, Tensor]
    weight_bytes: int
    file_size: int


def read(path: Path) -> Header:
    """Read a file's header and check it against the file's size.

    Raises SafetensorsError for a wrong file, OSError for a file that cannot be read.
    """
    with path.open("rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        start = stream.read(LENGTH_BYTES)
        if len(start) < LENGTH_BYTES:
            raise Truncated(LENGTH_BYTES, size)
        if LFS_POINTER.startswith(start):
            raise SafetensorsError(
                "is a git-lfs pointer, not the weights: run `git lfs pull` in its repository, then copy it again"
            )
        (length,) = struct.unpack("<Q", start)
        if length > MAX_HEADER:
            raise SafetensorsError(f"is not a safetensors file: its header would have {length:,} bytes; fetch it again")
        if LENGTH_BYTES + length > size:
            raise Truncated(LENGTH_BYTES + length, size)
        header = parse_header(stream.read(length))
    if size < header.file_size:
        raise Truncated(header.file_size, size)
    if size > header.file_size:
        raise SafetensorsError(
            f"is damaged: expected {header.file_size:,} bytes by its header, found {size:,}; fetch it again"
        )
    return header


def parse_header(raw: bytes) -> Header:
    """Parse a header without the length in front of it.

    Raises only SafetensorsError, for any bytes.
    """
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise SafetensorsError(f"has a header that is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise SafetensorsError(f"has a header that is not a dictionary but {type(data).__name__}")
    tensors = {name: _tensor(name, entry) for name, entry in data.items() if name != "__metadata__"}
    position = 0
    for name, tensor in sorted(tensors.items(), key=lambda item: (item[1].begin, item[1].end)):
        if tensor.begin != position:
            raise SafetensorsError(f"has a header with a gap or an overlap before tensor {name!r}")
        position = tensor.end
    return Header(tensors, position, LENGTH_BYTES + len(raw) + position)


def _tensor(name: str, entry: Any) -> Tensor:
    """Check one entry of the header. Raises SafetensorsError."""
    if not isinstance(entry, dict):
        raise SafetensorsError(f"has a header where tensor {name!r} is not a dictionary")
    dtype = entry.get("dtype")
    if not isinstance(dtype, str):
        raise SafetensorsError(f"has a header where tensor {name!r} has no dtype")
    shape = _sizes(name, entry, "shape")
    offsets = _sizes(name, entry, "data_offsets")
    if len(offsets) != 2 or offsets[0] > offsets[1]:
        raise SafetensorsError(f"has a header where the data_offsets of tensor {name!r} are not [begin, end]")
    begin, end = offsets
    if dtype in BITS and math.prod(shape) * BITS[dtype] != (end - begin) * 8:
        raise SafetensorsError(
            f"has a header where tensor {name!r} ({dtype}, {list(shape)}) does not fit its {end - begin} bytes"
        )
    return Tensor(dtype, shape, begin, end)


def _is_size(item: object) -> bool:
    """Whether an item is a whole number that fits into a u64. JSON's true is not a number."""
    return isinstance(item, int) and not isinstance(item, bool) and 0 <= item < 1 << 64


def _sizes(name: str, entry: Mapping[str, Any], key: str) -> tuple[int, ...]:
    """A list of whole numbers from 0 that fit into a u64. Raises SafetensorsError."""
    value = entry.get(key)
    if not isinstance(value, list) or not all(_is_size(item) for item in value):
        raise SafetensorsError(f"has a header where {key} of tensor {name!r} is not a list of sizes")
    return tuple(value)
