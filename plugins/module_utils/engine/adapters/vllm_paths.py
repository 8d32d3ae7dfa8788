# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The flags of vLLM that take a path. Private to the collection; data.

Sources: the catalogues of vLLM 0.32.0 and 0.33.0, and the files of vLLM 0.32.0 that read the values. The flags that the
collection sets itself are not here, and the draft model of speculative-config is an entry of the model registry.
"""

from __future__ import annotations

from collections.abc import Mapping

from .contract import DIRECTORY, EITHER, WRITTEN, PathFlag

PATH_FLAGS: Mapping[str, PathFlag] = {
    # load_chat_template in vllm/entrypoints/chat_utils.py: such a character makes the value a template.
    "chat-template": PathFlag(inline="{}\n"),
    "tokenizer": PathFlag(EITHER, hub=True),
    # try_get_generation_config in vllm/config/model.py.
    "generation-config": PathFlag(DIRECTORY, words=frozenset({"auto", "vllm"}), hub=True),
    "hf-config-path": PathFlag(DIRECTORY, hub=True),
    # import_from_path in vllm/utils/import_utils.py loads the file.
    "tool-parser-plugin": PathFlag(),
    "reasoning-parser-plugin": PathFlag(),
    "structured-outputs-config.reasoning_parser_plugin": PathFlag(),
    "log-config-file": PathFlag(inline="{"),
    "logging-config.pylogging_config_file": PathFlag(),
    "allowed-local-media-path": PathFlag(DIRECTORY),
    "mm-encoder-fp8-scale-path": PathFlag(),
    "default-mm-loras.*": PathFlag(DIRECTORY, hub=True),
    "mm-encoder-fp8-scale-save-path": PathFlag(WRITTEN),
    "compilation-config.cache_dir": PathFlag(WRITTEN),
    "compilation-config.debug_dump_path": PathFlag(WRITTEN),
    "profiler-config.torch_profiler_dir": PathFlag(WRITTEN),
    "profiler-config.proton_profiler_dir": PathFlag(WRITTEN),
}
