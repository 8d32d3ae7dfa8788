# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes for the demo, the benchmark and the scenarios: containers with systemd and SSH, like Debian machines."""

from __future__ import annotations

import fcntl
import ipaddress
import json
import os
import random
import shlex
import ssl
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

# All capabilities, without SYS_RESOURCE, which a machine that is itself a container does not have, and without the
# clock, which is the host's.
CAPABILITIES = ("--cap-add=ALL", "--cap-drop=SYS_RESOURCE", "--cap-drop=SYS_TIME")

DOCKER_DISK = "/var/lib/docker"
"""The directory of a node's Docker: a volume, because Docker needs a real disk."""

# Layers of images never change, so nodes share these files by hard links. All other files are copied.
COPY_DISK = """
from=$1/_data to=$2/_data
cp -al "$from/overlay2" "$to/"
find "$from" -mindepth 1 -maxdepth 1 ! -name overlay2 -exec cp -a -t "$to" {} +
"""


class NodeError(Exception):
    """A node that cannot be started; the message says what to look at."""


def run(*argv: str, check: bool = True, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command. Raises NodeError with the command's output if the command fails and check is set."""
    result = subprocess.run(argv, text=True, capture_output=True, input=stdin)
    if check and result.returncode != 0:
        raise NodeError(f"{' '.join(argv)}: {result.stderr.strip() or result.stdout.strip()}")
    return result


def existing(prefix: str) -> list[str]:
    """The nodes whose name starts with prefix, running or not."""
    listed = run("docker", "ps", "--all", "--filter", f"name=^{prefix}", "--format", "{{.Names}}").stdout
    return sorted(listed.split())


def free_address() -> str:
    """A random free address outside of the range that Docker gives to containers itself. Raises NodeError.

    A node keeps its address; Docker's own choice would change with the order in which containers start. The address is
    random because an SSH connection to a removed node may still be open: the next node rarely gets the same address.
    """
    network = json.loads(run("docker", "network", "inspect", NETWORK).stdout)[0]["IPAM"]["Config"][0]
    if "IPRange" not in network:
        raise NodeError(
            f"The network {NETWORK} is older than these tools. Remove its containers (docker ps --all --filter"
            f" network={NETWORK}), then run: docker network rm {NETWORK}; make setup"
        )
    # Stopped containers count, because they get their address back. A container may disappear during the check.
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
    """The name of the volume with a node's Docker directory."""
    template = f'{{{{range .Mounts}}}}{{{{if eq .Destination "{DOCKER_DISK}"}}}}{{{{.Name}}}}{{{{end}}}}{{{{end}}}}'
    return run("docker", "inspect", "--format", template, container).stdout.strip()


def copy_volume(source: str, target: str) -> None:
    """Copy the volume of a stopped Docker into an empty volume. Raises NodeError."""
    root = run("docker", "info", "--format", "{{.DockerRootDir}}").stdout.strip()
    run(
        *("docker", "run", "--rm", "--network", "none"),
        # Both volumes are in one mount, because a hard link cannot cross mounts.
        *("--volume", f"{root}/volumes:/volumes", f"inference-node:{RELEASES[0]}"),
        *("sh", "-ec", COPY_DISK, "sh", f"/volumes/{source}", f"/volumes/{target}"),
    )


@contextmanager
def alone(lock: str) -> Iterator[None]:
    """Hold a lock, so that only one process of this machine at a time does this work."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f".{lock}.lock").open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


@dataclass(frozen=True)
class Origin:
    """The source of a node: an image, and the volume with the Docker directory (empty: a new volume)."""

    image: str
    volume: str = ""


class Site:
    """Nodes with one SSH key, and their inventory. The containers' names have a prefix."""

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
        """Start a bare node, unless it runs, and install our key. Returns its address. Raises NodeError."""
        self.create(name, Origin(f"inference-node:{release}"))
        return self.wait(name)

    def create(self, name: str, origin: Origin, address: str = "") -> None:
        """Start a node, unless it runs, and do not wait for its boot. Raises NodeError.

        `address`: that of a new node. Empty: any free address.
        """
        container = self.prefix + name
        if container not in existing(container):
            self._create(name, origin, address)
        run("docker", "start", container)

    def wait(self, name: str) -> str:
        """Wait for a node's boot, and install our key. Returns the node's address. Raises NodeError."""
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

    def stop(self, name: str, unit: str) -> None:
        """Stop a unit of a node that boots, as soon as the node's systemd answers. Raises NodeError."""
        container = self.prefix + name
        for _ in range(2 * BOOT_SECONDS):
            stopped = run("docker", "exec", container, "systemctl", "stop", unit, check=False)
            if stopped.returncode == 0:
                return
            time.sleep(0.5)
        raise NodeError(f"{container} does not stop {unit}: {stopped.stderr.strip()}")

    def _create(self, name: str, origin: Origin, address: str) -> None:
        container = self.prefix + name
        # systemd 257 needs this option on a host with cgroup v1; older versions ignore it.
        init = ["/lib/systemd/systemd", "SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1"]
        # Two processes at once could choose the same address.
        with alone("address"):
            run(
                *("docker", "create", "--name", container, "--hostname", name, "--network", NETWORK),
                *("--ip", address or free_address()),
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
        """The options with which ssh reaches a node as root."""
        return ["-i", str(self.key), "-o", f"UserKnownHostsFile={self.known_hosts}", "-o", "BatchMode=yes"]

    def connection(self) -> dict[str, str]:
        """Write the host keys, from the nodes' consoles. Returns Ansible's connection variables."""
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
        """Write the hosts file of a site. `gateway`: the node that runs no engine."""
        # Only this machine reaches its nodes, so engines may listen on the nodes' addresses.
        hosts = {name: {"ansible_host": ip, "inference_address": ip} for name, ip in self.addresses.items()}
        variables = {
            **self.connection(),
            # This machine sends requests to the engines, with or without a gateway.
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
    """A question to the instance main, as a chat completion: to a node's engine, or with a key to a gateway.

    `key` is the file with the client's key. `trusted` is the file with the certificate of the gateway's CA; without it,
    the question goes by plain HTTP.
    """

    def __init__(
        self, address: str, text: str, port: int = 5005, key: Path | None = None, trusted: Path | None = None
    ) -> None:
        self.url = f"{'https' if trusted else 'http'}://{address}:{port}/v1/chat/completions"
        self.key, self.trusted = key, trusted
        message = {"role": "user", "content": text}
        self.body = json.dumps({"model": "main", "messages": [message], "max_tokens": 20, "temperature": 0})
        self.headers = {"Content-Type": "application/json"}

    def as_curl(self) -> str:
        """The same question as a command line, which has the key's file, and not the key."""
        headers = [part for name, value in self.headers.items() for part in ("--header", f"{name}: {value}")]
        trust = ["--cacert", str(self.trusted)] if self.trusted else []
        line = shlex.join(["curl", "--noproxy", "*", *trust, self.url, *headers, "--data", self.body])
        return f'{line} --header "Authorization: Bearer $(cat {shlex.quote(str(self.key))})"' if self.key else line

    def ask(self) -> dict:
        """The answer, decoded. Raises OSError."""
        key = {"Authorization": f"Bearer {self.key.read_text()}"} if self.key else {}
        request = urllib.request.Request(self.url, self.body.encode(), {**self.headers, **key})
        # Without a proxy: the nodes are on this machine.
        handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
        if self.trusted:
            context = ssl.create_default_context(cafile=str(self.trusted))
            handlers.append(urllib.request.HTTPSHandler(context=context))
        with urllib.request.build_opener(*handlers).open(request, timeout=60) as response:
            return json.load(response)
