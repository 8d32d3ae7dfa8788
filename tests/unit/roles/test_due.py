# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What makes the roles model_store, vllm and recovery due, and that a role that is not due changes nothing.

Each host differs in one thing from what it must be. The modules are stand-ins.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import yaml

from .conftest import ROOT

# The scenario `rolling` runs these roles with the newest ansible-core.
pytestmark = pytest.mark.once

Call = dict[str, Any]

DIGEST = f"@sha256:{'0' * 64}"

SAY = {
    "ansible.builtin.debug": {
        "msg": "due on {{ inventory_hostname }}: {{ model_store_due }} {{ vllm_due }} {{ recovery_checked.due }}."
    }
}

SAY_STORE = {
    "ansible.builtin.debug": {
        "msg": "{% for host in ansible_play_hosts %}{{ host }}: {{ hostvars[host].model_store_due }} {% endfor %}"
    },
    "run_once": True,
}

MODULES = (
    *(
        "engine_facts",
        "engine_image",
        "engine_plan",
        "engine_release",
        "engine_service",
        "model",
        "model_facts",
        "model_fast_copy",
    ),
    *("model_fetch", "model_share", "model_variants", "node_agent", "node_recovery", "node_tool"),
)

PLAN: Call = {"places": {}, "coming": {}, "transfers": [], "fetches": [], "remotes": {}, "copies": [], "problems": []}
HUB = {"qwen": {"key": "k1", "revision": "r1"}}
RELEASE = {"name": "main", "active": 1, "wanted": 2, "pending": True, "staged": True, "pin": "", "differences": ["- a"]}

SOUND: Mapping[str, Call] = {
    "model": {**PLAN, "rsync": "/usr/bin/rsync"},
    "model_facts": {"facts": {}, "problems": []},
    "model_fast_copy": {"due": False},
    "engine_image": {"missing": []},
    "engine_plan": {
        "image_space": {},
        "agent_due": False,
        "tool_due": False,
        "services_due": False,
        "starts": [],
        "plans": [],
        "gangs": [],
        "problems": [],
    },
    "node_tool": {"files": []},
    "model_variants": {"published": [], "places": {}},
    "engine_release": {"due": False, "releases": [], "orphans": [], "bridges": []},
    "engine_service": {"due": False, "started": []},
    "node_recovery": {"due": False},
}
"""What the modules answer where nothing differs."""

DIFFERENCES: Mapping[str, tuple[str, Call, str]] = {
    # By host: the module that finds the difference, its answer, and what is due: model_store, vllm, recovery.
    "sound": ("model", {}, "False False False"),
    "coming": ("model", {"coming": {"tiny": "abc"}}, "True True False"),
    "fast": ("model_fast_copy", {"due": True}, "True False False"),
    "image": ("engine_plan", {"image_space": {"/var/lib/docker": 30}}, "False True False"),
    "agent": ("engine_plan", {"agent_due": True}, "False True False"),
    "tool": ("engine_plan", {"tool_due": True}, "False True False"),
    "variant": ("model_variants", {"published": ["/mnt/models/bot/abc"]}, "False True False"),
    "release": ("engine_release", {"due": True}, "False True False"),
    "service": ("engine_plan", {"services_due": True, "starts": ["main"]}, "False True False"),
    "recovery": ("node_recovery", {"due": True}, "False False True"),
    "pending": ("engine_release", {"releases": [RELEASE], "orphans": ["old"]}, "False False False"),
}


def role(name: str, entry: str = "main") -> Call:
    return {"ansible.builtin.include_role": {"name": f"baremetal.inference.{name}", "tasks_from": entry}}


PREFLIGHT = [role("vllm", "preflight"), role("model_store", "preflight"), role("vllm", "compare")]
# A stand-in cannot run in the background, as the copies of `fast` do.
CHANGE = [{**role(name), "when": "inventory_hostname != 'fast'"} for name in ("model_store", "vllm")]

VARIABLES: Call = {
    "models": {"tiny": {"model": "/srv/tiny"}, "bot": {"base": "tiny", "system-prompt": "Be kind."}},
    "model_store_models": {"tiny": {"model": "/srv/tiny"}},
    "model_store_hub_client_config": "/root/.docker/config.json",
    "model_store_fast_path": "{{ '/mnt/nvme' if inventory_hostname == 'fast' else '' }}",
    "vllm_models": "{{ models if inventory_hostname == 'variant' else {} }}",
    "vllm_models_coming": "{{ model_store_coming | default({}) }}",
    "vllm_model_places": "{{ model_store_places | default({}) }}",
    "vllm_instances": [{"name": "main", "model": "bot", "port": 5005}],
    "vllm_image": f"registry.example/vllm{DIGEST}",
    "vllm_store_path": "/mnt/models",
    "vllm_user": "inference",
    "vllm_docker_data_root": "/var/lib/docker",
    "vllm_docker_client_config": "/root/.docker/config.json",
}


@pytest.fixture
def stage(staged: Callable[[Sequence[str]], Any]) -> Any:
    return staged(MODULES)


def run(stage: Any, tasks: Sequence[Call], hosts: Sequence[str], more: Sequence[tuple[Call, Call]]) -> tuple[bool, str]:
    """Run a play on hosts whose modules find nothing to do, except for the answers of `more`."""
    sound = [({"module": module}, answer) for module, answer in SOUND.items()]
    play = {"hosts": "all", "vars": VARIABLES, "tasks": tasks}
    found: tuple[bool, str] = stage.run([play], "\n".join(hosts), seen=[*sound, *more])
    return found


def test_each_difference_makes_its_role_due_and_no_other_host_is_changed(stage: Any) -> None:
    answers = [({"module": module, "on": host}, more) for host, (module, more, _due) in DIFFERENCES.items()]
    tasks = [*PREFLIGHT, role("recovery", "preflight"), SAY, *CHANGE]
    succeeded, output = run(stage, tasks, list(DIFFERENCES), answers)
    assert succeeded, output
    for host, (_module, _more, due) in DIFFERENCES.items():
        assert f"due on {host}: {due}." in output, output
    # What waits is reported where nothing is due.
    assert "main on pending serves release 1; release 2 is staged and pending" in output
    assert "pending still has old, which the inventory does not declare" in output
    assert "on sound serves" not in output and "sound still has" not in output
    # The fit is checked only where an engine would start.
    assert {call["on"] for call in stage.calls(module="engine_plan") if "strict" not in call} == {"coming", "service"}
    # The preflight calls modules in check mode only, and only hosts that are due are changed.
    due_hosts = {host for host, (_module, _more, due) in DIFFERENCES.items() if due.split()[1] == "True"}
    for module in ("engine_image", "node_tool", "node_agent", "engine_release", "engine_service"):
        assert {call["on"] for call in stage.calls(module=module, check_mode=False)} == due_hosts, module
    assert [call["on"] for call in stage.calls(module="model") if call.get("state") != "planned"] == ["coming"]
    assert not stage.calls(module="node_recovery", check_mode=False)


@pytest.mark.parametrize(
    ("tag", "changed"),
    [
        ("vllm_install", {"engine_image", "node_tool", "node_agent"}),
        ("vllm_configure", {"engine_release"}),
        ("vllm_service", {"node_tool", "node_agent", "engine_release", "engine_service"}),
        ("recovery_install", {"node_recovery"}),
    ],
)
def test_a_run_with_one_tag_changes_only_the_part_of_that_tag(stage: Any, tag: str, changed: set[str]) -> None:
    """The play enters the roles like the site: no preflight ran before. A tag of another role compares no engines."""
    tasks = [{**role(name), "tags": ["always"]} for name in ("model_store", "vllm", "recovery")]
    sound = [({"module": module}, answer) for module, answer in SOUND.items()]
    play = {"hosts": "all", "vars": VARIABLES, "tasks": tasks}
    seen = [*sound, ({"module": "engine_plan"}, {"agent_due": True})]
    succeeded, output = stage.run([play], "a", "--tags", tag, seen=seen)
    assert succeeded, output
    assert {call["module"] for call in stage.calls(check_mode=False)} - {"model", "engine_plan"} == changed
    assert bool(stage.calls(module="engine_plan")) is tag.startswith("vllm")


def test_nodes_that_have_a_model_share_it_with_a_node_that_fetches_it(stage: Any) -> None:
    """No node is due if all nodes have the hub's model."""
    remotes: Call = {"remotes": HUB}
    fetches: Call = {"coming": {"qwen": "REVISION"}, "fetches": [{"name": "qwen"}]}
    answers = [({"module": "model", "on": host}, remotes) for host in ("a", "b")]
    succeeded, output = run(stage, [*PREFLIGHT, SAY_STORE], ["a", "b"], answers)
    assert succeeded and "a: False b: False" in output, output
    answers = [({"module": "model", "on": "a"}, remotes), ({"module": "model", "on": "b"}, {**remotes, **fetches})]
    succeeded, output = run(stage, [*PREFLIGHT, SAY_STORE], ["a", "b", "c"], answers)
    assert succeeded and "a: True b: True c: False" in output, output


SITE = {
    "models": {"tiny": {"model": "/srv/tiny"}},
    "instances": [{"name": "main", "model": "tiny", "port": 5005}],
    "engine_image": VARIABLES["vllm_image"],
    "ansible_become": False,
    **{f"{name}_due": False for name in ("common", "nvidia_driver", "docker")},
}
ENTER: list[Call] = [
    {"ansible.builtin.include_tasks": "tasks/node_roles.yml"},
    {"ansible.builtin.include_role": {"name": "baremetal.inference.{{ item[0] }}", "tasks_from": "{{ item[1] }}"}},
]
ENTER[1]["loop"] = "{{ site_while_loading }}"


WAITED: Sequence[tuple[Call, Call]] = [({"module": "engine_image", "wait_seconds": 20}, {"missing": []})]
"""The answer of the wait for the pulls in the background, after which the node has all images."""


def enter(
    stage: Any,
    *options: str,
    image: bool = True,
    failures: Sequence[Call] = (),
    nodes: str = "a",
    more: Sequence[tuple[Call, Call]] = (),
) -> tuple[bool, str]:
    """The site enters the roles. The nodes lack the model and, if `image` is false, also the engine's image."""
    answers = {**SOUND, "model": {**SOUND["model"], "coming": {"tiny": "abc"}}}
    if not image:
        answers["engine_plan"] = {**SOUND["engine_plan"], "image_space": {"/var/lib/docker": 30}}
        missing = [SITE["engine_image"]]
        answers["engine_image"] = {"changed": True, "missing": missing, "pulls": missing}
        more = [*WAITED, *more]
    seen = [({"module": module}, answer) for module, answer in answers.items()]
    tasks = [*PREFLIGHT, role("recovery", "preflight"), *ENTER]
    seen += [({"module": "node_recovery"}, {"due": True}), *more]
    play = {"hosts": "all", "roles": ["site_variables"], "tasks": tasks}
    variables = ["--extra-vars", json.dumps(SITE)]
    hosts = f"[inference]\n{nodes}"
    done: tuple[bool, str] = stage.run([play], hosts, *variables, *options, seen=seen, failures=failures)
    return done


def steps(stage: Any) -> list[str]:
    """The calls that change the node, in order."""
    calls = [
        call for call in stage.calls() if not call["check_mode"] and call.get("state") not in ("planned", "checked")
    ]
    words = {"engine_image": "background", "engine_service": "state"}
    return [
        " ".join(str(part) for part in (call["module"], call.get(words.get(call["module"], ""))) if part)
        for call in calls
    ]


def test_other_roles_go_on_while_docker_pulls_and_engines_load(stage: Any) -> None:
    succeeded, output = enter(stage, image=False)
    assert succeeded, output
    during_the_pull = ["engine_image True", "model", "node_tool", "node_agent", "engine_image"]
    during_the_load = [
        "engine_release",
        "engine_service started",
        "node_recovery",
        "engine_facts",
        "engine_service ready",
    ]
    changes = [step for step in steps(stage) if step not in ("engine_plan", "model_facts")]
    assert changes == during_the_pull + during_the_load


def test_a_run_does_not_wait_for_an_image_that_is_there(stage: Any) -> None:
    succeeded, output = enter(stage)
    assert succeeded and [step for step in steps(stage) if "image" in step] == ["engine_image True"], output
    assert steps(stage)[-1] == "engine_service ready"


def test_check_mode_reports_a_missing_image_once(stage: Any) -> None:
    succeeded, output = enter(stage, "--check", image=False)
    assert succeeded, output
    (call,) = stage.calls(module="engine_image")
    assert call["background"] and call["check_mode"], call


def test_each_node_pulls_the_images_of_its_instances_in_one_call(stage: Any) -> None:
    own = [f"registry.example/{name}{DIGEST}" for name in ("b", "c", "gone")]
    instances = [
        {"name": "main", "model": "tiny", "port": 5005},
        {"name": "side", "model": "tiny", "port": 5006, "image": "{{ own[inventory_hostname] }}"},
        {"name": "last", "model": "tiny", "port": 5007, "image": own[2], "state": "absent"},
    ]
    given = json.dumps({"instances": instances, "own": dict(zip("ab", own, strict=False))})
    succeeded, output = enter(stage, "--extra-vars", given, image=False, nodes="a\nb")
    assert succeeded, output
    for node, image in zip("ab", own, strict=False):
        begun, waited = stage.calls(module="engine_image", on=node)
        assert begun["names"] == waited["names"] == [SITE["engine_image"], image], (begun, waited)
        assert begun["background"] and waited["wait_seconds"], (begun, waited)


def test_a_run_waits_again_while_a_pull_goes_on(stage: Any) -> None:
    more = [
        ({"module": "engine_image", "wait_seconds": 3600}, {"under_way": [SITE["engine_image"]], "msg": "Goes on."})
    ]
    options = ["--extra-vars", json.dumps({"__vllm_wait_seconds": 3600})]
    succeeded, output = enter(stage, *options, image=False, more=more)
    assert not succeeded and "Goes on." in output, output
    assert len(stage.calls(module="engine_image", wait_seconds=3600)) == 3, "a call, and 2 retries of 3600 s"


def test_a_pull_that_failed_in_the_background_is_repeated_and_stops_the_node(staged: Callable[..., Any]) -> None:
    """The task that begins the pull does not wait for its result. A stand-in cannot run with `async`."""
    path = "roles/vllm/tasks/images.yml"
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
    waited = [line for line in lines if not line.startswith(("  async:", "  poll:"))]
    assert len(waited) == len(lines) - 2
    stage = staged(MODULES, {path: "\n".join(waited)})
    failed: tuple[Call, Call] = ({"module": "engine_image", "wait_seconds": 20}, {"missing": [SITE["engine_image"]]})
    again: Call = {"module": "engine_image", "begun": [SITE["engine_image"]]}
    succeeded, output = enter(stage, image=False, failures=[again], more=[failed])
    assert not succeeded and "engine_image was told to fail" in output
    assert steps(stage)[-2:] == ["engine_image"] * 2, "models, node tool and agent are there"


KEYS = ["--extra-vars", json.dumps({"engine_image_keys": [{"key": "public"}], "docker_insecure_registries": ["r"]})]


def test_each_pull_verifies_the_image(stage: Any) -> None:
    succeeded, output = enter(stage, *KEYS, image=False)
    assert succeeded, output
    calls = stage.calls(module="engine_image")
    assert calls[0]["verify_only"] and [call.get("verify_only") for call in calls[1:]] == [None] * 2, calls
    for call in calls:
        assert (call["signatures"]["keys"], call["signatures"]["insecure"]) == ([{"key": "public"}], ["r"]), call


def test_an_unsigned_image_ends_the_run_before_the_first_change(stage: Any) -> None:
    succeeded, output = enter(stage, *KEYS, image=False, failures=[{"module": "engine_image", "verify_only": True}])
    assert not succeeded and "engine_image was told to fail" in output
    assert steps(stage) == ["engine_image"]


def test_a_restore_pulls_the_images_of_the_snapshot_in_one_call(stage: Any) -> None:
    plays = yaml.safe_load((ROOT / "playbooks/restore.yml").read_text(encoding="utf-8"))
    blocks = [task.get("block", []) for play in plays for task in play.get("tasks", [])]
    (pull,) = (task for block in blocks for task in block if task["name"] == "Pull the images")
    images = [f"registry.example/{name}{DIGEST}" for name in "xy"]
    pulls = [({"module": "engine_image"}, {"missing": images, "pulls": images}), *WAITED]
    succeeded, output = run(
        stage, [{"ansible.builtin.set_fact": {"backup_restore_images": images}}, pull], ["a"], pulls
    )
    assert succeeded, output
    begun, waited = stage.calls(module="engine_image")
    assert begun["names"] == waited["names"] == images, (begun, waited)
    assert begun["background"] and waited["wait_seconds"], (begun, waited)


@pytest.mark.full
def test_every_mistake_of_the_store_is_reported_at_once_before_the_first_fetch(stage: Any) -> None:
    problem = [({"module": "model"}, {"problems": ["models.tiny: is gone"]})]
    variables = {"model_store_path": "models", "model_store_keep": 0}
    tasks = [{**role("model_store", "preflight"), "vars": variables}]
    succeeded, output = run(stage, tasks, ["a"], problem)
    assert not succeeded and not stage.calls(module="model_fetch"), output
    for words in ("model_store_path: 'models': must be", "model_store_keep: 0: must be", "models.tiny: is gone"):
        assert words in output, output
