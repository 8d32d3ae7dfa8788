# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes for the demo and the benchmark: containers with systemd and SSH, which to Ansible are fresh Debian machines."""

from __future__ import annotations

import ipaddress
import json
import shlex
import subprocess
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NETWORK = "inference"
RELEASES = ("bookworm", "trixie")
BOOT_SECONDS = 60

# Docker's --cap-add ALL, less what a machine that is a container itself cannot hand on (SYS_RESOURCE), and less the
# wall clock, which is the host's own.
CAPABILITIES = ("--cap-add=ALL", "--cap-drop=SYS_RESOURCE", "--cap-drop=SYS_TIME")


class NodeError(Exception):
    """A node that cannot be started; the message says what to look at."""


def run(*argv: str, check: bool = True, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command. Raises NodeError with its own words."""
    result = subprocess.run(argv, text=True, capture_output=True, input=stdin)
    if check and result.returncode != 0:
        raise NodeError(f"{' '.join(argv)}: {result.stderr.strip() or result.stdout.strip()}")
    return result


def existing(prefix: str) -> list[str]:
    """The nodes whose name starts with prefix, running or not."""
    listed = run("docker", "ps", "--all", "--filter", f"name=^{prefix}", "--format", "{{.Names}}").stdout
    return sorted(listed.split())


def free_address() -> str:
    """The lowest address of the network that Docker gives to nobody by itself and no container has. Raises NodeError.

    A node keeps it: Docker's own choice changes with the order in which containers start.
    """
    network = json.loads(run("docker", "network", "inspect", NETWORK).stdout)[0]["IPAM"]["Config"][0]
    if "IPRange" not in network:
        raise NodeError(
            f"The network {NETWORK} is older than these tools. Remove its containers (docker ps --all --filter"
            f" network={NETWORK}), then run: docker network rm {NETWORK}; make setup"
        )
    # Stopped containers count: they want their address back. One may go while we look.
    containers = run("docker", "ps", "--all", "--quiet", "--filter", f"network={NETWORK}").stdout.split()
    inspect = json.loads(run("docker", "inspect", *containers, check=False).stdout) if containers else []
    asked_for = [item["NetworkSettings"]["Networks"][NETWORK]["IPAMConfig"] or {} for item in inspect]
    taken = {entry.get("IPv4Address") for entry in asked_for}
    dynamic = ipaddress.ip_network(network["IPRange"])
    hosts = ipaddress.ip_network(network["Subnet"]).hosts()
    return next(str(address) for address in hosts if address not in dynamic and str(address) not in taken)


def remove(name: str) -> None:
    """Remove a node and its disk."""
    run("docker", "rm", "--force", "--volumes", name)


class Site:
    """Nodes that one key reaches, with the inventory that describes them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.key = directory / "id_ed25519"
        self.known_hosts = directory / "known_hosts"
        self.addresses: dict[str, str] = {}
        self.own_address = ""
        if not self.key.exists():
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "node", "-f", str(self.key))

    def start(self, name: str, release: str) -> str:
        """Start a node, unless it runs, and let our key in. Returns its address. Raises NodeError."""
        if name in existing(name):
            run("docker", "start", name)
        else:
            self._create(name, release)
        state = ""
        for _ in range(BOOT_SECONDS):
            state = run("docker", "exec", name, "systemctl", "is-system-running", check=False).stdout.strip()
            if state in ("running", "degraded"):
                break
            time.sleep(1)
        else:
            jobs = f"docker exec {name} systemctl list-jobs"
            raise NodeError(f"{name} does not finish its boot ({state or 'no answer'} after {BOOT_SECONDS} s): {jobs}")
        script = "umask 077; mkdir -p /root/.ssh; cat > /root/.ssh/authorized_keys"
        run("docker", "exec", "-i", name, "sh", "-c", script, stdin=self.key.with_suffix(".pub").read_text())
        inspect = json.loads(run("docker", "inspect", name).stdout)[0]
        network = inspect["NetworkSettings"]["Networks"][NETWORK]
        self.addresses[name] = network["IPAddress"]
        self.own_address = network["Gateway"]
        return self.addresses[name]

    def _create(self, name: str, release: str) -> None:
        # systemd 257 wants to be told that a host with cgroup v1 is meant; older ones take no notice.
        init = ["/lib/systemd/systemd", "SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1"]
        run(
            *("docker", "run", "--detach", "--name", name, "--hostname", name, "--network", NETWORK),
            *("--ip", free_address()),
            *CAPABILITIES,
            *("--security-opt", "seccomp=unconfined", "--security-opt", "apparmor=unconfined"),
            *("--cgroupns", "host", "--volume", "/sys/fs/cgroup:/sys/fs/cgroup:rw"),
            # The anonymous volume gives Docker in the node a real disk below its images.
            *("--volume", "/var/lib/docker", "--tmpfs", "/run", "--tmpfs", "/tmp:exec", "--shm-size", "2g"),
            f"inference-node:{release}",
            *init,
        )

    def ssh_options(self) -> list[str]:
        """What ssh needs to reach a node as root."""
        return ["-i", str(self.key), "-o", f"UserKnownHostsFile={self.known_hosts}", "-o", "BatchMode=yes"]

    def write_inventory(self, path: Path, gateway: str = "") -> None:
        """The hosts file, and the nodes' host keys as their own console tells them. A gateway runs no engine."""
        known = []
        for name, address in self.addresses.items():
            keys = run("docker", "exec", name, "sh", "-c", "cat /etc/ssh/ssh_host_*_key.pub").stdout
            known += [" ".join([address, *line.split()[:2]]) for line in keys.splitlines()]
        self.known_hosts.write_text("\n".join(known) + "\n")
        # Only this machine reaches its nodes: their engines may listen on the nodes' own addresses.
        hosts = {name: {"ansible_host": ip, "inference_address": ip} for name, ip in self.addresses.items()}
        variables = {
            "ansible_user": "root",
            "ansible_ssh_private_key_file": str(self.key),
            "ansible_ssh_common_args": f"-o UserKnownHostsFile={self.known_hosts}",
            # This machine asks the engines, whether or not there is a gateway.
            "firewall_allow": [{"name": "engine for this machine", "port": 5005, "sources": [self.own_address]}],
        }
        groups = {
            "inference": {"hosts": {name: host for name, host in hosts.items() if name != gateway}},
            "gateway": {"hosts": {name: host for name, host in hosts.items() if name == gateway}},
            "all": {"vars": variables},
        }
        # JSON is YAML.
        path.write_text(json.dumps(groups, indent=2) + "\n")


class Question:
    """A chat completion of a node's instance main."""

    def __init__(self, address: str, text: str) -> None:
        self.url = f"http://{address}:5005/v1/chat/completions"
        message = {"role": "user", "content": text}
        self.body = json.dumps({"model": "main", "messages": [message], "max_tokens": 20, "temperature": 0})

    def as_curl(self) -> str:
        """The same question as a command line."""
        header = "Content-Type: application/json"
        return shlex.join(["curl", "--noproxy", "*", self.url, "--header", header, "--data", self.body])

    def ask(self) -> dict:
        """The answer, decoded. Raises OSError."""
        request = urllib.request.Request(self.url, self.body.encode(), {"Content-Type": "application/json"})
        # No proxy knows the nodes, which are on this machine.
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as response:
            return json.load(response)
