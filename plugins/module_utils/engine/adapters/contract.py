# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an adapter reports about its engine. Private to the collection; pure.

Each engine has other words for the same things. An adapter translates, and does nothing else: no field reads a file or
sends a request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

GENERATE, TRANSCRIBE, EMBED, SCORE, CLASSIFY, REWARD = (
    *("generate", "transcribe", "embed", "score", "classify", "reward"),
)
TOKEN_EMBED, TOKEN_CLASSIFY = "token-embed", "token-classify"
"""What models are served for. SCORE is also reranking."""


@dataclass(frozen=True)
class Body:
    """The body of a request."""

    data: bytes
    content_type: str = "application/json"


def json_body(**fields: Any) -> Body:
    """A body in JSON."""
    return Body(json.dumps(fields).encode())


@dataclass(frozen=True)
class Serving:
    """What the collection decides about every engine. Times in seconds."""

    address: str
    port: int
    start_timeout: int
    drain_timeout: int
    cache_path: str
    """The directory that the engine may write to."""


@dataclass(frozen=True)
class Rank:
    """The place of an engine in a gang."""

    number: int
    """0 for the leader."""
    nodes: int
    """The number of members."""
    address: str
    """The address at which other members reach this engine."""
    leader: str
    """The address of the leader."""
    port: int
    """The port of the leader at which the engines find each other."""
    network: Mapping[str, str] = field(default_factory=dict)
    """The variables of the libraries by which engines exchange data, NCCL and Gloo."""
    devices: int = 1
    """The number of GPUs of each member."""
    executor: str = ""
    """The program that places the engine's processes; empty for the engine itself."""
    dashboard: bool = False
    """Whether the executor shows its dashboard, on the leader's localhost."""
    secret: str = field(default="", repr=False)
    """The secret by which the executor's programs accept each other."""
    directory: str = ""
    """A directory in the memory of the container, for files that only the engine's user may read."""


@dataclass(frozen=True)
class Executor:
    """A program, apart from the engine, that places the engine's processes on the members of a gang."""

    argv: Callable[[Rank], list[str]]
    """The engine's last arguments."""
    environment: Callable[[Rank], dict[str, str]]
    """More variables of a member."""
    script: Callable[[Rank, str], str]
    """The shell commands of a member's container, made from the command that starts the engine."""
    ports: int
    """The number of ports from `Rank.port` on."""
    opened: int
    """How many of these ports other members must reach, counted from the first port."""


@dataclass(frozen=True)
class Gangs:
    """How engines on several nodes serve one model."""

    argv: Callable[[Rank], list[str]]
    """The last arguments of a member's engine."""
    flags: frozenset[str]
    """Flags among these arguments that an entry may have for an engine on one node, but not for a gang."""
    environment: Callable[[Rank], dict[str, str]]
    """The variables that every member needs."""
    computed: Mapping[str, str]
    """Variables that a site must not set, with the site variable to use instead."""
    per_node: frozenset[str]
    """Variables of a site that may differ between the members of a gang."""
    executor: str = ""
    """The name of the executor that is the engine itself."""
    executors: Mapping[str, Executor] = field(default_factory=dict)
    """The other executors, by name."""


@dataclass(frozen=True)
class Request:
    """The smallest request of a task that makes the engine compute."""

    path: str
    body: Callable[[str, str], Body]
    """The body of the request, from the model's name and a text that is in no cache."""
    mistake: Callable[[Mapping[str, Any]], str]
    """Why an answer with status 200 is wrong; empty where the answer is right."""
    noun: str
    """The request in messages, with its article."""
    result: str
    """What the answer has, in messages."""
    names_model: bool = True
    """Whether an answer has the name of the model."""


@dataclass(frozen=True)
class Question:
    """A request whose answer a golden prompt compares."""

    path: str
    body: Callable[[str, str, Sequence[str]], Body]
    """The body of the request, from the model's name, a prompt, and texts to compare with the prompt."""
    read: Callable[[Mapping[str, Any]], Any]
    """EMBED: the vectors of prompt and texts. SCORE: the score of each text. REWARD: the reward of prompt and text,
    for each text. CLASSIFY: the label of the prompt.

    Raises LookupError, TypeError, ValueError, AttributeError, OverflowError for an answer of another form.
    """


@dataclass(frozen=True)
class Metrics:
    """Names of the engine's metrics in Prometheus' text format."""

    path: str
    started: str
    """The start of the server, in seconds since 1970. With another start, all counters began anew."""
    progress: frozenset[str]
    """Any change of one of these means that the engine has computed."""
    in_flight: frozenset[str]
    """The requests that the engine computes or keeps waiting: the sum of these."""
    tokens_made: str
    tokens_read: str
    tokens_cached: str
    """Of the tokens that were read, those that came from a cache."""
    answers: str
    """Answers that have begun. The first token of each is not in `seconds_between_tokens`."""
    seconds_between_tokens: str

    @property
    def of_throughput(self) -> frozenset[str]:
        """The metrics without which the speed of an engine is unknown."""
        return frozenset({self.tokens_made, self.tokens_read, self.answers, self.seconds_between_tokens})


@dataclass(frozen=True)
class Stop:
    """How an engine ends after SIGTERM."""

    idle_grace: float
    """Seconds from SIGTERM to SIGKILL for an engine that is drained and has no request."""
    kill_grace: int
    """Seconds from the end of the drain time to SIGKILL."""


@dataclass(frozen=True)
class ArgumentCheck:
    """How an image is asked whether its engine would take a command line."""

    question: str
    """Python for the image. Its arguments are those of the engine. Exit code 0: the engine takes them."""
    seconds: int
    """The most seconds that the answer takes."""
    no_result: int
    """The exit code that means that this version of the engine cannot be asked."""
    caches: tuple[str, ...]
    """Variables with directories that the question must not share with an engine that serves."""
    reason: re.Pattern[str]
    """Matches the beginning of the line of output that has the reason of a refusal."""


@dataclass(frozen=True)
class Variables:
    """Names of the engine's environment variables."""

    api_key: str
    public: frozenset[str]
    """Variables with long values that are not secret."""
    deciding: tuple[str, ...]
    """Variables that decide whether a model fits."""
    ranks: frozenset[str] = frozenset()
    """Variables that make the engine one of several ranks, whose other ranks would run outside the container."""


@dataclass(frozen=True)
class ConfigFile:
    """The engine's configuration file, for values that must not be in the command line. JSON, which is also YAML."""

    flag: str
    """The flag with the path of the file."""
    api_keys: str
    """The key of the file with the list of API keys."""


FILE, DIRECTORY, EITHER, WRITTEN = "a file", "a directory", "a file or directory", "a place to write to"
"""What a flag's path must be."""


@dataclass(frozen=True)
class PathFlag:
    """A flag whose value is a path."""

    kind: str = FILE
    words: frozenset[str] = frozenset()
    """Values that are no path."""
    inline: str = ""
    """A value with one of these characters is the content itself, and no path."""
    hub: bool = False
    """Whether the engine also takes a hub's name, which no offline engine can load."""


@dataclass(frozen=True)
class Log:
    """Forms of the lines in the engine's log: POSIX extended regular expressions."""

    line: str
    """The beginning of a line in the engine's own form."""
    process: int
    """Numbers of groups in `line`: `process`, `level`, and `place` with file and line number."""
    level: int
    place: int
    severities: Mapping[str, str]
    """Levels that leave the machine, in the words of syslog. At DEBUG, an engine logs whole requests."""
    known: str
    """The beginning of a line that is never about a request."""
    exceptions: str
    """The beginning of an exception about machine, driver or configuration. Operators need the messages of these."""
    bare: str
    """Lines in another form, such as a library's. None contains a request."""
    content: str
    """Names after which a client's text may follow. The last check before a line leaves."""
    prefix: str
    """The beginning of lines in another form, if one of the engine's processes prints them."""


@dataclass(frozen=True)
class Adapter:
    """One engine."""

    name: str
    """The engine's name in inventories."""
    title: str
    """The engine's name in messages."""
    program: str
    """The program in the image; first word of the engine's command line."""
    package: str
    """The Python package in the image, whose version is the engine's version."""
    health_path: str
    """Answers 200 while the server's process runs. The answer does not show whether the engine computes."""
    models_path: str
    """Lists the names that the engine serves."""
    chat_path: str
    exact_tokens: Mapping[str, Any]
    """Parameters of a completion that make its number of tokens exactly `max_tokens`."""
    model_argv: Callable[[str, Sequence[str]], list[str]]
    """The first arguments, from the model's path and the names to serve. No names: the engine decides."""
    server_argv: Callable[[Serving], list[str]]
    """The arguments that follow. After these come the flags of the model registry entry."""
    adapter_flags: Callable[[Mapping[str, Any], Mapping[str, str], int], dict[str, Any]]
    """The flags of a model with those that serve LoRA adapters, from the entry's flags, the directory of each
    adapter by name, and the highest rank."""
    adapter_rank: str
    """The flag with the highest rank of an adapter."""
    adapter_ranks: tuple[int, ...]
    """The values of that flag, the highest last."""
    environment: Callable[[Serving], dict[str, str]]
    """The variables that every instance of this engine needs."""
    variables: Variables
    gangs: Gangs
    config_file: ConfigFile
    requests: Mapping[str, Request]
    """The smallest request by task. The engine cannot serve a task that is missing."""
    questions: Mapping[str, Question]
    """The requests of golden prompts, by task: EMBED, SCORE, REWARD and CLASSIFY. Golden prompts of GENERATE are
    chats, those of TRANSCRIBE files."""
    transcription: Callable[[str, str, bytes, str], Body]
    """The body of a request of TRANSCRIBE, from the model's name, the name and the bytes of a file, and the language;
    empty: unknown."""
    audio_mib: int
    """MiB of the largest file that the engine transcribes."""
    paths: Mapping[str, tuple[str, ...]]
    """The paths for clients by task. An engine has only the paths of its model's tasks, the usual one first."""
    metrics: Metrics
    stop: Stop
    exits: Mapping[int, str]
    """The true meaning of misleading exit codes, by code."""
    argument_check: ArgumentCheck
    log: Log
    path_flags: Mapping[str, PathFlag]
    """Flags that take a path. In a flag with JSON: FLAG.KEY, or FLAG.* for all of its keys."""
    claimed_share: Callable[[Mapping[str, Any]], float]
    """The share of a GPU's memory that must be free when the engine starts, from the flags of a model."""
    server_mib: int
    """MiB that a CPU engine takes for its processes, without the workers."""
