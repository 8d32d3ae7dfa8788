# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Atomic writes of the node's own files. Private to the collection."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any


def text(path: Path) -> str | None:
    """A file's text; None if there is no file. Bytes that are not UTF-8 are replaced by U+FFFD. Raises OSError."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None


def same(path: Path, content: str | bytes, mode: int = 0o644) -> bool:
    """Whether a file has this content and mode, so that write() would not change it. False for an unreadable file."""
    try:
        # Compared as bytes: a damaged file may not be text.
        return path.read_bytes() == _bytes(content) and path.stat().st_mode & 0o7777 == mode
    except OSError:
        return False


def own(path: Path, mode: int = 0o644) -> bool:
    """Whether a file or directory has this process's user and group, and this mode. Raises OSError."""
    status = path.stat()
    return (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (os.geteuid(), os.getegid(), mode)


def _bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


def write(path: Path, content: str | bytes | None, mode: int = 0o644) -> bool:
    """Write a file atomically: a reader, or a power cut, finds the old or the new content, never a part.

    The content None removes the file. Returns whether content or mode changed.
    """
    if content is None:
        there = path.exists()
        path.unlink(missing_ok=True)
        return there
    if same(path, content, mode):
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    # mkstemp uses mode 0600, so other users can never read a secret. The name begins with a dot: if this process is
    # killed, programs that read all files of a directory ignore the temporary file.
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(_bytes(content))
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    return True


def to_json(value: Any) -> str:
    """The text of a state file."""
    return json.dumps(value, indent=2, sort_keys=True) + "\n"


def write_json(path: Path, value: Any) -> bool:
    """Write a state file. Returns whether anything changed."""
    return write(path, to_json(value))


def read_json(path: Path, missing: Any = None) -> Any:
    """Read a state file; `missing` if there is no file. JSON's null is None as well.

    Raises OSError, and ValueError with the file's name if it is not JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return missing
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from error


def read_written(path: Path) -> dict[str, Any]:
    """Read a state file whose `files` are the names of the files that a module has written; empty if there is no file.

    Raises OSError, and ValueError with the file's name if `files` has another form.
    """
    state = read_json(path, {})
    names = state.get("files", []) if isinstance(state, dict) else None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{path} is damaged: remove this file, and run the playbook again")
    return dict(state)


def link(path: Path, target: str) -> bool:
    """Set a symbolic link to a target, atomically. Returns whether the link changed."""
    with contextlib.suppress(OSError):
        if os.readlink(path) == target:
            return False
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with contextlib.suppress(FileNotFoundError):
        temporary.unlink()
    temporary.symlink_to(target)
    os.replace(temporary, path)
    return True
