# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A controller as the README makes it: the collection, an SSH key, and Ansible's defaults."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from typing import Any

import yaml
from node import CACHE, EPHEMERAL, PROJECT, Node

MODEL = f"controller:{CACHE}/models/tiny-a"

ADMIN = "admin"
"""The account of the README's commands."""

DECIDE = "group_vars/all/decide.yml"
MODELS = "group_vars/all/models.yml"

SIMULATION: dict[str, Any] = {
    # The fakes on the machine with a GPU take the place of the vendor's repositories.
    "common_apt_sources": "{{ simulation_sources if 'inference' in group_names else [] }}",
    "simulation_sources": [
        {
            "name": name.lower(),
            "uris": [f"file:/srv/repositories/{name}"],
            "suites": ["./"],
            "key": f"/srv/repositories/{name}/key.gpg",
        }
        for name in ("NVIDIA", "Toolkit")
    ],
    # A container has neither a kernel nor a clock of its own, and may not raise these limits.
    "common_sysctl_enabled": False,
    "common_time_enabled": False,
    "vllm_ulimits": {"memlock": "8388608", "stack": "67108864"},
    "vllm_shm_size": "1g",
    "docker_insecure_registries": ["inference-registry:5000"],
    # The engine computes on the CPU, on a small machine, and no model is large.
    "vllm_environment": {
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "OMP_NUM_THREADS": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    },
    "vllm_image_gib": 6,
    "vllm_start_timeout": 600,
    "model_store_reserve_gib": 1,
}
"""The variables that the simulation needs, and a site with real machines does not."""


class Controller:
    """The operator's machine, with a directory for the site."""

    def __init__(self, machines: Sequence[Node]) -> None:
        self.home = EPHEMERAL / "operator"
        self.home.mkdir(exist_ok=True)
        self.site = self.home / "mysite"
        self.addresses = [machine.address for machine in machines]
        connection = json.loads((EPHEMERAL / "inventory/ssh.json").read_text())["all"]["vars"]
        # Ansible gets no settings of Molecule. The key and the host keys take the place of ~/.ssh.
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "MOLECULE_"))},
            "ANSIBLE_COLLECTIONS_PATH": str(PROJECT / ".cache"),
            "ANSIBLE_PRIVATE_KEY_FILE": connection["ansible_ssh_private_key_file"],
            "ANSIBLE_SSH_COMMON_ARGS": connection["ansible_ssh_common_args"],
            "ANSIBLE_FORCE_COLOR": "0",
            "PWD": str(self.home),
        }
        self.simulation = self.home / "simulation.json"
        self.simulation.write_text(json.dumps(SIMULATION))

    def playbook(self, *arguments: str, check: bool = True) -> str:
        """Run ansible-playbook in the operator's directory. Returns the output."""
        result = subprocess.run(
            ["ansible-playbook", *arguments],
            cwd=self.home,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert not check or result.returncode == 0, result.stdout[-8000:]
        assert check or result.returncode != 0, result.stdout[-3000:]
        return result.stdout

    def set_up(self, *options: str, check: bool = True) -> str:
        """Run the README's command for the site, with the variables of the simulation."""
        more = ("-e", "reboot_allowed=true", "-e", f"@{self.simulation}")
        return self.playbook("-i", "mysite", "baremetal.inference.site", *more, *options, check=check)

    def ssh(self, address: str, command: str) -> str:
        """Run a command on a machine as the README's account. Returns its output."""
        options = self.environment["ANSIBLE_SSH_COMMON_ARGS"].split()
        key = self.environment["ANSIBLE_PRIVATE_KEY_FILE"]
        argv = ["ssh", "-i", key, *options, "-o", "BatchMode=yes", f"{ADMIN}@{address}", command]
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout

    def read(self, path: str) -> Any:
        """The data of a file of the inventory."""
        return yaml.safe_load((self.site / path).read_text())
