# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes for the demo, the benchmark and the scenarios: containers with systemd and SSH, to Ansible Debian machines."""

from __future__ import annotations

import fcntl
import ipaddress
import json
import os
import random
import shlex
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("INFERENCE_CACHE") or Path.home() / ".cache/baremetal-inference")
NETWORK = "inference"
RELEASES = ("bookworm", "trixie")
BOOT_SECONDS = 60

# Docker's --cap-add ALL, less what a machine that is a container itself cannot hand on (SYS_RESOURCE), and less the
# wall clock, which is the host's own.
CAPABILITIES = ("--cap-add=ALL", "--cap-drop=SYS_RESOURCE", "--cap-drop=SYS_TIME")

DOCKER_DISK = "/var/lib/docker"
"""Where Docker in a node keeps its images: a volume, because Docker needs a real disk below them."""

# Docker's own layers of images never change: nodes share their files. All else is copied.
COPY_DISK = """
from=$1/_data to=$2/_data
cp -al "$from/overlay2" "$to/"
find "$from" -mindepth 1 -maxdepth 1 ! -name overlay2 -exec cp -a -t "$to" {} +
"""


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
    """An address of the network that Docker gives to nobody by itself and no container has. Raises NodeError.

    A node keeps it: Docker's own choice changes with the order in which containers start. By chance, because an SSH
    connection to a node that was just removed may still be open: the next node must not come by its address.
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
    return str(random.choice([one for one in hosts if one not in dynamic and str(one) not in taken]))


def remove(name: str) -> None:
    """Remove a node and its disk."""
    run("docker", "rm", "--force", "--volumes", name)


def disk_of(container: str) -> str:
    """The name of the volume that is the disk of a node's Docker."""
    template = f'{{{{range .Mounts}}}}{{{{if eq .Destination "{DOCKER_DISK}"}}}}{{{{.Name}}}}{{{{end}}}}{{{{end}}}}'
    return run("docker", "inspect", "--format", template, container).stdout.strip()


def copy_volume(source: str, target: str) -> None:
    """Copy the disk of a Docker that does not run into an empty volume. Raises NodeError."""
    root = run("docker", "info", "--format", "{{.DockerRootDir}}").stdout.strip()
    run(
        *("docker", "run", "--rm", "--network", "none"),
        # In one mount: a hard link does not lead from one mount to another.
        *("--volume", f"{root}/volumes:/volumes", f"inference-node:{RELEASES[0]}"),
        *("sh", "-ec", COPY_DISK, "sh", f"/volumes/{source}", f"/volumes/{target}"),
    )


@contextmanager
def alone(lock: str) -> Iterator[None]:
    """Let one process of this machine at a time do what the lock is named after."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f".{lock}.lock").open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


@dataclass(frozen=True)
class Origin:
    """What a node is made from: an image, and the volume with its Docker's disk (empty for a bare node)."""

    image: str
    volume: str = ""


class Site:
    """Nodes that one key reaches, with the inventory that describes them. The containers' names have a prefix."""

    def __init__(self, directory: Path, prefix: str = "") -> None:
        self.directory = directory
        self.prefix = prefix
        self.key = directory / "id_ed25519"
        self.known_hosts = directory / "known_hosts"
        self.addresses: dict[str, str] = {}
        self.own_address = ""
        if not self.key.exists():
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "node", "-f", str(self.key))

    def start(self, name: str, release: str) -> str:
        """Start a bare node, unless it runs, and let our key in. Returns its address. Raises NodeError."""
        self.create(name, Origin(f"inference-node:{release}"))
        return self.wait(name)

    def create(self, name: str, origin: Origin) -> None:
        """Start a node, unless it runs, and do not wait for its boot. Raises NodeError."""
        container = self.prefix + name
        if container not in existing(container):
            self._create(name, origin)
        run("docker", "start", container)

    def wait(self, name: str) -> str:
        """Wait for a node's boot, and let our key in. Returns the node's address. Raises NodeError."""
        container = self.prefix + name
        state = ""
        for _ in range(2 * BOOT_SECONDS):
            state = run("docker", "exec", container, "systemctl", "is-system-running", check=False).stdout.strip()
            if state in ("running", "degraded"):
                break
            time.sleep(0.5)
        else:
            jobs = f"docker exec {container} systemctl list-jobs"
            raise NodeError(
                f"{container} does not finish its boot ({state or 'no answer'} after {BOOT_SECONDS} s): {jobs}"
            )
        script = "umask 077; mkdir -p /root/.ssh; cat > /root/.ssh/authorized_keys"
        self.shell(name, script, stdin=self.key.with_suffix(".pub").read_text())
        inspect = json.loads(run("docker", "inspect", container).stdout)[0]
        network = inspect["NetworkSettings"]["Networks"][NETWORK]
        self.addresses[name] = network["IPAddress"]
        self.own_address = network["Gateway"]
        return self.addresses[name]

    def _create(self, name: str, origin: Origin) -> None:
        container = self.prefix + name
        # systemd 257 wants to be told that a host with cgroup v1 is meant; older ones take no notice.
        init = ["/lib/systemd/systemd", "SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1"]
        # Two at once would ask for the same address.
        with alone("address"):
            run(
                *("docker", "create", "--name", container, "--hostname", name, "--network", NETWORK),
                *("--ip", free_address()),
                *CAPABILITIES,
                *("--security-opt", "seccomp=unconfined", "--security-opt", "apparmor=unconfined"),
                *("--cgroupns", "host", "--volume", "/sys/fs/cgroup:/sys/fs/cgroup:rw"),
                *("--volume", DOCKER_DISK, "--tmpfs", "/run", "--tmpfs", "/tmp:exec", "--shm-size", "2g"),
                origin.image,
                *init,
            )
        if origin.volume:
            copy_volume(origin.volume, disk_of(container))

    def shell(self, name: str, script: str, stdin: str = "") -> str:
        """Run a script on a node's own console. Returns what it printed. Raises NodeError."""
        return run("docker", "exec", "--interactive", self.prefix + name, "sh", "-ec", script, stdin=stdin).stdout

    def ssh_options(self) -> list[str]:
        """What ssh needs to reach a node as root."""
        return ["-i", str(self.key), "-o", f"UserKnownHostsFile={self.known_hosts}", "-o", "BatchMode=yes"]

    def connection(self) -> dict[str, str]:
        """Write the host keys, as the nodes' own console tells them. Returns what Ansible reaches the nodes by."""
        known = []
        for name, address in self.addresses.items():
            keys = self.shell(name, "cat /etc/ssh/ssh_host_*_key.pub")
            known += [" ".join([address, *line.split()[:2]]) for line in keys.splitlines()]
        self.known_hosts.write_text("\n".join(known) + "\n")
        return {
            "ansible_user": "root",
            "ansible_ssh_private_key_file": str(self.key),
            "ansible_ssh_common_args": f"-o UserKnownHostsFile={self.known_hosts}",
        }

    def write_inventory(self, path: Path, gateway: str = "") -> None:
        """The hosts file of a site. A gateway runs no engine."""
        # Only this machine reaches its nodes: their engines may listen on the nodes' own addresses.
        hosts = {name: {"ansible_host": ip, "inference_address": ip} for name, ip in self.addresses.items()}
        variables = {
            **self.connection(),
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
