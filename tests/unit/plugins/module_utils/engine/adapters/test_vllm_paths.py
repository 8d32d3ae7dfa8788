# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every flag of every catalogue that could take a path is known."""

from __future__ import annotations

import re

from ansible_collections.baremetal.inference.plugins.module_utils.engine.adapters.vllm_paths import PATH_FLAGS
from ansible_collections.baremetal.inference.plugins.module_utils.models.flags import versions
from ansible_collections.baremetal.inference.plugins.module_utils.models.flags.check import OWNED_FLAGS

LIKE_A_PATH = re.compile(r"path|file|dir\b|plugin|template|tokenizer$|config-path|media-path|^generation-config|loras$")
"""Names of flags that take a path, or look as if they did."""

NO_PATH = {
    "allowed-media-domains": "names of hosts",
    "chat-template-content-format": "a word",
    "default-chat-template-kwargs": "variables of the template",
    "trust-request-chat-template": "a switch",
    "io-processor-plugin": "the name of a Python entry point that the image has installed",
    "max-loras": "a number",
    "max-cpu-loras": "a number",
    "enable-tokenizer-info-endpoint": "a switch",
    "skip-tokenizer-init": "a switch",
}


def test_each_flag_that_takes_a_path_is_known() -> None:
    for flags in versions.known().values():
        like = {name for name, known in flags.items() if LIKE_A_PATH.search(name) and known.get("type") != "switch"}
        known = {place.partition(".")[0] for place in PATH_FLAGS}
        assert like - known - set(OWNED_FLAGS) - set(NO_PATH) == set()


def test_the_table_names_flags_that_exist() -> None:
    flags = {name for known in versions.known().values() for name in known}
    assert {place.partition(".")[0] for place in PATH_FLAGS} <= flags
    assert not {place.partition(".")[0] for place in PATH_FLAGS} & set(OWNED_FLAGS)
