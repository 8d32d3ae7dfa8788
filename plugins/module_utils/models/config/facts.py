# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the facts of a model from its directory, or only from its configuration. Private to the collection."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ...core.problems import Problem
from .. import manifest, shards
from ..shards import FileProblem
from .attention import Attention
from .computed import compute
from .config import Config, parse
from .experts import Experts
from .heads import Heads
from .latent import Mla
from .positions import Rope
from .quantization import Quantization
from .state import State
from .values import as_dict, as_list, positive, text_or_none
from .weights import Parts, Weights, weigh

QUANTIZATION_FILE = "hf_quant_config.json"
TOKENIZER_CONFIG = "tokenizer_config.json"

POOLING_FILE = "modules.json"
"""The parts of a model for Sentence Transformers, of which one may be a pooling."""

ENCODER_FILES = tuple(
    f"sentence_{name}_config.json"
    for name in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
"""Files of Sentence Transformers with `max_seq_length`, which wins over all other lengths. The first file counts
(get_sentence_transformer_tokenizer_config in vLLM 0.32.0, vllm/transformers_utils/config.py)."""

POOLING_TYPES = frozenset(
    {"sentence_transformers.models.Pooling", "sentence_transformers.sentence_transformer.modules.pooling.Pooling"}
)
"""Types of a pooling in POOLING_FILE (_ST_POOLING_MODULE_TYPES in vLLM 0.32.0, vllm/transformers_utils/config.py)."""

TOKENIZERS = ("tokenizer.json", "tokenizer.model", "tekken.json", "vocab.json", "vocab.txt", "spiece.model")
"""Files of a tokenizer; *.tiktoken is another one."""

TEMPLATES = ("chat_template.jinja", "chat_template.json")
"""Files of a chat template. They win over the template in tokenizer_config.json (transformers,
tokenization_utils_base.py)."""

CODE_CONFIGS = (manifest.CONFIG, TOKENIZER_CONFIG, "processor_config.json", "preprocessor_config.json")
"""Files whose key `auto_map` names the model's own Python code."""

DTYPES: Mapping[str, str] = {"F32": "float32", "BF16": "bfloat16", "F16": "float16"}
"""Dtypes of the files, the widest first. Without a dtype in the configuration, the engine computes in the widest dtype
of the files (get_torch_dtype in vLLM 0.32.0, vllm/transformers_utils/model_arch_config_convertor.py)."""


@dataclass(frozen=True)
class ModelFacts:
    """All facts about a model that are known without running it. None if unknown."""

    path: str | None = None
    config: Config = field(default_factory=Config)
    weights: Weights | None = None
    shards: tuple[str, ...] = ()
    missing_shards: tuple[str, ...] = ()
    cut_shards: tuple[str, ...] = ()
    tokenizer: str | None = None
    chat_template: str | None = None
    remote_code: tuple[str, ...] = ()
    pooled: bool = False
    """Whether POOLING_FILE has a pooling: then the engine serves the model for its vectors."""
    revision: str | None = None
    problems: tuple[FileProblem, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, with the configuration's keys at the top level."""
        data = asdict(self)
        return _plain({"path": data.pop("path"), **data.pop("config"), **data})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ModelFacts:
        """Read the result of to_dict, perhaps of another version of this collection. Ignores unknown keys."""
        values = _values(cls, data)
        weights = data.get("weights")
        problems = tuple(FileProblem(str(one["file"]), str(one["message"])) for one in data.get("problems") or ())
        return cls(
            **{
                **values,
                "config": Config(**_values(Config, data)),
                "weights": Weights(**_values(Weights, weights)) if weights else None,
                "problems": problems,
            }
        )


NESTED: Mapping[str, type] = {
    "rope": Rope,
    "attention": Attention,
    "full_heads": Heads,
    "sliding_heads": Heads,
    "state": State,
    "mla": Mla,
    "experts": Experts,
    "quantization": Quantization,
    "parts": Parts,
}


def _values(kind: Any, data: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a dataclass of this package, from its dictionary."""
    values: dict[str, Any] = {}
    for name in kind.__dataclass_fields__:
        if name in data:
            value, inner = data[name], NESTED.get(name)
            value = inner(**_values(inner, value)) if inner and isinstance(value, Mapping) else value
            values[name] = tuple(value) if isinstance(value, list) else value
    return values


def _plain(value: Any) -> Any:
    """The same value with lists instead of tuples, as in JSON."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def gather(root: Path) -> ModelFacts:
    """Read a model's directory. Raises nothing: problems are part of the facts."""
    try:
        if not root.is_dir():
            return ModelFacts(str(root), problems=(FileProblem("", "is missing, or is not a directory"),))
        files, found = manifest.find_files(root, "")
    except OSError as error:
        return ModelFacts(str(root), problems=(FileProblem("", f"cannot be read: {error.strerror}"),))
    problems = [FileProblem("", _without(root, problem)) for problem in found]
    parsed: dict[str, dict[str, Any]] = {}
    for name in (*CODE_CONFIGS, QUANTIZATION_FILE, TEMPLATES[1]):
        if name in files:
            parsed[name], message = shards.read_json(files[name])
            if message:
                problems.append(FileProblem(name, message))
    if manifest.CONFIG not in files:
        problems.append(FileProblem(manifest.CONFIG, "is missing: a model needs its configuration"))
    tokenizer = parsed.get(TOKENIZER_CONFIG, {})
    config, wrong = parse(
        parsed.get(manifest.CONFIG, {}),
        positive(tokenizer.get("model_max_length")),
        parsed.get(QUANTIZATION_FILE),
        _encoder_length(files),
    )
    problems += [FileProblem(manifest.CONFIG, message) for message in wrong]
    read = shards.read(files)
    weights = weigh(read.tensors, config)
    revision, damage = _revision(root)
    return ModelFacts(
        path=str(root),
        config=with_dtype(config, weights),
        weights=weights,
        shards=tuple(read.wanted),
        missing_shards=tuple(read.missing),
        cut_shards=tuple(read.cut),
        tokenizer=_tokenizer(files),
        chat_template=_template(files, tokenizer),
        remote_code=tuple(name for name in CODE_CONFIGS if as_dict(parsed.get(name, {}).get("auto_map"))),
        pooled=_pooled(files),
        revision=revision,
        problems=(*problems, *read.problems, *damage),
    )


def from_config(raw: Mapping[str, Any]) -> ModelFacts:
    """The facts of a model by its parsed config.json alone. The size of its weights is computed."""
    config, wrong = parse(raw)
    return ModelFacts(
        config=config,
        weights=compute(config),
        remote_code=(manifest.CONFIG,) if as_dict(raw.get("auto_map")) else (),
        problems=tuple(FileProblem(manifest.CONFIG, message) for message in wrong),
    )


def with_dtype(config: Config, weights: Weights | None) -> Config:
    """The configuration, with the dtype of the weights if it has no dtype."""
    if config.dtype or not weights:
        return config
    found = next((name for dtype, name in DTYPES.items() if dtype in weights.by_dtype), None)
    return replace(config, dtype=found)


def _without(root: Path, problem: Problem) -> str:
    """A problem's message with paths relative to the model's directory."""
    return problem.message.replace(f"{root}/", "")


def _tokenizer(files: Iterable[str]) -> str | None:
    names = set(files)
    return next((name for name in TOKENIZERS if name in names), None) or next(
        (name for name in sorted(names) if re.fullmatch(r"[^/]+\.tiktoken", name)), None
    )


def _template(files: Mapping[str, Path], tokenizer: Mapping[str, Any]) -> str | None:
    """The file with the chat template; None without one."""
    named = next((name for name in TEMPLATES if name in files), None)
    return named or (TOKENIZER_CONFIG if tokenizer.get("chat_template") else None)


def _pooled(files: Mapping[str, Path]) -> bool:
    """Whether one of the parts for Sentence Transformers pools."""
    try:
        parts = json.loads(files[POOLING_FILE].read_bytes())
    except (KeyError, OSError, ValueError, RecursionError):
        return False
    return any(text_or_none(as_dict(part).get("type")) in POOLING_TYPES for part in as_list(parts))


def _encoder_length(files: Mapping[str, Path]) -> int | None:
    """The longest request by Sentence Transformers; None if its files do not have it."""
    for name in ENCODER_FILES:
        try:
            given = as_dict(json.loads(files[name].read_bytes()))
        except (KeyError, OSError, ValueError, RecursionError):
            continue
        if given:
            return positive(given.get("max_seq_length"))
    return None


def _revision(root: Path) -> tuple[str | None, list[FileProblem]]:
    """The revision in the store's manifest, None without one; and its problems."""
    path = root / manifest.MANIFEST
    try:
        if not path.is_file():
            return None, []
    except OSError as error:
        # The directory can be listed, but its files cannot be reached.
        return None, [FileProblem(manifest.MANIFEST, shards.unreadable(error))]
    data, message = shards.read_json(path)
    try:
        if not message:
            return manifest.Manifest.from_dict(data).revision, []
    except ValueError as error:
        message = str(error)
    return None, [FileProblem(manifest.MANIFEST, message)]
