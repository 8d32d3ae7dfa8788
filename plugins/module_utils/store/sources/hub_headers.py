# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The headers of a hub's model, fetched before its files are on any node. Private to the collection.

The controller fetches the configurations whole, and of the weights the headers alone. They are kept as a directory of
the model's own form, in which every other file, and every tensor, is a hole of the right size. So the same code reads
it that reads a model on a node, and 140 GB take some hundred KiB.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from ...models import shards
from ...models.config.facts import CODE_CONFIGS, QUANTIZATION_FILE, TEMPLATES
from ...models.safetensors import LENGTH_BYTES, MAX_HEADER
from . import hub as hub_source
from .hub import Hub
from .remote import Remote
from .transfer import TransferError

TEXTS = (*CODE_CONFIGS, QUANTIZATION_FILE, *TEMPLATES, shards.INDEX)
"""Files that are fetched whole. Others are only there, or not."""

LARGEST_TEXT = 64 << 20
"""Bytes. An index of 100 000 tensors has 10 MB."""

FIRST = 1 << 20
"""Bytes of a file of weights that are asked for at once: hardly any header is longer."""

THREADS = 8

Ask = Callable[[str, int, int], bytes]
"""The bytes of a file from the first number up to and without the second."""


def skeleton(cache: Path, remote: Remote, hub: Hub) -> Path:
    """The directory that stands for a model of a hub, fetched where the cache does not have it yet.

    A commit never changes, so neither does what is kept of it. Raises TransferError and OSError.
    """
    path = cache / remote.key
    with _alone(cache):
        if not path.is_dir():
            files = hub_source.sizes(remote, hub)
            half = cache / f".{remote.key}"
            shutil.rmtree(half, ignore_errors=True)
            fetch(half, files, lambda file, first, last: hub_source.ask_file(remote, hub, file, first, last))
            half.rename(path)
    return path


def fetch(target: Path, files: Mapping[str, int], ask: Ask) -> None:
    """Fetch what tells of a model with these files, by their size in bytes. Raises TransferError and OSError."""

    def one(file: str) -> None:
        path, size = target / file, files[file]
        path.parent.mkdir(parents=True, exist_ok=True)
        content = b""
        if not size:
            # No range has no bytes.
            pass
        elif file in TEXTS:
            if size > LARGEST_TEXT:
                raise TransferError(f"{file} has {size:,} bytes, which no such file has")
            content = ask(file, 0, size)
        elif file.endswith(shards.SUFFIX):
            content = _header(file, size, ask)
        path.write_bytes(content)
        if file not in TEXTS:
            os.truncate(path, size)

    unsafe = [file for file in files if file.startswith("/") or ".." in PurePosixPath(file).parts]
    if unsafe:
        raise TransferError(f"the hub names a file outside of the model: {unsafe[0]}")
    with ThreadPoolExecutor(max_workers=THREADS) as pool:
        list(pool.map(one, files))


def _header(file: str, size: int, ask: Ask) -> bytes:
    """The header of a file of weights; what comes of one that has none."""
    begun = ask(file, 0, min(FIRST, size))
    if len(begun) < LENGTH_BYTES:
        return begun
    end = LENGTH_BYTES + struct.unpack("<Q", begun[:LENGTH_BYTES])[0]
    if end > min(size, LENGTH_BYTES + MAX_HEADER):
        return begun
    return begun[:end] if end <= len(begun) else begun + ask(file, len(begun), end)


@contextmanager
def _alone(cache: Path) -> Iterator[None]:
    """Has one process at the cache at a time: of a hundred nodes, the first fetches, and the others find it."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
