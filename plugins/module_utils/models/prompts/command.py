# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the template files of a variant from those of its base. Private to the collection.

As a program it reads and writes JSON, and runs in a container of the engine's image without network. The image has the
engine's Jinja, and there a template, which is a foreign program, can do no harm.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Mapping
from typing import Any, TextIO

from ...core.problems import InputError, Problem
from .placement import wrap_and_try
from .rendering import renderer, special_tokens
from .templates import rewrite
from .text import clean

TOKENIZER_CONFIG = "tokenizer_config.json"


def wrap_files(texts: Mapping[str, str], prompt: str, policy: str, where: str) -> dict[str, str]:
    """The files of a model with templates, with the prompt in each template; `texts` are the template_files.

    Raises InputError as rewrite() does, ValueError for an empty or broken prompt, and ImportError without Jinja.
    """
    config: Any = {}
    # rewrite() reports broken JSON together with other problems.
    with contextlib.suppress(ValueError, RecursionError):
        config = json.loads(texts.get(TOKENIZER_CONFIG, "{}"))
    text = clean(prompt)
    render = renderer(special_tokens(config if isinstance(config, Mapping) else {}))
    return rewrite(texts, lambda template: wrap_and_try(template, text, policy, render)[0], where)


def main(stdin: TextIO | None = None, stdout: TextIO | None = None) -> int:
    """Read the arguments of wrap_files as a JSON dictionary. Write a JSON dictionary with `files` and `problems`."""
    files: dict[str, str] = {}
    problems: list[Problem] = []
    try:
        files = wrap_files(**json.load(stdin or sys.stdin))
    except InputError as error:
        problems = error.problems
    found = [{"where": problem.where, "message": problem.message} for problem in problems]
    json.dump({"files": files, "problems": found}, stdout or sys.stdout)
    return 0
