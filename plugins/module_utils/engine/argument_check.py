# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether an engine would take a release's arguments, by its own word. Private to the collection.

Its image parses them and makes of them and the model's configuration what it would start with. It reads no weights,
starts nothing, and takes some seconds, so that it can be asked while another release serves.
"""

from __future__ import annotations

import re

from ..hardware.cdi import gpu_argv
from .container import python_argv
from .release import Release, mount_argv, ulimit_argv, user_argv

SECONDS = 300
"""For the answer; 10 on a machine that has nothing else to do, 50 where two engines load beside it (measured)."""

UNKNOWN_PLACE = 64
"""Exit code where this version of vLLM has its parser elsewhere: then the check has no result."""

QUESTION = f"""
import importlib, signal, sys
from importlib.util import find_spec

signal.alarm({SECONDS})
# The parser looks at the command line itself.
sys.argv = ["vllm", "serve", *sys.argv[1:]]
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.utils.argparse_utils import FlexibleArgumentParser

# From vLLM 0.33 on, and in 0.32.
places = [f"vllm.entrypoints.{{name}}" for name in ("common", "launchers")]
place = next((place for place in places if find_spec(place) and find_spec(f"{{place}}.cli_args")), None)
if place is None:
    sys.exit({UNKNOWN_PLACE})
cli = importlib.import_module(f"{{place}}.cli_args")
arguments = cli.make_arg_parser(FlexibleArgumentParser()).parse_args(sys.argv[2:])
cli.validate_parsed_serve_args(arguments)
arguments.model = arguments.model_tag or arguments.model
AsyncEngineArgs.from_cli_args(arguments).create_engine_config()

# The names of parsers are looked at by the server alone, in 0.32 and before. A plugin would bring more of them.
plugins = [getattr(arguments, f"{{kind}}_parser_plugin", None) for kind in ("tool", "reasoning")]
for name in (f"{{place}}.launcher", "vllm.entrypoints.openai.api_server"):
    check = find_spec(name) and getattr(importlib.import_module(name), "validate_api_server_args", None)
    if check and not any(plugins):
        check(arguments)
        break
"""

_CACHE = "/tmp"

_REASON = re.compile(r"^(?:Value error, |[\w.]*(?:Error|Exception): |vllm: error: |.*?: error: )")
"""How the line begins that says why, in a traceback, in pydantic's words, and in the parser's."""


def argv(docker: str, release: Release, env_file: str) -> list[str]:
    """The command that asks. `env_file` is the release's own."""
    settings = release.settings
    # What the engine's container sees, and its user. Only a container that serves needs the other options.
    options = [
        user_argv(settings),
        f"--shm-size={settings.shm_size}",
        *ulimit_argv(settings),
        *gpu_argv(release.gpus, settings.gpu_request),
        *mount_argv(release.instance, release.model_path, settings),
    ]
    # Instead of the instance's caches, for the engine that serves uses those.
    caches = [f"--env={name}={_CACHE}" for name in ("HOME", "VLLM_CACHE_ROOT")]
    more = [*options, f"--env-file={env_file}", *caches, f"--tmpfs={_CACHE}"]
    return [*python_argv(docker, release.image, QUESTION, *more), *release.engine_argv[1:]]


def refusal(code: int, output: str) -> str:
    """Why the engine does not take them; empty where it does, or where it cannot be asked.

    Of Docker's own exit codes, 125 to 127, none is the engine's word, nor is the end by a signal.
    """
    if code in (0, UNKNOWN_PLACE) or code >= 125 or code < 0:
        return ""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    reasons = [line for line in lines if _REASON.match(line) and not line.startswith("pydantic")]
    return (reasons or lines or [f"exit code {code}"])[-1].partition(" [type=")[0]
