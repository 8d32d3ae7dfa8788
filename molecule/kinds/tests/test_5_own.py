# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of single instances, files of the controller, memory limits and warm-up, on real engines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from node import PROJECT, Node, changes, playbook

UPDATE = "baremetal.inference.update_model"

SECRET = "kinds-own-secret-83fa"

GIB = 1 << 30

HOST: dict[str, Any] = yaml.safe_load((PROJECT / "molecule/kinds/hosts.yml").read_text())["inference"]["hosts"]["deb13"]


def container(node: Node, instance: str) -> dict[str, Any]:
    (found,) = json.loads(node.run(f"docker inspect vllm-{instance}"))
    return dict(found)


def arguments(node: Node, instance: str) -> str:
    """The engine's command line."""
    return " ".join(container(node, instance)["Args"])


def refused(node: Node, **extra: Any) -> str:
    """Run the playbook with other input. The run must change nothing. Returns the output as one line."""
    output = node.site(check=False, **extra)
    assert changes(output) == 0, output[-3000:]
    assert SECRET not in output
    return " ".join(output.replace("\\n", " ").split())


def test_an_instance_has_its_own_settings(deb13: Node) -> None:
    own, others = container(deb13, "embed"), container(deb13, "main")
    # The inventory of the demo has 1 GiB and a limit of locked memory for all engines of a node.
    assert own["HostConfig"]["ShmSize"] == 2 * GIB and others["HostConfig"]["ShmSize"] == GIB
    assert own["Config"]["User"] == "2077:2077" != others["Config"]["User"]
    limits = {limit["Name"]: limit["Soft"] for limit in own["HostConfig"]["Ulimits"]}
    assert limits["core"] == 0 and limits["memlock"] == 8 * 1024 * 1024, "the engine lacks a limit"
    assert "KINDS_OWN=5" in own["Config"]["Env"] and f"KINDS_SECRET={SECRET}" in own["Config"]["Env"]
    assert "KINDS_OWN" not in str(others["Config"]["Env"])
    assert container(deb13, "rank")["HostConfig"]["Memory"] == 9 * GIB


def test_every_engine_has_a_memory_limit_of_at_most_the_nodes_memory(deb13: Node) -> None:
    total = int(deb13.run("awk '/^MemTotal/ {print $2}' /proc/meminfo")) * 1024
    for instance in ("main", "embed", "rank", "speech"):
        limit = container(deb13, instance)["HostConfig"]["Memory"]
        assert 2 * GIB < limit <= total, instance


def test_the_kernel_has_the_memory_limit_of_each_container(deb13: Node) -> None:
    # The files of cgroup v2 and v1.
    files = "/sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes"
    for instance in ("main", "embed", "rank", "speech"):
        limit = deb13.run(f"docker exec vllm-{instance} sh -c 'cat {files} 2>/dev/null' | head -n1", check=False)
        assert int(limit) == container(deb13, instance)["HostConfig"]["Memory"], instance


def test_no_process_log_or_readable_file_has_the_secret_of_an_instance(deb13: Node) -> None:
    assert SECRET not in deb13.run("ps axwww -o args")
    assert SECRET not in deb13.run("systemctl cat 'vllm@*'; systemctl show 'vllm@*'")
    assert SECRET not in deb13.run("journalctl --no-pager --output=export")
    places = "/etc /usr/local /var/lib/inference /run /mnt /root /tmp"
    found = deb13.run(f"grep -rlsI --exclude-dir=containerd -- {SECRET} {places}", check=False).split()
    assert found, "no file has the secret: this test searches the wrong places"
    assert not [path for path in found if int(deb13.run(f"stat -c %a {path}"), 8) & 0o077]


def test_another_secret_is_in_no_output(deb13: Node) -> None:
    instances = [
        {**each, "secret_environment": {"KINDS_SECRET": "another-secret-55"}} if each["name"] == "embed" else each
        for each in HOST["instances"]
    ]
    output = deb13.site("--check", "--diff", "-vvv", instances=instances)
    assert "environment: KINDS_SECRET" in output
    assert SECRET not in output and "another-secret-55" not in output


def test_files_of_the_controller_reach_the_engines(deb13: Node) -> None:
    cache = Path("/var/lib/inference/files")
    (template,) = [word for word in arguments(deb13, "main").split() if word.endswith("/chat_template.jinja")]
    assert Path(template).parent.parent == cache
    mounted = {mount["Source"]: mount["RW"] for mount in container(deb13, "main")["Mounts"]}
    assert mounted[str(Path(template).parent)] is False
    (tokenizer,) = [word for word in arguments(deb13, "embed").split() if word.startswith(f"{cache}/")]
    assert Path(tokenizer).name == "tiny-embed"
    assert deb13.run(f"test -f {tokenizer}/tokenizer.json && stat -c %a {tokenizer}/tokenizer.json").strip() == "644"


def test_another_content_of_the_controllers_file_makes_another_release(deb13: Node, tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_text("{% for message in messages %}{{ message.content }}{% endfor %}")
    models = {
        **HOST["models"],
        "tiny-a": {**HOST["models"]["tiny-a"], "chat-template": f"controller:{tmp_path}/chat_template.jinja"},
    }
    output = deb13.site("--check", "--diff", models=models)
    assert "Copy files of the controller that flags name" in output
    assert "is staged and pending" in output


def test_engines_have_answered_their_warm_up_prompts(deb13: Node) -> None:
    for instance, count in (("main", "2 prompts"), ("embed", "1 prompt")):
        journal = deb13.run(f"journalctl --no-pager -u vllm@{instance}")
        assert f"warmed up by {count} in " in journal
        assert f"warmed up by {count} in " in deb13.unit("StatusText", instance)


def test_all_mistakes_are_refused_at_once(deb13: Node) -> None:
    models = {
        **HOST["models"],
        "tiny-a": {**HOST["models"]["tiny-a"], "chat-template": "/nowhere/template.jinja"},
        "tiny-embed": {**HOST["models"]["tiny-embed"], "tokenizer": "controller:/nowhere/tokenizer"},
        "tiny-score": {**HOST["models"]["tiny-score"], "generation-config": "org/name"},
    }
    said = refused(deb13, models=models)
    assert "chat-template: '/nowhere/template.jinja': is not a file on this node" in said
    assert "tokenizer: 'controller:/nowhere/tokenizer': cannot be read on the controller" in said
    assert "generation-config: 'org/name': is not a directory in the model's own directory" in said
    main, embed, rank, _speech = HOST["instances"]
    instances = [
        {**main, "environment": {"HF_TOKEN": "hf_0123456789abcdefghij", "HOME": "/"}},
        {**embed, "image": "vllm/vllm-openai:latest"},
        {**rank, "user": "nobody-has-this", "secret_environment": {"HF_HUB_OFFLINE": "another-secret-56"}},
    ]
    said = refused(deb13, instances=instances)
    assert "environment: HF_TOKEN: looks like a secret" in said
    assert "environment: HOME: is set by the role" in said
    assert "must name the image by digest" in said
    assert "secret_environment of instance rank: HF_HUB_OFFLINE: is set by the role" in said
    assert "hf_0123456789" not in said and "another-secret-56" not in said


@pytest.mark.full
def test_a_warm_up_prompt_of_another_task_is_refused(deb13: Node) -> None:
    """An engine for vectors has no chats. The plan refuses the prompt, and the active release stays."""
    before, other = container(deb13, "embed")["Config"]["Labels"], deb13.engine_pid("main")
    prompts = [{"messages": [{"role": "user", "content": "Hello"}]}]
    models = {**HOST["models"], "tiny-embed": {**HOST["models"]["tiny-embed"], "warm-up-prompts": prompts}}
    # The engine has no second replica.
    said = playbook("deb13", check=False, name=UPDATE, models=models, allow_downtime=True)
    assert "prompt 1 has messages, and the model's tasks are embed, score: write prompt" in said.replace("\\'", "'")
    deb13.wait_ready("embed")
    assert container(deb13, "embed")["Config"]["Labels"] == before
    assert deb13.engine_pid("main") == other
