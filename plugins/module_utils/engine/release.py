# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one renderer of a release: unit, container command and environment. Private to the collection.

Plans, staged releases and bridges are rendered here. A rollback and recovery use the files of a kept release.
This file is pure: the same input gives the same bytes on every machine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from typing import Any

from ..core import defaults
from ..core.paths import Paths, container_name, journal_tag, unit_name
from ..core.problems import InputError, Problem
from ..core.unit_files import sandbox, systemd_quote
from ..hardware import cdi
from ..models.fit.flags import world_size
from ..store.stored_model import StoredModel
from . import adapters, first_releases, unit_text
from .adapters.contract import Adapter, Rank, Serving
from .environment import ENGINE_CONFIG
from .gang import digest, members
from .gang.members import Gang
from .instance import Instance
from .inventory import bridge_name, bridged_instance
from .unit_text import CLEAN_UP, LABEL, PREPARE_TIMEOUT, READ_ONLY

SCHEMA = 1

GANG_LABEL = "inference.gang"
"""Container label of a member of a gang, with the digest of the gang's release."""

START_BURST = 5
"""The number of starts that systemd allows within the window. A restart after a death counts, too."""

RESTART_DELAY = 2
"""Seconds between the death of an engine and its restart."""

SANDBOX = sandbox(
    "It speaks to Docker, to its engine and to systemd, and writes only its own state. To tell whose process listens "
    "on the\nengine's port, it looks into /proc of another user; to let the engine drain, it sends it a signal: those "
    "three\ncapabilities.",
    "CAP_KILL CAP_SYS_PTRACE CAP_DAC_READ_SEARCH",
    str(Paths().state),
)
"""The sandbox of the supervisor, not of the engine. Never change the text: it is part of the ids of releases."""

FOLLOWER_SANDBOX = sandbox(
    "It speaks to Docker, to the leader of its gang and to systemd. It writes its own state. When its leader moves to\n"
    "another release, it installs its own unit and environment of that release. To watch its engine and to end it, it\n"
    "has the capabilities of any supervisor.",
    "CAP_KILL CAP_SYS_PTRACE CAP_DAC_READ_SEARCH",
    f"{Paths().state} {Paths().units} {Paths().env('any').parent}",
)
"""The sandbox of the supervisor of a gang's follower. Never change this text, either."""

TARGET_UNIT = """\
# Managed by the Ansible collection baremetal.inference.
# All engines of this node. Wanted by multi-user.target but not ordered before it: a slow load holds nothing up.
[Unit]
Description=LLM inference engines
DefaultDependencies=no
Before=shutdown.target
Conflicts=shutdown.target

[Install]
WantedBy=multi-user.target
"""


CONFIG_DIRECTORY = "/run/inference"

CONFIG_FILE = f"{CONFIG_DIRECTORY}/engine.yaml"
"""In the container's memory: the engine's configuration, from the environment. JSON is also YAML."""

GPU_REQUESTS = ("cdi", "runtime")
"""Who gives a container its GPUs, by CDI name: Docker, or NVIDIA's runtime where Docker has no CDI.

NVIDIA's runtime reads the CDI names from a variable of the container. Source: NVIDIA Container Toolkit, Support for
Container Device Interface, "Running a Workload with CDI".
"""


@dataclass(frozen=True)
class Settings:
    """The settings of an engine and its container. Times in seconds; sizes in Docker's form."""

    address: str = "127.0.0.1"
    uid: int = 2000
    gid: int = 2000
    store_path: str = defaults.STORE_PATH
    fast_path: str = ""
    """Where engines find the store's models, as copies or as links to the store; empty for the store itself."""
    cache_path: str = defaults.CACHE_PATH
    start_timeout: int = defaults.START_SECONDS
    drain_timeout: int = defaults.DRAIN_SECONDS
    shm_size: str = "16g"
    memory: str = ""
    """The limit that the operator sets, 0 for none. Empty: each release has a limit of its own (memory_limit)."""
    pids_limit: int = 16384
    ulimits: Mapping[str, str] = field(default_factory=dict)
    cap_add: Sequence[str] = ()
    gpu_request: str = GPU_REQUESTS[0]
    environment: Mapping[str, str] = field(default_factory=dict)
    """May have secrets: `to_dict` and releases leave it out."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON, without the environment."""
        values = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "environment"}
        return {**values, "ulimits": dict(self.ulimits), "cap_add": list(self.cap_add)}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Settings:
        """Settings from the form of to_dict(), of any version. Raises ValueError where they are damaged."""
        known = {item.name for item in fields(cls)}
        try:
            made = cls(**{key: each for key, each in value.items() if key in known})
            return replace(made, ulimits=dict(made.ulimits), cap_add=tuple(made.cap_add))
        except (AttributeError, TypeError, ValueError) as error:
            raise ValueError(f"has damaged settings ({error})") from error


@dataclass(frozen=True)
class Release:
    """What an instance runs. Immutable; `number` counts the releases of one instance on one node.

    Releases of older versions stay on nodes: a new field needs a default.
    """

    instance: str
    number: int
    id: str
    created: str
    model: str
    revision: str
    model_path: str
    image: str
    address: str
    port: int
    served_names: list[str]
    container: str
    unit: str
    engine_argv: list[str]
    container_argv: list[str]
    environment_keys: list[str]
    start_timeout: int
    drain_timeout: int
    accelerator: str
    gpus: list[str]
    flags: dict[str, Any] = field(default_factory=dict)
    """The flags of the model registry entry, with those that serve LoRA adapters."""
    arguments: list[str] = field(default_factory=list)
    """The same flags as arguments, with the container's paths. Only the catalogue of the engine's version could render
    them again."""
    lora: dict[str, str] = field(default_factory=dict)
    """The directory in the container of each LoRA adapter, by the name under which the engine serves the adapter."""
    draft: str = ""
    """The directory in the container of the draft model; empty if the engine has none."""
    settings: Settings = Settings()
    """The settings of the container, without the environment."""
    gang: Gang | None = None
    """The gang of an instance over several nodes; None for an instance on one node."""
    memory_limit: str = ""
    """The release's own memory limit, for settings without a limit; empty for none, as in older releases."""
    mounts: list[str] = field(default_factory=list)
    """Files and directories that flags name, outside of the store. The container has each at the same path."""
    warm_up: list[dict[str, Any]] = field(default_factory=list)
    """The prompts of a start, in the order in which they are sent (probe/warm_up)."""
    read_only: bool = False
    """Whether the engine cannot write to its image's files; False in older releases."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """The members of the gang by rank; empty for an instance on one node."""
        return tuple(member.node for member in self.gang.members) if self.gang else ()

    @property
    def adapter(self) -> Adapter:
        """The adapter of the release's engine."""
        return adapters.get()

    def to_json(self) -> str:
        """The text of release.json."""
        gang = self.gang.to_dict() if self.gang else None
        values = {**asdict(self), "schema": SCHEMA, "settings": self.settings.to_dict(), "gang": gang}
        # Without these fields, a release is as an older version wrote it.
        values = {key: value for key, value in values.items() if key not in _LATER or value}
        return json.dumps(values, indent=2, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Release:
        """Read release.json as any version of this schema wrote it.

        Unknown keys are left out, and missing keys of newer fields get their defaults. Raises ValueError where the text
        is no release of this schema.
        """
        data = json.loads(text)
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise ValueError(f"is not a release of schema {SCHEMA}")
        known = {item.name: item.default is MISSING and item.default_factory is MISSING for item in fields(cls)}
        missing = {name for name, required in known.items() if required and name not in data}
        if missing:
            raise ValueError(f"lacks {', '.join(sorted(missing))}")
        values = {key: value for key, value in data.items() if key in known}
        if wrong := [
            item.name for item in fields(cls) if item.name in values and not _fits(item.type, values[item.name])
        ]:
            raise ValueError(f"has values of another type: {', '.join(wrong)}")
        if "settings" not in values:
            values |= first_releases.data(values)
        gang = members.from_optional(values.get("gang"))
        return cls(**{**values, "settings": Settings.from_dict(values["settings"]), "gang": gang})


_TYPES: Mapping[str, type] = {"str": str, "int": int, "bool": bool, "list": list, "dict": dict}


def _fits(declared: Any, value: Any) -> bool:
    """Whether a value of JSON has the type of a field; True for fields with a check of their own, gang and settings."""
    kind, _bracket, inner = str(declared).removesuffix("]").partition("[")
    if not isinstance(value, _TYPES.get(kind, object)) or (kind == "int" and isinstance(value, bool)):
        return False
    # Keys are always texts: JSON has no others.
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return all(_fits(inner.partition(", ")[2] if kind == "dict" else inner, item) for item in items)


_LATER = frozenset({"lora", "draft", "memory_limit", "mounts", "warm_up", "gang", "read_only"})
"""Fields of later versions that are left out where they are empty."""


@dataclass(frozen=True)
class Beside:
    """What a release has in addition to model, flags and settings."""

    lora: Mapping[str, str] = field(default_factory=dict)
    """The directory of each LoRA adapter that the flags serve, by name."""
    draft: str = ""
    """The directory of the draft model."""
    memory_limit: str = ""
    mounts: Sequence[str] = ()
    warm_up: Sequence[Mapping[str, Any]] = ()
    read_only: bool = False


NOTHING = Beside()


@dataclass(frozen=True)
class Rendered:
    """A release with its two files. `environment` holds secrets: it goes only into files of mode 0600."""

    release: Release
    unit: str
    environment: str


def render(
    instance: Instance,
    arguments: Sequence[str],
    stored: StoredModel,
    image: str,
    settings: Settings,
    *,
    flags: Mapping[str, Any] | None = None,
    beside: Beside = NOTHING,
    gang: Gang | None = None,
    network: Mapping[str, str] | None = None,
    secret: str = "",
    number: int = 0,
    created: str = "",
) -> Rendered:
    """Render a release. `arguments` are the engine's, made from `flags`, which are the flags of the model.
    For a member of a gang, `network` has the variables of NCCL and Gloo, and `secret` is that of its executor.

    The id is a hash of unit, environment, revision and warm-up prompts, but not of the number, of the release's own
    memory limit, and of whether the container is read-only. So a version of this collection that computes another
    memory limit makes no new release. Raises InputError where a value cannot be put into an environment file.
    """
    stored = replace(stored, path=engine_path(stored.path, settings))
    rank = None
    if gang is not None:
        shared = gang_parts(gang, instance, arguments, stored.revision, image, settings, network or {})
        if secret:
            # Members with different secrets do not find each other.
            shared = {**shared, "secret": hashlib.sha256(secret.encode()).hexdigest()}
        gang = replace(gang, digest=digest.digest(shared, gang.name))
        rank = replace(_rank(gang, flags or {}), network=network or {}, secret=secret)
    environment = _environment(instance, settings, rank)

    def numbered(value: int, extra: Beside, identity: str = "") -> Rendered:
        keys = _keys(environment)
        release = _release(instance, flags or {}, arguments, stored, image, settings, value, keys, extra, gang)
        release = replace(release, id=identity, created=created)
        return Rendered(release, _unit(release), environment)

    base = numbered(0, replace(beside, memory_limit="", read_only=False)).release
    unnumbered = _unit(base, unit_text.FIRST_TIMEOUT)
    return numbered(number, beside, unit_text.identity(unnumbered, environment, stored.revision, beside.warm_up))


def bridge_of(release: Release, environment: str, port: int, gpus: Sequence[str], number: int = 0) -> Rendered:
    """The bridge of a release: the same engine on another port, and on these GPUs, for the time of a swap.

    The bridge is made from the release alone, so that a changed or broken inventory does not matter. The
    bridge shares the compile cache: the instance uses what the bridge has compiled.
    """
    instance = Instance(
        bridge_name(release.instance), release.model, port, gpus=tuple(gpus), accelerator=release.accelerator
    )
    stored = StoredModel(release.model_path, release.revision)
    keys = _keys(environment)
    beside = Beside(
        release.lora, release.draft, release.memory_limit, release.mounts, release.warm_up, release.read_only
    )
    made = _release(
        instance, release.flags, release.arguments, stored, release.image, release.settings, number, keys, beside
    )
    identity = hashlib.sha256("\0".join([release.id, str(port), *gpus]).encode()).hexdigest()
    made = replace(made, id=identity, created=release.created)
    return Rendered(made, _unit(made), environment)


def _release(
    instance: Instance,
    flags: Mapping[str, Any],
    arguments: Sequence[str],
    stored: StoredModel,
    image: str,
    settings: Settings,
    number: int,
    environment_keys: list[str],
    beside: Beside,
    gang: Gang | None = None,
) -> Release:
    """A release or a bridge, without id and time."""
    served_names = list(dict.fromkeys([bridged_instance(instance.name) or instance.name, instance.model]))
    engine = adapters.get()
    serving = _serving(instance, settings)
    engine_argv = [*engine.model_argv(stored.path, served_names), *engine.server_argv(serving), *arguments]
    rank = None if gang is None else _rank(gang, flags)
    if rank is not None:
        executor = engine.gangs.executors.get(rank.executor)
        engine_argv += executor.argv(rank) if executor else engine.gangs.argv(rank)
    return Release(
        instance=instance.name,
        number=number,
        id="",
        created="",
        model=instance.model,
        revision=stored.revision,
        model_path=stored.path,
        image=image,
        address=settings.address,
        port=instance.port,
        served_names=served_names,
        container=container_name(instance.name),
        unit=unit_name(instance.name),
        engine_argv=engine_argv,
        container_argv=_container_argv(
            instance,
            stored,
            image,
            engine_argv,
            settings,
            number,
            beside,
            gang,
            script=_script(engine, rank, configured=ENGINE_CONFIG in environment_keys),
        ),
        environment_keys=environment_keys,
        start_timeout=settings.start_timeout,
        drain_timeout=settings.drain_timeout,
        accelerator=instance.accelerator,
        gpus=list(instance.gpus),
        flags=dict(flags),
        arguments=list(arguments),
        lora=dict(beside.lora),
        draft=beside.draft,
        settings=Settings.from_dict(settings.to_dict()),
        memory_limit="" if settings.memory else beside.memory_limit,
        mounts=list(beside.mounts),
        warm_up=[dict(prompt) for prompt in beside.warm_up],
        read_only=beside.read_only,
        gang=gang,
    )


def gang_parts(
    gang: Gang,
    instance: Instance,
    arguments: Sequence[str],
    revision: str,
    image: str,
    settings: Settings,
    network: Mapping[str, str],
) -> dict[str, Any]:
    """What the releases of all members of a gang must share. GPUs and settings of containers may differ."""
    model, port = instance.model, instance.port
    environment = {**network, **settings.environment}
    return digest.parts(gang, image, model, revision, port, arguments, environment, adapters.get())


def _rank(gang: Gang, flags: Mapping[str, Any]) -> Rank:
    """The place of an engine in its gang. Without `network` and `secret`, which render() adds."""
    return Rank(
        gang.rank,
        nodes=gang.world,
        address=gang.me.address,
        leader=gang.leader.address,
        port=gang.rendezvous_port,
        devices=max(world_size(flags) // gang.world, 1),
        executor=gang.executor,
        dashboard=gang.dashboard,
        directory=CONFIG_DIRECTORY,
    )


def engine_path(path: str, settings: Settings) -> str:
    """The path at which an engine finds a directory of the store.

    The result is below the fast path, also without a fast copy: then the fast path has a link to the store. So no new
    release is needed when a fast copy is made or removed.
    """
    if settings.fast_path and path.startswith(f"{settings.store_path}/"):
        return f"{settings.fast_path}{path.removeprefix(settings.store_path)}"
    return path


def _serving(instance: Instance, settings: Settings) -> Serving:
    return Serving(
        settings.address,
        instance.port,
        start_timeout=settings.start_timeout,
        drain_timeout=settings.drain_timeout,
        cache_path=cache_path(instance.name, settings),
    )


def _environment(instance: Instance, settings: Settings, rank: Rank | None = None) -> str:
    """The env file's text, as `docker --env-file` reads it: KEY=VALUE lines, values taken literally."""
    cache = cache_path(instance.name, settings)
    variables = {
        "HF_HUB_OFFLINE": "1",
        **adapters.get().environment(_serving(instance, settings)),
        **(_of_rank(adapters.get(), rank) if rank else {}),
        # The engine runs under an id that may be missing in the image's passwd.
        "HOME": cache,
        "USER": "inference",
        **settings.environment,
    }
    problems = [
        # The value may be a secret: the message never shows it.
        Problem("vllm_environment", "must be a name and a value of one line", key)
        for key, value in variables.items()
        if not key or "=" in key or any(character in f"{key}{value}" for character in "\n\r\0")
    ]
    if problems:
        raise InputError(problems)
    return "".join(f"{key}={value}\n" for key, value in sorted(variables.items()))


def _of_rank(engine: Adapter, rank: Rank) -> dict[str, str]:
    """The variables of a member of a gang."""
    executor = engine.gangs.executors.get(rank.executor)
    return {**engine.gangs.environment(rank), **(executor.environment(rank) if executor else {})}


def _keys(environment: str) -> list[str]:
    return [line.partition("=")[0] for line in environment.splitlines()]


def cache_path(name: str, settings: Settings) -> str:
    """The compile cache of an instance, which its bridge shares."""
    return f"{settings.cache_path}/{bridged_instance(name) or name}"


def _container_argv(
    instance: Instance,
    stored: StoredModel,
    image: str,
    engine_argv: Sequence[str],
    settings: Settings,
    number: int,
    beside: Beside,
    gang: Gang | None,
    *,
    script: str,
) -> list[str]:
    """The arguments of `docker` that create the container. `script` starts the engine; empty where the engine's program
    does."""
    engine = adapters.get()
    if script:
        memory_only = [f"--mount=type=tmpfs,destination={CONFIG_DIRECTORY}", "--entrypoint=/bin/sh"]
        command = [*memory_only, image, "-c", script, engine.program, *engine_argv]
    else:
        command = [f"--entrypoint={engine.program}", image, *engine_argv]
    memory = settings.memory or beside.memory_limit
    return [
        "create",
        f"--name={container_name(instance.name)}",
        f"--label={LABEL}={number}",
        *([f"--label={GANG_LABEL}={gang.digest}"] if gang else []),
        "--init",
        "--network=host",
        user_argv(settings),
        "--cap-drop=ALL",
        *(f"--cap-add={capability}" for capability in settings.cap_add),
        "--security-opt=no-new-privileges",
        *(READ_ONLY if beside.read_only else ()),
        f"--shm-size={settings.shm_size}",
        *([f"--memory={memory}"] if memory else []),
        f"--pids-limit={settings.pids_limit}",
        *ulimit_argv(settings),
        *cdi.gpu_argv(instance.gpus, settings.gpu_request),
        f"--env-file={Paths().env(instance.name)}",
        *mount_argv(instance.name, stored.path, settings, beside.mounts),
        "--log-driver=journald",
        f"--log-opt=tag={journal_tag(instance.name)}",
        *command,
    ]


def _script(engine: Adapter, rank: Rank | None, *, configured: bool) -> str:
    """The shell script that starts the engine, with files that only the container's memory has: the configuration file
    if `configured`, and the secret of an executor. Empty where there is neither."""
    executor = engine.gangs.executors.get(rank.executor) if rank else None
    start = f'exec {engine.program} "$@"'
    before = "umask 077;"
    if configured:
        start += f" {engine.config_file.flag} {CONFIG_FILE}"
        before += f' printf %s "${ENGINE_CONFIG}" >{CONFIG_FILE}; unset {ENGINE_CONFIG};'
    if rank and executor:
        start = executor.script(rank, start)
    return f"{before} {start}" if configured or executor else ""


def user_argv(settings: Settings) -> str:
    """The argument of `docker` with the user of an engine."""
    return f"--user={settings.uid}:{settings.gid}"


def ulimit_argv(settings: Settings) -> list[str]:
    """The arguments of `docker` with an engine's limits."""
    return [f"--ulimit={name}={value}" for name, value in sorted(settings.ulimits.items())]


def mount_argv(name: str, model_path: str, settings: Settings, more: Sequence[str] = ()) -> list[str]:
    """The arguments of `docker` that mount the models and the compile cache of an instance, and `more` paths."""
    # All models, at the same paths as outside: a model may have links to files of another model.
    sources = [settings.store_path, *([settings.fast_path] if settings.fast_path else [])]
    if not any(model_path.startswith(f"{source}/") for source in sources):
        sources.append(model_path)
    sources += more
    cache = cache_path(name, settings)
    return [
        *(f"--mount=type=bind,source={source},target={source},readonly" for source in sources),
        f"--mount=type=bind,source={cache},target={cache}",
    ]


def _unit(release: Release, timeout: int | str | None = None) -> str:
    name, number = release.instance, release.number
    timeout = timeout or unit_text.start_timeout(release.start_timeout, gang=release.gang is not None)
    command = Paths().command
    create = " \\\n    ".join(systemd_quote(argument) for argument in release.container_argv)
    # The window must hold START_BURST starts, each as slow as start_timeout allows.
    window = START_BURST * (PREPARE_TIMEOUT + release.start_timeout + RESTART_DELAY)
    return f"""\
# Managed by the Ansible collection baremetal.inference: release {number} of instance {name}.
[Unit]
Description={release.adapter.title} instance {name} ({release.model})
Wants=docker.service network-online.target
After=docker.service network-online.target
StartLimitBurst={START_BURST}
StartLimitIntervalSec={window}

[Service]
Type=notify
NotifyAccess=main
ExecStartPre={command} prepare {name} --release {number}
ExecStartPre=/usr/bin/docker {create}
ExecStart={command} supervise {name} --release {number}
ExecStopPost=-{command} clear {name}
Restart=always
RestartSec={RESTART_DELAY}
TimeoutStartSec={timeout}
TimeoutStopSec={release.drain_timeout + release.adapter.stop.kill_grace + CLEAN_UP}
{SANDBOX if release.gang is None or release.gang.leads else FOLLOWER_SANDBOX}
[Install]
WantedBy=inference.target
"""
