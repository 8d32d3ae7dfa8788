# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The renderer: the unit and the environment of a release, and which changes make another release."""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
from ansible_collections.baremetal.inference.plugins.module_utils.engine.environment import ENGINE_CONFIG
from ansible_collections.baremetal.inference.plugins.module_utils.engine.gang.members import Gang, Member
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import (
    GANG_LABEL,
    Beside,
    Release,
    Rendered,
    Settings,
    bridge_of,
    render,
)
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored_model import StoredModel

INSTANCE = Instance(name="main", model="tiny-a", port=5005, accelerator="cpu")
STORED = StoredModel("/mnt/models/tiny-a/abc", "abc")
IMAGE = "registry.example.com/vllm@sha256:" + "0" * 64
RECORDED = sorted((Path(__file__).parent / "data").glob("release-*.json"))
SETTINGS = Settings(environment={"VLLM_API_KEY": "s3cret-value"})


def rendered(
    instance: Instance = INSTANCE,
    arguments: Sequence[str] = (),
    stored: StoredModel = STORED,
    settings: Settings = SETTINGS,
    number: int = 1,
    flags: dict[str, Any] | None = None,
) -> Rendered:
    return render(instance, arguments, stored, IMAGE, settings, number=number, flags=flags)


def exec_lines(unit: str, key: str) -> list[list[str]]:
    joined = unit.replace("\\\n", " ")
    return [shlex.split(line.partition("=")[2]) for line in joined.splitlines() if line.startswith(f"{key}=")]


def test_the_unit_has_the_exact_container_command() -> None:
    result = rendered(arguments=["--dtype", "float32"])
    prepare, create = exec_lines(result.unit, "ExecStartPre")
    assert exec_lines(result.unit, "ExecStopPost") == [["-/usr/local/bin/inferctl", "clear", "main"]]
    assert prepare == ["/usr/local/bin/inferctl", "prepare", "main", "--release", "1"]
    assert create == ["/usr/bin/docker", *result.release.container_argv]
    assert create[-len(result.release.engine_argv) :] == result.release.engine_argv
    assert result.release.engine_argv[:5] == ["serve", STORED.path, "--served-model-name", "main", "tiny-a"]
    assert create[-len(result.release.engine_argv) - 1] == IMAGE


def test_no_secret_leaves_the_environment_file() -> None:
    result = rendered()
    assert "VLLM_API_KEY=s3cret-value\n" in result.environment
    assert "VLLM_API_KEY" in result.release.environment_keys
    assert "s3cret" not in result.unit
    assert "s3cret" not in result.release.to_json()


def test_an_engine_that_accepts_several_keys_reads_them_from_a_file_in_memory() -> None:
    keys = '{"api-key": ["s3cret-value", "s3cret-before"]}'
    settings = Settings(environment={**SETTINGS.environment, "INFERENCE_ENGINE_CONFIG": keys})
    result = rendered(settings=settings)
    assert f"INFERENCE_ENGINE_CONFIG={keys}\n" in result.environment
    assert "s3cret" not in result.unit and "s3cret" not in result.release.to_json()
    for release in (result.release, bridge_of(result.release, result.environment, 5105, []).release):
        image = release.container_argv.index(IMAGE)
        script, name, *arguments = release.container_argv[image + 2 :]
        assert release.container_argv[image - 1] == "--entrypoint=/bin/sh"
        assert (name, arguments) == ("vllm", release.engine_argv)
        assert script.endswith('exec vllm "$@" --config /run/inference/engine.yaml')
        assert "--mount=type=tmpfs,destination=/run/inference" in release.container_argv
    _prepare, create = exec_lines(result.unit, "ExecStartPre")
    # systemd reads a doubled sign as one.
    assert [word.replace("%%", "%").replace("$$", "$") for word in create[1:]] == result.release.container_argv
    assert result.release.id != rendered().release.id


def test_what_runs_changes_the_id_and_the_number_does_not() -> None:
    base = rendered().release.id
    assert rendered(number=7).release.id == base
    changed = [
        rendered(arguments=["--dtype", "half"]),
        rendered(stored=StoredModel(STORED.path, "def")),
        rendered(instance=dataclasses.replace(INSTANCE, port=5006)),
        rendered(settings=dataclasses.replace(SETTINGS, environment={"VLLM_API_KEY": "other"})),
        rendered(settings=dataclasses.replace(SETTINGS, drain_timeout=5)),
    ]
    assert len({base, *(item.release.id for item in changed)}) == len(changed) + 1


def test_ids_are_those_of_the_first_version() -> None:
    """Version 0.1.0 made these ids. Another id for the same input would make an update due on every node."""
    cpu = rendered(arguments=["--dtype", "float32"], flags={"dtype": "float32"})
    assert cpu.release.id == "39a9fd2ae46f7f5dd5cab79cffe2ce026de89831f9c2e806dc92ef5458bffe79"
    instance = dataclasses.replace(INSTANCE, accelerator="nvidia", gpus=("0", "GPU-1b2c"))
    settings = Settings(uid=77, fast_path="/mnt/nvme/models", memory="8g", cap_add=["IPC_LOCK"], gpu_request="runtime")
    full = rendered(instance, ["--max-model-len", "512"], settings=settings)
    assert full.release.id == "15478467c6c520f28c8b4b091ea399bf9161d2e7076fdab13594d105fe411a6c"
    bridge = bridge_of(full.release, full.environment, 5105, ("2", "3"))
    assert bridge.release.id == "3feb5e0bf96d0d1392fa156e7913cf17f47475d55031d9d5f1d489d9a8642cbd"


def test_gpus_are_asked_for_by_cdi_name() -> None:
    instance = dataclasses.replace(INSTANCE, accelerator="nvidia", gpus=("0", "GPU-1b2c"))
    argv = rendered(instance=instance).release.container_argv
    assert "--device=nvidia.com/gpu=0" in argv
    assert "--device=nvidia.com/gpu=GPU-1b2c" in argv
    assert not [argument for argument in argv if "VISIBLE" in argument or "runtime" in argument]


def test_where_docker_has_no_cdi_the_runtime_of_nvidia_is_asked() -> None:
    settings = dataclasses.replace(SETTINGS, gpu_request="runtime")
    instance = dataclasses.replace(INSTANCE, accelerator="nvidia", gpus=("0", "GPU-1b2c"))
    argv = rendered(instance=instance, settings=settings).release.container_argv
    assert "--runtime=nvidia" in argv
    assert "--env=NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=0,nvidia.com/gpu=GPU-1b2c" in argv
    assert not [argument for argument in argv if argument.startswith("--device")]
    # Without GPUs, the way to request GPUs makes no other release.
    assert rendered(settings=settings).release.id == rendered().release.id


def test_a_model_outside_the_store_gets_a_mount_of_its_own() -> None:
    inside = rendered().release.container_argv
    outside = rendered(stored=StoredModel("/srv/nfs/m", "x")).release.container_argv
    mount = "--mount=type=bind,source=/srv/nfs/m,target=/srv/nfs/m,readonly"
    assert mount in outside
    assert set(outside) - set(inside) >= {mount}


def test_with_a_fast_path_both_roots_are_mounted_and_the_model_is_read_from_the_fast_one() -> None:
    fast = dataclasses.replace(SETTINGS, fast_path="/mnt/nvme/models")
    release = rendered(settings=fast).release
    path = "/mnt/nvme/models/tiny-a/abc"
    assert (release.engine_argv[1], release.model_path) == (path, path)
    mounts = [each for each in release.container_argv if each.startswith("--mount") and each.endswith("readonly")]
    assert mounts == [
        f"--mount=type=bind,source={root},target={root},readonly" for root in ("/mnt/models", "/mnt/nvme/models")
    ]
    outside = rendered(stored=StoredModel("/srv/nfs/m", "x"), settings=fast).release
    assert outside.model_path == "/srv/nfs/m"
    assert "--mount=type=bind,source=/srv/nfs/m,target=/srv/nfs/m,readonly" in outside.container_argv


def test_the_time_limits_of_a_unit_are_longer_than_those_of_its_engine() -> None:
    """A drain fits into the unit's stop timeout, a load into the unit's start timeout, and the allowed number of the
    slowest starts into the window of the start limit."""
    unit = rendered(settings=dataclasses.replace(SETTINGS, drain_timeout=100, start_timeout=600)).unit
    values = dict(line.split("=", 1) for line in unit.splitlines() if "=" in line and " " not in line)
    assert int(values["TimeoutStopSec"]) > 100 + 30
    assert int(values["TimeoutStartSec"]) > 600
    assert int(values["StartLimitIntervalSec"]) >= int(values["StartLimitBurst"]) * (600 + int(values["RestartSec"]))


def test_an_environment_value_is_one_line() -> None:
    with pytest.raises(InputError) as caught:
        rendered(settings=Settings(environment={"TOKEN": "top\nsecret"}))
    assert "TOKEN" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_release_is_read_as_it_was_written() -> None:
    settings = dataclasses.replace(SETTINGS, cap_add=["IPC_LOCK"], ulimits={"memlock": "-1"}, memory="8g", uid=77)
    flags = {"dtype": "float32", "enforce-eager": True, "stop": ["a", "b"]}
    release = rendered(arguments=["--dtype", "float32"], settings=settings, flags=flags).release
    assert (release.flags, release.arguments) == (flags, ["--dtype", "float32"])
    assert release.settings == dataclasses.replace(settings, environment={}, cap_add=("IPC_LOCK",))
    assert Release.from_json(release.to_json()) == release
    damaged = {**json.loads(release.to_json()), "settings": {"ulimits": 1}}
    with pytest.raises(ValueError, match="damaged settings"):
        Release.from_json(json.dumps(damaged))
    damaged = {**json.loads(release.to_json()), "port": "5005", "gpus": None}
    with pytest.raises(ValueError, match="has values of another type: port, gpus"):
        Release.from_json(json.dumps(damaged))
    with pytest.raises(ValueError, match="schema"):
        Release.from_json('{"schema": 99}')
    with pytest.raises(ValueError, match="lacks"):
        Release.from_json('{"schema": 1}')


def test_an_item_of_another_type_is_damage() -> None:
    """A truth value in place of a number is damage, too, although Python takes it for a number."""
    items = {"port": True, "engine_argv": ["serve", 1], "gpus": [0], "lora": {"x": None}, "warm_up": ["hi"]}
    damaged = {**json.loads(rendered().release.to_json()), **items}
    with pytest.raises(ValueError, match=r"has values of another type: port, engine_argv, gpus, lora, warm_up$"):
        Release.from_json(json.dumps(damaged))


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.stem)
def test_releases_of_older_versions_are_read(recorded: Path) -> None:
    """A node keeps its releases when the collection is upgraded: recorded files are added, and never changed."""
    text = recorded.read_text()
    read = json.loads(Release.from_json(text).to_json())
    assert read.items() >= json.loads(text).items()


def test_a_newer_version_may_have_added_a_field() -> None:
    text = RECORDED[0].read_text()
    assert Release.from_json(json.dumps({**json.loads(text), "later": 1})) == Release.from_json(text)
    newer: Any = dataclasses.make_dataclass("Newer", [("later", int, 7)], bases=(Release,), frozen=True)
    assert newer.from_json(text).later == 7


def test_a_bridge_differs_from_its_release_only_in_name_number_and_port() -> None:
    original = rendered(arguments=["--dtype", "float32"], number=7)
    bridge = bridge_of(original.release, original.environment, 5105, (), 1)
    assert bridge.environment == original.environment
    prepare, create = exec_lines(bridge.unit, "ExecStartPre")
    assert prepare == ["/usr/local/bin/inferctl", "prepare", "main_bridge", "--release", "1"]
    assert create == ["/usr/bin/docker", *bridge.release.container_argv]
    pairs = zip(original.release.container_argv, bridge.release.container_argv, strict=True)
    assert [after for before, after in pairs if before != after] == [
        "--name=vllm-main_bridge",
        "--label=inference.release=1",
        "--env-file=/etc/inference/env/main_bridge.env",
        "--log-opt=tag=vllm@main_bridge",
        "5105",
    ]
    assert bridge.release.served_names == ["main", "tiny-a"] and bridge.release.unit == "vllm@main_bridge.service"
    assert Release.from_json(bridge.release.to_json()) == bridge.release


@pytest.mark.parametrize("request_", ["cdi", "runtime"])
def test_a_bridge_has_its_own_gpus(request_: str) -> None:
    instance = dataclasses.replace(INSTANCE, accelerator="nvidia", gpus=("0", "1"))
    original = rendered(instance, settings=dataclasses.replace(SETTINGS, gpu_request=request_))
    bridge = bridge_of(original.release, original.environment, 5105, ("2", "3"))
    there = dataclasses.replace(instance, gpus=("2", "3"))
    wanted = rendered(there, settings=dataclasses.replace(SETTINGS, gpu_request=request_))
    own = [argument for argument in bridge.release.container_argv if "nvidia" in argument.lower()]
    assert own == [argument for argument in wanted.release.container_argv if "nvidia" in argument.lower()]
    assert bridge.release.gpus == ["2", "3"]
    same = bridge_of(original.release, original.environment, 5105, ("0", "1"))
    assert same.release.id != bridge.release.id


def test_adapters_are_part_of_a_release() -> None:
    path = "/mnt/models/legal/0123456789ab"
    words = ["--enable-lora", "--lora-modules", f"legal={path}"]
    release = render(INSTANCE, words, STORED, IMAGE, SETTINGS, beside=Beside(lora={"legal": path})).release
    assert release.served_names == ["main", "tiny-a"] and release.lora == {"legal": path}
    assert Release.from_json(release.to_json()).lora == {"legal": path}
    assert bridge_of(release, "", 5105, ()).release.lora == {"legal": path}
    assert release.id != rendered().release.id
    # Other releases stay byte for byte as they were.
    text = rendered().release.to_json()
    later = ("lora", "draft", "memory_limit", "mounts", "warm_up", "read_only")
    assert not [name for name in later if f'"{name}"' in text]


def test_a_draft_is_part_of_a_release_and_of_its_bridge() -> None:
    path = "/mnt/models/small/0123456789ab"
    release = render(INSTANCE, [], STORED, IMAGE, SETTINGS, beside=Beside(draft=path)).release
    assert Release.from_json(release.to_json()).draft == path
    assert bridge_of(release, "", 5105, ()).release.draft == path


GANG = Gang("main", 0, (Member("n1", 0, "10.0.0.1"), Member("n2", 1, "10.0.0.2")), 5110, 29510)


def member(rank: int, netdev: str = "bond0", tos: str = "106", **changes: Any) -> Rendered:
    """The release of one member, which may have other GPUs and settings than the others."""
    network = {"NCCL_SOCKET_IFNAME": f"={netdev}", "GLOO_SOCKET_IFNAME": netdev, "NCCL_IB_TC": tos}
    gang = replace(GANG, rank=rank)
    instance = replace(INSTANCE, gpus=(str(rank),), nodes=("n1", "n2"), gang_port=5110, rendezvous_port=29510)
    settings = replace(SETTINGS, address=f"192.0.2.{rank}", **changes)
    return render(instance, ["--dtype", "half"], STORED, IMAGE, settings, gang=gang, network=network)


def test_the_members_of_a_gang_have_one_digest() -> None:
    leader, follower = member(0), member(1, "eth7", memory="200g")
    assert leader.release.id != follower.release.id
    digests = {one.release.gang.digest for one in (leader, follower) if one.release.gang}
    (digest,) = digests
    for one in (leader, follower):
        assert f"--label={GANG_LABEL}={digest}" in one.release.container_argv and digest in one.unit
    assert "--headless" not in leader.release.engine_argv and leader.release.engine_argv[-1] == "29510"
    assert follower.release.engine_argv[-1] == "--headless"
    assert "VLLM_HOST_IP=10.0.0.2\n" in follower.environment and "GLOO_SOCKET_IFNAME=eth7\n" in follower.environment
    assert "NCCL_SOCKET_IFNAME==bond0\n" in leader.environment and "NCCL_IB_TC=106\n" in leader.environment


def test_a_member_that_runs_something_else_has_another_digest() -> None:
    other = member(1, environment={**SETTINGS.environment, "VLLM_LOGGING_LEVEL": "DEBUG"}).release
    own = member(0).release
    assert other.gang and own.gang and other.gang.digest != own.gang.digest
    # Engines with different settings of NCCL hang, or are slow.
    slow = member(1, tos="0").release
    assert slow.gang and slow.gang.digest != own.gang.digest
    # An engine on one node has another id than a member.
    assert member(0).release.id != render(INSTANCE, ["--dtype", "half"], STORED, IMAGE, SETTINGS).release.id


TOKEN = "s3cret-of-the-gang"


def by_ray(rank: int, secret: str = TOKEN, **changes: Any) -> Rendered:
    """The release of a member whose engines are placed by Ray."""
    gang = replace(GANG, rank=rank, executor="ray")
    settings = replace(SETTINGS, **changes)
    flags = {"tensor-parallel-size": 16}
    return render(INSTANCE, [], STORED, IMAGE, settings, flags=flags, gang=gang, secret=secret)


def test_an_executor_starts_the_engine_in_the_same_container() -> None:
    leader, follower = by_ray(0), by_ray(1)
    for one in (leader, follower):
        argv = one.release.container_argv
        assert "--mount=type=tmpfs,destination=/run/inference" in argv and "--entrypoint=/bin/sh" in argv
        assert argv[argv.index(IMAGE) + 1] == "-c" and "--num-gpus=8" in argv[argv.index(IMAGE) + 2]
        assert one.release.engine_argv[-2:] == ["--distributed-executor-backend", "ray"]
        assert "INFERENCE_RAY_TOKEN=s3cret-of-the-gang\n" in one.environment
        assert "s3cret-of-the-gang" not in one.unit + one.release.to_json()
    assert 'exec vllm "$@"' in " ".join(leader.release.container_argv)
    assert "exec vllm" not in " ".join(follower.release.container_argv)
    gangs = [one.release.gang for one in (leader, follower) if one.release.gang]
    assert len({one.digest for one in gangs}) == 1 and {one.executor for one in gangs} == {"ray"}
    assert gangs[0] == getattr(Release.from_json(leader.release.to_json()), "gang", None)


def test_the_executor_is_in_the_digest_and_is_recorded_only_if_there_is_one() -> None:
    flags = {"tensor-parallel-size": 16}
    plain = render(INSTANCE, [], STORED, IMAGE, SETTINGS, flags=flags, gang=GANG).release
    ray = by_ray(0, "").release
    assert plain.gang and ray.gang and plain.gang.digest != ray.gang.digest
    assert '"executor":' not in plain.to_json() and '"executor": "ray"' in ray.to_json()


def test_members_with_another_secret_have_another_digest() -> None:
    """The digest makes a rollback over a change of the secret move all members. Without a secret, the digest stays."""
    first, second, other = by_ray(0), by_ray(0, TOKEN + "x"), by_ray(1, TOKEN + "x")
    assert first.release.id != second.release.id
    digests = [one.release.gang.digest for one in (first, second, other) if one.release.gang]
    assert digests[0] != digests[1] == digests[2]
    plain = member(0).release.gang
    assert plain and plain.digest == "732d30c8223c2564440758e376f00c2433117473d896f2eb3f6d01c7f33ed9ea"


def test_an_executor_starts_after_the_configuration_file_is_written() -> None:
    environment = {**SETTINGS.environment, ENGINE_CONFIG: '{"api-key": ["a", "b"]}'}
    script = next(word for word in by_ray(0, environment=environment).release.container_argv if "umask" in word)
    assert script.index("engine.yaml") < script.index("ray start")
    assert script.endswith('exec vllm "$@" --config /run/inference/engine.yaml')


def test_only_a_followers_supervisor_may_install_units() -> None:
    """A follower's supervisor installs its leader's release from inside its unit."""
    writable = [one.unit.partition("ReadWritePaths=")[2].splitlines()[0] for one in (rendered(), *map(member, (0, 1)))]
    own = "/var/lib/inference"
    assert writable == [own, own, f"{own} /etc/systemd/system /etc/inference/env"]


def test_a_release_keeps_its_gang() -> None:
    release = member(1).release
    assert Release.from_json(release.to_json()) == release and release.gang and not release.gang.leads
    assert '"gang"' not in rendered().release.to_json() and Release.from_json(rendered().release.to_json()).gang is None


def test_a_bridge_has_the_limit_mounts_and_warm_up_of_its_release() -> None:
    beside = Beside(memory_limit="48g", mounts=["/srv/a"], warm_up=[{"prompt": "Hello"}], read_only=True)
    release = render(INSTANCE, [], STORED, IMAGE, SETTINGS, beside=beside).release
    assert Release.from_json(release.to_json()) == release
    bridge = bridge_of(release, "", 5105, ()).release
    assert (bridge.memory_limit, bridge.mounts, bridge.warm_up) == ("48g", ["/srv/a"], [{"prompt": "Hello"}])
    for made in (release, bridge):
        assert made.read_only and {"--read-only", "--tmpfs=/tmp:exec", "--memory=48g"} <= {*made.container_argv}
        assert "--mount=type=bind,source=/srv/a,target=/srv/a,readonly" in made.container_argv


def test_a_read_only_container_alone_makes_no_other_release() -> None:
    """An upgrade must not make a swap of every engine due: a release that runs keeps its unit."""
    made = render(INSTANCE, [], STORED, IMAGE, SETTINGS, beside=Beside(read_only=True))
    assert made.release.id == rendered().release.id and made.unit != rendered().unit
    assert Release.from_json(made.release.to_json()) == made.release
    assert "--read-only" not in rendered().unit and not rendered().release.read_only


def test_a_memory_limit_alone_makes_no_other_release() -> None:
    """An upgrade that computes limits, or other limits, must not make a swap of every engine due."""
    limited = render(INSTANCE, [], STORED, IMAGE, SETTINGS, beside=Beside(memory_limit="48g"))
    assert limited.release.id == rendered().release.id
    # The operator's own limit is another release.
    own = rendered(settings=dataclasses.replace(SETTINGS, memory="48g"))
    assert own.release.id != rendered().release.id
    assert own.release.memory_limit == ""
    for change in (Beside(mounts=["/srv/a"]), Beside(warm_up=[{"prompt": "a"}])):
        assert render(INSTANCE, [], STORED, IMAGE, SETTINGS, beside=change).release.id != rendered().release.id
