# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Functions that all commands of `inferctl` share. Private to the collection."""

# pylint: disable=ansible-bad-function  # a command, which prints
from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Sequence

from ...core.paths import Paths
from ...core.problems import nearest
from ...engine.state import releases

OK, FAILED, USAGE, LOADING, UNCLEAR = 0, 1, 2, 3, 4
"""Exit codes: success; failure, or a problem was found; wrong usage; not ready yet; unknown."""


NO_READER = 141
"""Exit code if the reader of the output ends first, as `head` does: 128 + SIGPIPE, as a shell reports it."""


INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 + SIGINT, as a shell reports it."""


class UsageError(Exception):
    """The command cannot do what was requested; the message says what to do instead."""


def answer(options: argparse.Namespace, paths: Paths | None, expected: tuple[type[Exception], ...]) -> int:
    """Run a command as root, and return the exit code. For errors in `expected`, print only the message."""
    try:
        if paths is None and os.geteuid() != 0:
            raise UsageError(f"must run as root: sudo inferctl {options.command}")
        code: int = options.run(options, paths or Paths())
        sys.stdout.flush()
        return code
    except UsageError as error:
        return fail(str(error), USAGE)
    except BrokenPipeError:
        # Otherwise, Python writes the rest of the output at its end, fails again, and prints this second error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NO_READER
    except KeyboardInterrupt:
        return fail("interrupted", INTERRUPTED)
    except expected as error:
        return fail(str(error), FAILED)


def fail(message: str, code: int) -> int:
    """Print an error, and return the exit code."""
    print(f"inferctl: {message}", file=sys.stderr, flush=True)
    return code


def known(paths: Paths, names: Sequence[str]) -> list[str]:
    """The requested names, or all. Raises UsageError for a name that this node does not have."""
    there = releases.names(paths)
    for name in names:
        if name not in there:
            raise UsageError(f"no instance {name!r} on this node: {nearest(name, there)}")
    return list(dict.fromkeys(names)) or there


def wait_seconds(text: str) -> float:
    """The value of an option that limits a wait, in seconds. With 0, the command looks once."""
    value = float(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError("must be a number of seconds, 0 or more")
    return value
