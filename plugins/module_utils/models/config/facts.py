# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts of a model: what its directory holds, or what its configuration alone tells. Private to the collection."""

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
from .values import as_dict, as_list, positive
from .weights import Parts, Weights, weigh

QUANTIZATION_FILE = "hf_quant_config.json"
TOKENIZER_CONFIG = "tokenizer_config.json"

POOLING_FILE = "modules.json"
"""The parts of a model for Sentence Transformers, of which one may be a pooling."""

POOLING_TYPES = frozenset(
    {"sentence_transformers.models.Pooling", "sentence_transformers.sentence_transformer.modules.pooling.Pooling"}
)
"""Types of that part (_ST_POOLING_MODULE_TYPES in vLLM 0.32.0, vllm/transformers_utils/config.py)."""

TOKENIZERS = ("tokenizer.json", "tokenizer.model", "tekken.json", "vocab.json", "vocab.txt", "spiece.model")
"""Files that hold a tokenizer; a *.tiktoken does as well."""

TEMPLATES = ("chat_template.jinja", "chat_template.json")
"""Files that hold a chat template; they win over the one in tokenizer_config.json (transformers,
tokenization_utils_base.py)."""

CODE_CONFIGS = (manifest.CONFIG, TOKENIZER_CONFIG, "processor_config.json", "preprocessor_config.json")
"""Files whose key `auto_map` names Python code of the model's own."""

DTYPES: Mapping[str, str] = {"F32": "float32", "BF16": "bfloat16", "F16": "float16"}
"""What weights are computed in where the configuration does not say: the widest that the files hold (get_torch_dtype in
vLLM 0.32.0, vllm/transformers_utils/model_arch_config_convertor.py)."""


@dataclass(frozen=True)
class ModelFacts:
    """All that is known of a model without running it. None where unknown."""

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
    """Whether the model says how its vectors are pooled, and so is served for these."""
    revision: str | None = None
    problems: tuple[FileProblem, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, with the configuration's keys beside the others."""
        data = asdict(self)
        return _plain({"path": data.pop("path"), **data.pop("config"), **data})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ModelFacts:
        """Read what to_dict gave, perhaps as another version wrote it: keys that are not known are left out."""
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
    """The fields of a dataclass of this package, from the dictionary that it became."""
    values: dict[str, Any] = {}
    for name in kind.__dataclass_fields__:
        if name in data:
            value, inner = data[name], NESTED.get(name)
            value = inner(**_values(inner, value)) if inner and isinstance(value, Mapping) else value
            values[name] = tuple(value) if isinstance(value, list) else value
    return values


def _plain(value: Any) -> Any:
    """Tuples as lists, as JSON has them."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def gather(root: Path) -> ModelFacts:
    """Read a model's directory. Raises nothing: what is wrong with it is in the facts."""
    try:
        if not root.is_dir():
            return ModelFacts(str(root), problems=(FileProblem("", "is not there, or is no directory"),))
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
    """The facts of a model of which there is nothing but its config.json, parsed; its weights worked out from it."""
    config, wrong = parse(raw)
    return ModelFacts(
        config=config,
        weights=compute(config),
        remote_code=(manifest.CONFIG,) if as_dict(raw.get("auto_map")) else (),
        problems=tuple(FileProblem(manifest.CONFIG, message) for message in wrong),
    )


def with_dtype(config: Config, weights: Weights | None) -> Config:
    """The configuration with the dtype of the weights, where it has none of its own."""
    if config.dtype or not weights:
        return config
    found = next((name for dtype, name in DTYPES.items() if dtype in weights.by_dtype), None)
    return replace(config, dtype=found)


def _without(root: Path, problem: Problem) -> str:
    """A problem's message with paths below the model's directory."""
    return problem.message.replace(f"{root}/", "")


def _tokenizer(files: Iterable[str]) -> str | None:
    names = set(files)
    return next((name for name in TOKENIZERS if name in names), None) or next(
        (name for name in sorted(names) if re.fullmatch(r"[^/]+\.tiktoken", name)), None
    )


def _template(files: Mapping[str, Path], tokenizer: Mapping[str, Any]) -> str | None:
    """The file that holds the chat template."""
    named = next((name for name in TEMPLATES if name in files), None)
    return named or (TOKENIZER_CONFIG if tokenizer.get("chat_template") else None)


def _pooled(files: Mapping[str, Path]) -> bool:
    """Whether one of the parts for Sentence Transformers pools."""
    try:
        parts = json.loads(files[POOLING_FILE].read_bytes())
    except (KeyError, OSError, ValueError, RecursionError):
        return False
    return any(as_dict(part).get("type") in POOLING_TYPES for part in as_list(parts))


def _revision(root: Path) -> tuple[str | None, list[FileProblem]]:
    """The revision that the store's manifest names, where there is one."""
    path = root / manifest.MANIFEST
    if not path.is_file():
        return None, []
    data, message = shards.read_json(path)
    try:
        if not message:
            return manifest.Manifest.from_dict(data).revision, []
    except ValueError as error:
        message = str(error)
    return None, [FileProblem(manifest.MANIFEST, message)]
