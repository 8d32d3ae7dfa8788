# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module engine_release, as site.yml calls it before engine_service: in check mode, then for real, then again."""

from __future__ import annotations

import json
import os
import pwd
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import basic

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.engine import compose
from ansible_collections.baremetal.inference.plugins.module_utils.engine.gang import node as gang_node
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import pins, releases
from ansible_collections.baremetal.inference.plugins.module_utils.hardware import host_memory
from ansible_collections.baremetal.inference.plugins.module_utils.node.calls import engine_plan, engine_release

from ....modules.conftest import STEPS, EngineNode, RunModule
from ...models.test_adapter_facts import write as write_adapter


def test_staging_does_not_restart_an_engine(serving_node: EngineNode) -> None:
    serving_node.entry["dtype"] = "half"
    (release,) = serving_node.call("release", check=True)["releases"]
    assert (release["active"], release["wanted"], release["pending"], release["staged"]) == (1, 2, True, False)
    assert serving_node.site() == (["release"], [])
    (release,) = serving_node.call("release", check=False)["releases"]
    assert (release["active"], release["release"], release["pending"], release["staged"]) == (1, 2, True, True)
    assert release["differences"] == ["- --dtype float32", "+ --dtype half"]
    assert serving_node.systemd.calls == []


def test_check_mode_reports_the_model_of_the_release(serving_node: EngineNode) -> None:
    (staged,) = serving_node.call("release", check=True)["releases"]
    assert (staged["model"], staged["model_path"]) == ("tiny-a", "/mnt/models/tiny-a/abc")


def test_a_variant_is_served_from_the_weights_of_its_base(serving_node: EngineNode) -> None:
    """The variant has its own name and flags. The node's model registry has both entries."""
    serving_node.models["short"] = {"base": "tiny-a", "max-model-len": 128}
    serving_node.model = "short"
    serving_node.systemd.active.clear()
    assert serving_node.site() == (list(STEPS), [])
    release = files.read_json(serving_node.paths.release("main", 2) / releases.RELEASE_FILE)
    assert release["engine_argv"][:5] == ["serve", "/mnt/models/tiny-a/abc", "--served-model-name", "main", "short"]
    assert release["engine_argv"][-4:] == ["--dtype", "float32", "--max-model-len", "128"]
    assert (release["model"], release["revision"]) == ("short", "abc")
    assert sorted(files.read_json(serving_node.paths.registry)["models"]) == ["short", "tiny-a"]


@pytest.mark.parametrize("damage", [b"", b"\xff", b'{"schema": 1}'])
def test_damaged_state_files_are_written_anew(serving_node: EngineNode, damage: bytes) -> None:
    files_of_ours = (serving_node.paths.instance("main"), serving_node.paths.registry)
    sound = [file.read_bytes() for file in files_of_ours]
    for file in files_of_ours:
        file.write_bytes(damage)
    assert serving_node.site() == (["release"], [])
    assert [file.read_bytes() for file in files_of_ours] == sound


def test_a_damaged_release_is_replaced_when_its_engine_is_down(serving_node: EngineNode) -> None:
    """The same release is staged under a new number, and the next start takes the new number."""
    file = serving_node.paths.release("main", 1) / releases.RELEASE_FILE
    file.write_text("")
    changed, warnings = serving_node.site()
    assert changed == ["release"]
    assert warnings and all(warning.startswith(f"{file} cannot be used (") for warning in warnings)
    (release,) = serving_node.call("release", check=False)["releases"]
    assert (release["active"], release["release"], release["differences"]) == (1, 2, [])
    serving_node.systemd.active.clear()
    changed, _warnings = serving_node.site()
    assert changed == ["started", "ready"]
    assert files.read_json(serving_node.paths.known_good("main"))["release"] == 2


def test_a_release_keeps_the_flags_of_its_model(serving_node: EngineNode) -> None:
    release = releases.load(serving_node.paths, "main", 1)
    assert (release.flags, release.arguments) == ({"dtype": "float32"}, ["--dtype", "float32"])


def test_a_pin_ends_when_the_inventory_asks_for_another_release(serving_node: EngineNode) -> None:
    """The pin does not come back when the inventory asks for the earlier release again."""
    serving_node.entry["dtype"] = "half"
    serving_node.site()
    pins.settle(serving_node.paths, "main", 1, "rolled back", "2026-01-01T00:00:00Z")
    assert serving_node.call("release", check=False)["releases"][0]["pin"] and serving_node.site() == ([], [])
    serving_node.entry["dtype"] = "float32"
    serving_node.call("release", check=True)
    assert pins.read(serving_node.paths, "main") is not None
    assert serving_node.site() == (["release"], [])
    assert pins.read(serving_node.paths, "main") is None
    serving_node.entry["dtype"] = "half"
    assert serving_node.call("release", check=False)["releases"][0]["pending"] is True


def test_a_release_of_the_first_version_stays_as_it_is(serving_node: EngineNode) -> None:
    """The first version recorded argv without flags, arguments and settings. A release that serves is not rewritten to
    add these."""
    file = serving_node.paths.release("main", 1) / "release.json"
    old = {key: value for key, value in files.read_json(file).items() if key not in ("flags", "arguments", "settings")}
    files.write(file, files.to_json(old))
    before = serving_node.everything()
    assert serving_node.site() == ([], [])
    assert serving_node.everything() == before


def test_adapters_are_served_by_the_engine_of_their_base(serving_node: EngineNode, tmp_path: Path) -> None:
    serving_node.models["legal"] = {"base": "tiny-a", "adapter": "/srv/legal"}
    path = write_adapter(tmp_path / "store" / "legal" / "0123456789ab")
    serving_node.places["legal"] = {"path": str(path), "revision": path.name}
    (staged,) = serving_node.call("release", check=False)["releases"]
    release = releases.load(serving_node.paths, "main", staged["release"])
    assert staged["release"] == 2 and release.lora == {"legal": str(path)}
    words = " ".join(release.engine_argv)
    assert f"--enable-lora --lora-modules legal={path} --max-lora-rank 16 --max-loras 1" in words
    assert release.flags["max-lora-rank"] == 16
    assert sorted(files.read_json(serving_node.paths.registry)["models"]) == ["legal", "tiny-a"]

    serving_node.entry["max-lora-rank"] = 8
    with pytest.raises(
        AssertionError, match=r"models\.legal: adapter: it has rank 16, more than max-lora-rank of tiny-a, 8"
    ):
        serving_node.call("release", check=False)


def test_a_draft_is_part_of_the_release(serving_node: EngineNode) -> None:
    """The release has only the weights of the draft, by their path in the store."""
    path = "/mnt/models/tiny-b/0123456789ab"
    serving_node.models |= {"tiny-b": {"model": "/srv/tiny-b"}, "bot": {"base": "tiny-b", "system-prompt": "Be kind."}}
    serving_node.entry["speculative-config"] = {"model": "bot", "num_speculative_tokens": 2}
    with pytest.raises(AssertionError, match="is not among the store's models"):
        serving_node.call("release", check=False)
    serving_node.places["tiny-b"] = {"path": path, "revision": "0123456789ab"}
    (staged,) = serving_node.call("release", check=False)["releases"]
    release = releases.load(serving_node.paths, "main", staged["release"])
    asked = json.loads(release.engine_argv[release.engine_argv.index("--speculative-config") + 1])
    assert asked == {"model": path, "num_speculative_tokens": 2} and release.draft == path
    assert release.flags["speculative-config"]["model"] == "bot"
    assert sorted(files.read_json(serving_node.paths.registry)["models"]) == ["bot", "tiny-a", "tiny-b"]


GANGS: dict[str, Any] = {
    "node": "n2",
    "group": ["n1", "n2"],
    "hosts": {
        name: {"address": address, "variable": "inference_fabric_address", "instances": []}
        for name, address in (("n1", "192.0.2.1"), ("n2", "192.0.2.2"))
    },
}


NETWORK: dict[str, Any] = {
    "nodes": {
        name: {"address": address, "netdev": netdev, "rails": [], "ports": 0, "tos": None}
        for name, address, netdev in (("n1", "192.0.2.1", "eno1"), ("n2", "192.0.2.2", "eth7"))
    },
    "variables": {"NCCL_ALGO": "Ring"},
}


def gang_options(node: EngineNode, own: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """The options with which a run stages and plans a gang. `own` are more keys of its instance."""
    ports = {"port": 5005, "gang_port": 5110, "rendezvous_port": 29510}
    big = {"name": "big", "model": "tiny-a", "accelerator": "cpu", "nodes": ["n1", "n2"], **ports, **(own or {})}
    hosts = {name: {**host, "instances": [big]} for name, host in GANGS["hosts"].items()}
    return {
        "instances": [big],
        "models": {"tiny-a": {**node.entry, "tensor-parallel-size": 2}},
        "image": "registry.example.com/vllm@sha256:00",
        "engine_version": "0.32.0",
        "user": pwd.getpwuid(os.getuid()).pw_name,
        "settings": {"cache_path": str(node.paths.root / "cache")},
        "gangs": {**GANGS, "hosts": hosts},
        "gang_key": "0123456789abcdef",
        "network": NETWORK,
        **more,
    }


def stage_gang(node: EngineNode, run_module: RunModule, **more: Any) -> dict[str, Any]:
    return run_module(engine_release, False, places=node.places, **gang_options(node, **more))


def test_a_release_of_a_gang_is_staged_on_a_member(
    fresh_node: EngineNode, run_module: RunModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gang_node, "address_problems", lambda address: [])
    assert "(site variable gang_key)" in stage_gang(fresh_node, run_module, gang_key="short")["msg"]
    own = {"big": {"VLLM_HOST_IP": "192.0.2.9"}}
    said = stage_gang(fresh_node, run_module, instance_secrets=own)
    assert "instance big: VLLM_HOST_IP: is computed" in said["msg"]
    said = stage_gang(fresh_node, run_module)
    assert said["changed"] and "0123456789abcdef" not in str(said)
    assert fresh_node.paths.gang_key.read_text() == "0123456789abcdef\n"
    assert fresh_node.paths.gang_key.stat().st_mode & 0o777 == 0o600
    release = releases.load(fresh_node.paths, "big", 1)
    assert release.gang and (release.gang.rank, len(release.gang.digest)) == (1, 64)
    assert release.engine_argv[-1] == "--headless"
    recorded = files.read_json(fresh_node.paths.instance("big"))
    assert recorded["gang"] == release.gang.to_dict() and recorded["networks"] == NETWORK["nodes"]
    environment = (fresh_node.paths.release("big", 1) / releases.ENV_FILE).read_text()
    for line in ("NCCL_SOCKET_IFNAME==eth7", "GLOO_SOCKET_IFNAME=eth7", "NCCL_ALGO=Ring", "VLLM_HOST_IP=192.0.2.2"):
        assert f"{line}\n" in environment
    assert not stage_gang(fresh_node, run_module)["changed"]
    # A run without the other node takes the networks of the last run.
    alone = {**NETWORK, "nodes": {"n2": NETWORK["nodes"]["n2"]}}
    assert not stage_gang(fresh_node, run_module, network=alone)["changed"]
    # A node that leaves its last gang does not keep the key.
    fresh_node.site()
    assert not fresh_node.paths.gang_key.exists()


@pytest.mark.parametrize("own", [{}, {"executor": "ray"}])
def test_a_plan_finds_the_staged_release_of_a_gang(
    fresh_node: EngineNode, run_module: RunModule, monkeypatch: pytest.MonkeyPatch, own: dict[str, Any]
) -> None:
    monkeypatch.setattr(gang_node, "address_problems", lambda address: [])
    monkeypatch.setattr(engine_plan, "Paths", lambda: fresh_node.paths)

    def change(**more: Any) -> dict[str, Any]:
        options = gang_options(fresh_node, own, coming={"tiny-a": "abc"}, **more)
        (plan,) = run_module(engine_plan, False, **options)["plans"]
        found: dict[str, Any] = plan["change"]
        return found

    assert stage_gang(fresh_node, run_module, own=own)["changed"]
    environment = (fresh_node.paths.release("big", 1) / releases.ENV_FILE).read_text()
    assert ("INFERENCE_RAY_TOKEN=" in environment) == bool(own)
    assert change()["desired"] == 1
    # Only Ray has a secret made from the key.
    assert change(gang_key="fedcba9876543210")["desired"] == (None if own else 1)


def test_the_network_of_a_gang_is_refused_with_all_mistakes(
    fresh_node: EngineNode, run_module: RunModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gang_node, "address_problems", lambda address: [])
    wrong = {"nodes": {}, "required": True, "variables": {"NCCL_IB_DISABLE": "1"}}
    said = stage_gang(fresh_node, run_module, network=wrong, environment={"NCCL_P2P_DISABLE": "1"})["msg"]
    for words in (
        "the network of n1, n2 is unknown: run baremetal.inference.site once with all members: -l n1,n2",
        "rdma_nccl: NCCL_IB_DISABLE: '1': switches RDMA off",
        "vllm_environment: NCCL_P2P_DISABLE: switches NVLink off",
    ):
        assert words in said, said
    said = stage_gang(fresh_node, run_module, network={**NETWORK, "required": True})["msg"]
    assert "n1, n2 have no rail; set rdma_required: false" in said
    assert releases.names(fresh_node.paths) == []


def test_only_the_environment_file_of_a_release_has_the_secrets_of_its_instance(
    serving_node: EngineNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(basic.AnsibleModule, "get_bin_path", lambda module, name: None)
    own = "registry.example.com/vllm:v0.33.0@sha256:" + "e" * 64
    serving_node.own = {"image": own, "memory": "9g", "environment": {"A": "b"}}
    (staged,) = serving_node.call("release", check=False, instance_secrets={"main": {"HF_TOKEN": "s3cret-value"}})[
        "releases"
    ]
    release = releases.load(serving_node.paths, "main", staged["release"])
    assert release.image == own and "--memory=9g" in release.container_argv
    directory = serving_node.paths.release("main", staged["release"])
    environment = directory / releases.ENV_FILE
    assert "HF_TOKEN=s3cret-value" in environment.read_text() and environment.stat().st_mode & 0o777 == 0o600
    for file in (directory / releases.RELEASE_FILE, serving_node.paths.instance("main"), serving_node.paths.registry):
        assert "s3cret" not in file.read_text()
    assert files.read_json(serving_node.paths.instance("main"))["image"] == own
    (known,) = files.read_json(serving_node.paths.registry)["own_engines"]
    assert (known["image"], known["version"]) == (own, "0.33.0")


def test_a_release_with_a_writable_container_keeps_its_unit(
    fresh_node: EngineNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upgrade of the collection must not make a serving release due. The next release has read-only files."""
    today = compose.Composed.rendered
    with monkeypatch.context() as older:
        older.setattr(
            compose.Composed, "rendered", lambda *given, **more: today(*given, **{**more, "read_only": False})
        )
        fresh_node.site()
    unit = fresh_node.paths.unit("main").read_text()
    assert "--read-only" not in unit and not releases.load(fresh_node.paths, "main", 1).read_only
    assert fresh_node.site() == ([], [])
    assert fresh_node.paths.unit("main").read_text() == unit
    fresh_node.entry["dtype"] = "half"
    (staged,) = fresh_node.call("release", check=False)["releases"]
    assert releases.load(fresh_node.paths, "main", staged["release"]).read_only
    assert any("--read-only" in line for line in staged["differences"])
    assert fresh_node.site() == ([], [])


def test_with_read_only_false_a_release_that_has_not_served_gets_a_writable_container(fresh_node: EngineNode) -> None:
    """Some Docker daemons cannot create read-only containers. The release keeps its number."""
    paths = fresh_node.paths

    def release(check: bool = False, read_only: bool = False) -> tuple[bool, str]:
        changed = fresh_node.call("release", check=check, read_only=read_only)["changed"]
        assert releases.numbers(paths, "main") == [1]
        return changed, (paths.release("main", 1) / "vllm@main.service").read_text()

    fresh_node.call("release", check=False)
    before = releases.load(paths, "main", 1)
    changed, unit = release(check=True)
    assert before.read_only and changed and "--read-only" in unit
    changed, unit = release()
    after = releases.load(paths, "main", 1)
    assert changed and "--read-only" not in unit and "--read-only" not in after.container_argv
    assert (after.read_only, after.id, after.created) == (False, before.id, before.created)
    assert not release()[0]
    # An engine that loads stays as it is. If its start has failed, the next start has the other container.
    fresh_node.call("started", check=False)
    assert release(read_only=True) == (False, unit) and paths.unit("main").read_text() == unit
    fresh_node.systemd.active.clear()
    changed, renewed = release(read_only=True)
    assert changed and "--read-only" in renewed
    fresh_node.call("started", check=False)
    assert paths.unit("main").read_text() == renewed
    # A release that has served stays as it is, whether it runs or not.
    fresh_node.call("ready", check=False)
    assert release() == (False, renewed)
    fresh_node.systemd.active.clear()
    assert release() == (False, renewed)


def test_a_plan_shows_a_staged_release_as_it_will_run(
    serving_node: EngineNode, run_module: RunModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan shows the staged memory limit and read-only files, not those of a new release."""
    monkeypatch.setattr(engine_plan, "Paths", lambda: serving_node.paths)
    monkeypatch.setattr(host_memory, "total", lambda root: 512 * 1024)
    serving_node.entry["dtype"] = "half"
    (staged,) = serving_node.call("release", check=False)["releases"]
    monkeypatch.setattr(host_memory, "total", lambda root: 100 * 1024)

    def differences(**more: Any) -> list[str]:
        given = {
            "instances": [{"name": "main", "model": "tiny-a", "port": 5005, "accelerator": "cpu"}],
            "models": serving_node.models,
            "coming": {"tiny-a": "abc"},
            "image": "registry.example.com/vllm@sha256:00",
            "engine_version": "0.32.0",
            "user": pwd.getpwuid(os.getuid()).pw_name,
            "secret_environment": {"VLLM_API_KEY": "s3cret-value"},
            "settings": {"cache_path": str(serving_node.paths.root / "cache")},
            **more,
        }
        (plan,) = run_module(engine_plan, False, **given)["plans"]
        assert plan["change"]["desired"] == 2
        found: list[str] = plan["change"]["differences"]
        return found

    assert differences() == staged["differences"] and any("--memory=487g" in line for line in staged["differences"])
    assert any(line.endswith("--read-only") for line in differences(read_only=False))
    (staged,) = serving_node.call("release", check=False, read_only=False)["releases"]
    assert differences(read_only=False) == staged["differences"]


def test_a_release_without_a_memory_limit_stays_without_a_limit(
    serving_node: EngineNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upgrade of the collection must not make a serving release due."""
    monkeypatch.setattr(host_memory, "total", lambda root: 512 * 1024)
    assert releases.load(serving_node.paths, "main", 1).memory_limit == ""
    assert serving_node.site() == ([], [])
    serving_node.entry["dtype"] = "half"
    (staged,) = serving_node.call("release", check=False)["releases"]
    assert releases.load(serving_node.paths, "main", staged["release"]).memory_limit == "487g"
    assert any("--memory=487g" in line for line in staged["differences"])
    # Another size of the node's memory changes no release that is staged.
    monkeypatch.setattr(host_memory, "total", lambda root: 100 * 1024)
    assert serving_node.site() == ([], [])


def test_a_file_of_the_controller_is_part_of_the_release(serving_node: EngineNode) -> None:
    text = "controller:/srv/t.jinja"
    serving_node.entry["chat-template"] = text
    copied = {text: {"name": "t.jinja", "digest": "ab" * 32, "source": "/srv/t.jinja", "directory": False}}
    (staged,) = serving_node.call("release", check=False, flag_files=copied)["releases"]
    release = releases.load(serving_node.paths, "main", staged["release"])
    assert release.mounts == ["/var/lib/inference/files/abababababababab"]
    # The role has not copied the file in this test, so the release is due again.
    assert serving_node.call("release", check=True, flag_files=copied)["due"] is True
