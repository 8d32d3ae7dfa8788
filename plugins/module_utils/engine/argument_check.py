# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks an engine's image whether the engine would take a release's arguments. Private to the collection.

The engine's own code in the image parses the arguments, reads the model's configuration, and builds the engine's
configuration from both. The question reads no weights, starts no engine, and takes some seconds: another release can
serve meanwhile.
"""

from __future__ import annotations

from ..hardware.cdi import gpu_argv
from .adapters.contract import ArgumentCheck
from .container import python_argv
from .release import Release, mount_argv, ulimit_argv, user_argv

_CACHE = "/tmp"


def argv(docker: str, release: Release, env_file: str) -> list[str]:
    """The command that asks. `env_file` is the environment file of the release."""
    settings, check = release.settings, release.adapter.argument_check
    # The user, devices and mounts of the engine's container. Only a container that serves needs the other options.
    options = [
        user_argv(settings),
        f"--shm-size={settings.shm_size}",
        *ulimit_argv(settings),
        *gpu_argv(release.gpus, settings.gpu_request),
        *mount_argv(release.instance, release.model_path, settings, release.mounts),
    ]
    # Other caches than the instance's: the engine that serves uses those.
    caches = [f"--env={name}={_CACHE}" for name in check.caches]
    more = [*options, f"--env-file={env_file}", *caches, f"--tmpfs={_CACHE}"]
    return [*python_argv(docker, release.image, check.question, *more), *release.engine_argv]


def refusal(check: ArgumentCheck, code: int, output: str) -> str:
    """Why the engine refuses the arguments; empty where the engine takes them, or where the question has no result.

    Exit codes from 125 to 127 are Docker's own. These codes, and the end by a signal, say nothing about the arguments.
    """
    if code in (0, check.no_result) or code >= 125 or code < 0:
        return ""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    reasons = [line for line in lines if check.reason.match(line) and not line.startswith("pydantic")]
    return (reasons or lines or [f"exit code {code}"])[-1].partition(" [type=")[0]
