# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A molecule node as the tests see it: its shell, its engines, and further runs of its playbook."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

PROJECT = Path(os.environ["MOLECULE_PROJECT_DIRECTORY"])
EPHEMERAL = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"])

CACHE = Path(os.environ.get("INFERENCE_CACHE") or Path.home() / ".cache/baremetal-inference")
"""What `make setup` has made: models, images and their digests."""

READY_SECONDS = 300
"""Limit in seconds for an engine's start: 25 s alone, 100 s with three engines on two cores, more on a busy machine."""


def wait_for(what: str, condition: Callable[[], Any], seconds: float = READY_SECONDS) -> Any:
    """Wait until `condition` returns a true value, and return this value. Raises AssertionError after `seconds`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        result = condition()
        if result:
            return result
        time.sleep(0.5)
    raise AssertionError(f"{what}: not within {seconds} s")


class Node:
    """A node of the scenario, a container."""

    playbook = "baremetal.inference.site"
    """The playbook that sets up the node; site() runs it again."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.container = f"{os.environ['MOLECULE_SCENARIO_NAME']}-{name}"

    def argv(self, *command: str) -> list[str]:
        """The command line that runs a command on the node, also while a test cuts the node's network."""
        return ["docker", "exec", "--interactive", self.container, *command]

    def run(self, command: str, check: bool = True) -> str:
        """Run a shell command on the node and return its output."""
        argv = self.argv("sh", "-c", command)
        result = subprocess.run(argv, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
        words = f"{self.name}: {command}: {result.returncode}\n{result.stdout}\n{result.stderr}"
        assert not check or result.returncode == 0, words
        return result.stdout.strip()

    def cut_power(self) -> None:
        """Kill all processes of the node at once, as a power cut does. Then start the node, and wait for systemd."""
        self.power_off()
        self.power_on()

    def power_off(self) -> None:
        """Kill all processes of the node at once. Unlike at a power cut, the kernel closes connections."""
        subprocess.run(["docker", "kill", self.container], check=True, capture_output=True)

    def power_on(self) -> None:
        """Start the node again, and wait until its systemd answers."""
        subprocess.run(["docker", "start", self.container], check=True, capture_output=True)
        wait_for("systemd answers", lambda: self.run("systemctl is-system-running", check=False), 120)

    @property
    def address(self) -> str:
        """The node's address in the scenario's network."""
        template = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
        return subprocess.check_output(["docker", "inspect", "--format", template, self.container], text=True).strip()

    # --- engines

    @property
    def engine_host(self) -> str:
        """The address at which the node itself asks its engines."""
        return "127.0.0.1"

    def request(
        self, path: str, body: dict[str, Any] | None = None, port: int = 5005, key: str = ""
    ) -> tuple[int, Any]:
        """An HTTP request to an engine from its own node. Returns status and decoded answer."""
        options = ["--silent", "--max-time", "120", "--write-out", r"\n%{http_code}"]
        if key:
            options += ["--header", f"Authorization: Bearer {key}"]
        if body is not None:
            options += ["--header", "Content-Type: application/json", "--data-binary", "@-"]
        result = subprocess.run(
            self.argv("curl", *options, f"http://{self.engine_host}:{port}{path}"),
            input=json.dumps(body) if body is not None else "",
            capture_output=True,
            text=True,
        )
        text, _, status = result.stdout.rpartition("\n")
        return int(status or 0), json.loads(text) if text.strip() else None

    def ask(self, model: str = "main", port: int = 5005, key: str = "", **more: Any) -> str:
        """An engine's answer to a chat; an empty text without an answer."""
        messages = [{"role": "user", "content": "Who are you?"}]
        body = {"model": model, "messages": messages, "max_tokens": 30, "temperature": 0, **more}
        status, answer = self.request("/v1/chat/completions", body, port, key)
        return answer["choices"][0]["message"]["content"].strip() if status == 200 else ""

    def engine_pid(self, instance: str = "main") -> int:
        """The first process of an instance's container."""
        return int(self.run(f"docker inspect --format '{{{{.State.Pid}}}}' vllm-{instance}"))

    def unit(self, property_name: str, instance: str = "main") -> str:
        """A property of an instance's unit."""
        return self.run(f"systemctl show --value --property={property_name} vllm@{instance}.service")

    def wait_ready(self, instance: str = "main") -> None:
        """Wait until systemd reports that an instance serves."""
        wait_for(f"{instance} on {self.name} serves", lambda: self.unit("ActiveState", instance) == "active")

    # --- Ansible

    def site(self, *options: str, check: bool = True, environment: dict[str, str] | None = None, **extra: Any) -> str:
        """Run the node's playbook on this node with other variables. Returns its output."""
        return playbook(self.name, *options, check=check, name=self.playbook, environment=environment, **extra)

    def baseline(self, part: str, *options: str, check: bool = True, **extra: Any) -> str:
        """Run a part of the role common with its checks on this node. Returns the output."""
        play = str(PROJECT / "molecule/shared/baseline.yml")
        return playbook(self.name, "--tags", f"common_{part}", *options, check=check, name=play, **extra)

    def module(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Run a module on this node. Returns its result."""
        given = ["--args", json.dumps(arguments)] if arguments else []
        output = _ansible("ansible", self.name, "--module-name", name, *given, environment={}, errors=subprocess.PIPE)
        assert output.returncode == 0, output.stdout + output.stderr
        return dict(json.loads(output.stdout.partition(" => ")[2]))


def playbook(
    limit: str,
    *options: str,
    check: bool = True,
    name: str = "baremetal.inference.site",
    environment: dict[str, str] | None = None,
    inventory: Path | None = None,
    **extra: Any,
) -> str:
    """Run a playbook, by name or path, with `inventory`, else the scenario's. The variables override the inventory.

    Returns the output. Raises AssertionError if the run fails, or with `check=False` if the run succeeds.
    """
    command = ["ansible-playbook", "--limit", limit, *options, "--extra-vars", json.dumps(extra), name]
    result = _ansible(*command, environment=environment or {}, inventory=inventory)
    assert not check or result.returncode == 0, f"{name} failed:\n{result.stdout[-6000:]}"
    assert check or result.returncode != 0, f"{name} should have failed:\n{result.stdout[-3000:]}"
    return result.stdout


def start_playbook(limit: str, name: str, log: Path, **extra: Any) -> subprocess.Popen[bytes]:
    """Start a playbook in a separate process group. Its output goes to a file."""
    command = ["ansible-playbook", "--limit", limit, "--extra-vars", json.dumps(extra), name]
    with log.open("wb") as output:
        return subprocess.Popen(
            _against_scenario(command),
            cwd=PROJECT,
            env=_environment({}),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _ansible(
    *command: str, environment: dict[str, str], errors: int = subprocess.STDOUT, inventory: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command of Ansible with the scenario's inventory, or another inventory."""
    return subprocess.run(
        _against_scenario(command, inventory),
        cwd=PROJECT,
        env=_environment(environment),
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
    )


def _against_scenario(command: Sequence[str], inventory: Path | None = None) -> list[str]:
    # The scenario's inventory comes first, so that the inventory of a test wins.
    return [command[0], "--inventory", str(inventory or EPHEMERAL / "inventory"), *command[1:]]


def _environment(more: dict[str, str]) -> dict[str, str]:
    return {
        **os.environ,
        "ANSIBLE_CONFIG": str(EPHEMERAL / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": str(PROJECT / ".cache"),
        "ANSIBLE_FORCE_COLOR": "0",
        **more,
    }


def changed_tasks(node: Node, scratch: Path, *options: str, part: str = "", **extra: Any) -> tuple[set[str], str]:
    """Run the node's playbook, or a part of the role common. Returns the changed tasks, and the output."""
    record = scratch / "changes.jsonl"
    record.unlink(missing_ok=True)
    environment = {
        "ANSIBLE_CALLBACK_PLUGINS": str(PROJECT / "molecule/shared/callback_plugins"),
        "ANSIBLE_CALLBACKS_ENABLED": "changes",
        "CHANGES_FILE": str(record),
    }
    run = partial(node.baseline, part) if part else node.site
    output = run(*options, environment=environment, **extra)
    lines = record.read_text().splitlines() if record.exists() else []
    return {json.loads(line)["task"] for line in lines}, output


def recorded_changes(step: str) -> set[tuple[str, str]]:
    """Changed tasks in the scenario's step `check` or `converge`: pairs of the node and the task's name."""
    entries = [json.loads(line) for line in (EPHEMERAL / "changes.jsonl").read_text().splitlines()]
    return {
        (entry["host"], entry["task"].removeprefix("baremetal.inference."))
        for entry in entries
        # Tasks on localhost are Molecule's own: they create the nodes.
        if entry["run"] == step and entry["host"] != "localhost"
    }


def changes(output: str) -> int:
    """The number of changed tasks, from a play recap."""
    return sum(int(word.removeprefix("changed=")) for word in output.split() if word.startswith("changed="))
