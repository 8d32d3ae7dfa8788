# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fetches configurations and headers of a hub's model before a node has its files. Private to the collection.

The controller fetches whole configurations, but only the headers of the weights. It writes a directory with all files
of the model: all other files, and all tensors, are holes of the right size. So the code that reads a model on a node
can read this directory, too. For 140 GB of weights, it takes some hundred KiB.
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
from ...models.config.facts import CODE_CONFIGS, ENCODER_FILES, POOLING_FILE, QUANTIZATION_FILE, TEMPLATES
from ...models.file_names import ADAPTER_CONFIG
from ...models.safetensors import LENGTH_BYTES, MAX_HEADER
from . import hub as hub_source
from .hub import Hub
from .remote import Remote
from .transfer import TransferError

TEXTS = (*CODE_CONFIGS, QUANTIZATION_FILE, POOLING_FILE, *ENCODER_FILES, *TEMPLATES, shards.INDEX, ADAPTER_CONFIG)
"""Files that are fetched whole. Of other files, only the existence matters."""

LARGEST_TEXT = 64 << 20
"""Largest size of such a file in bytes. An index of 100 000 tensors has 10 MB."""

FIRST = 1 << 20
"""Bytes of the first request for a file of weights. Hardly any header is longer."""

THREADS = 8

Ask = Callable[[str, int, int], bytes]
"""Returns the bytes of a file from the first number to before the second."""


def skeleton(cache: Path, remote: Remote, hub: Hub) -> Path:
    """The directory with configurations and headers of a hub's model, fetched if the cache does not have it.

    A commit never changes, so the directory stays valid. Raises TransferError and OSError.
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
    """Fetch configurations and headers; `files` are all files by size in bytes. Raises TransferError and OSError."""

    def one(file: str) -> None:
        path, size = target / file, files[file]
        path.parent.mkdir(parents=True, exist_ok=True)
        content = b""
        if not size:
            # An HTTP range cannot be empty.
            pass
        elif file in TEXTS:
            if size > LARGEST_TEXT:
                raise TransferError(f"{file} has {size:,} bytes, allowed are {LARGEST_TEXT:,}: correct the repository")
            content = ask(file, 0, size)
        elif file.endswith(shards.SUFFIX):
            content = _header(file, size, ask)
        path.write_bytes(content)
        if file not in TEXTS:
            os.truncate(path, size)

    unsafe = [file for file in files if file.startswith("/") or ".." in PurePosixPath(file).parts]
    if unsafe:
        raise TransferError(f"the hub lists a file outside of the model: {unsafe[0]}: use another hub or model")
    with ThreadPoolExecutor(max_workers=THREADS) as pool:
        list(pool.map(one, files))


def _header(file: str, size: int, ask: Ask) -> bytes:
    """The header of a file of weights, with its length. For a file without a valid header, its first bytes."""
    begun = ask(file, 0, min(FIRST, size))
    if len(begun) < LENGTH_BYTES:
        return begun
    end = LENGTH_BYTES + struct.unpack("<Q", begun[:LENGTH_BYTES])[0]
    if end > min(size, LENGTH_BYTES + MAX_HEADER):
        return begun
    return begun[:end] if end <= len(begun) else begun + ask(file, len(begun), end)


@contextmanager
def _alone(cache: Path) -> Iterator[None]:
    """Lock the cache for one process. If a hundred nodes need a model, the first process fetches it for all."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
