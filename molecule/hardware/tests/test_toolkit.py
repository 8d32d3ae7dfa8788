# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's container toolkit, from a small signed repository, with a real Docker.

The toolkit describes GPUs in a CDI specification. Docker 26 reads this file itself; with Docker 20.10, NVIDIA's runtime
reads it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures import on_deb12, on_deb13
from node import PROJECT, Node, changed_tasks, changes
from repository import Repository
from toolkit_packages import NEXT, PINNED, UUID

PACKAGES = "nvidia-container-toolkit nvidia-container-toolkit-base libnvidia-container-tools libnvidia-container1"
SPEC = "/var/run/cdi/nvidia.yaml"
BY_HAND = """cdiVersion: 0.5.0
kind: nvidia.com/gpu
devices:
- name: all
  containerEdits:
    deviceNodes:
    - path: /dev/null
"""

IMAGE = """
docker image inspect gpu-test >/dev/null 2>&1 && exit
mkdir -p /srv/image/bin; cp /bin/busybox /srv/image/bin; ln -sf busybox /srv/image/bin/sh
tar -C /srv/image -c . | docker import - gpu-test >/dev/null
"""


class Toolkit(Node):
    """A node, with helpers for the role docker and the toolkit."""

    playbook = str(PROJECT / "molecule/hardware/toolkit.yml")

    def role(self, *options: str, check: bool = True, **extra: Any) -> str:
        """Run role docker; returns its output, without line breaks."""
        output = self.site(*options, check=check, **{"docker_nvidia": "always", **extra})
        return " ".join(output.replace("\\n", " ").split())

    def versions(self) -> set[str]:
        return set(self.run(f"dpkg-query -W -f '${{Version}}\\n' {PACKAGES}").split())

    def driver(self, loaded: bool) -> None:
        """Make the device file of a loaded driver; or remove it, and the CDI specification with it."""
        self.run("touch /dev/nvidiactl" if loaded else f"rm -f /dev/nvidiactl {SPEC}")

    def options(self, *names: str) -> str:
        """The options of docker that give a container its GPUs, as a release renders them."""
        devices = [f"nvidia.com/gpu={name}" for name in names]
        if self.name.endswith("12"):
            return f"--runtime nvidia --env NVIDIA_VISIBLE_DEVICES={','.join(devices)}"
        return " ".join(f"--device {device}" for device in devices)

    def in_container(self, options: str, command: str, check: bool = True) -> str:
        """Run a command in a container. Returns its output."""
        self.run(IMAGE)
        return self.run(f"docker run --rm --network none {options} gpu-test /bin/busybox {command} 2>&1", check=check)


@pytest.fixture
def bare(node: Node) -> Toolkit:
    """The node without a driver."""
    toolkit = Toolkit(node.name)
    toolkit.driver(loaded=False)
    return toolkit


@pytest.fixture
def bare12(deb12: Node) -> Toolkit:
    """The Debian 12 node without a driver, for tests of any Debian release: this node has fewer tests of its own."""
    toolkit = Toolkit(deb12.name)
    toolkit.driver(loaded=False)
    return toolkit


@pytest.fixture
def gpu(bare: Toolkit) -> Iterator[Toolkit]:
    """The node with the toolkit, and with the device file of a loaded driver."""
    bare.driver(loaded=True)
    bare.role()
    yield bare
    bare.driver(loaded=False)


def test_a_toolkit_that_no_source_has_is_refused_with_a_remedy(bare12: Toolkit) -> None:
    source = Repository(bare12, "Toolkit").source
    before = bare12.run("dpkg-query -W; ls /etc/apt/*")
    bare12.run(f"mv {source} /root/; apt-get -qq update")
    try:
        output = bare12.role(check=False)
    finally:
        bare12.run(f"mv /root/{Path(source).name} {source}; apt-get -qq update")
    assert "cannot be installed" in output and "common_apt_sources" in output
    assert bare12.run("dpkg-query -W; ls /etc/apt/*") == before


@pytest.mark.full
@pytest.mark.parametrize("version", ["1.17.8", "1.19.0", "1.20"])
def test_unsupported_versions_are_refused(bare12: Toolkit, version: str) -> None:
    output = bare12.role(check=False, docker_nvidia_toolkit_version=version)
    assert f'docker_nvidia_toolkit_version is "{version}"' in output and changes(output) == 0


@on_deb13
def test_without_a_gpu_nothing_is_installed(bare: Toolkit) -> None:
    """The run configures Docker, so that later tests see only the changes of the toolkit."""
    bare.role(docker_nvidia="auto")
    assert "nvidia-container-toolkit" not in bare.run("dpkg-query -W")


@on_deb13
def test_the_toolkit_is_installed_before_there_is_a_driver(bare: Toolkit, tmp_path: Path) -> None:
    """Check mode predicts every change, except for units that do not exist yet."""
    later = ("Enable the units that update the specification", "Start the unit that watches for another driver")
    extra = {"docker_nvidia": "always"}
    predicted, _output = changed_tasks(bare, tmp_path, "--check", **extra)
    done, output = changed_tasks(bare, tmp_path, **extra)
    assert {task for task in done - predicted if not task.endswith(later)} == set()
    assert any(task.endswith("Pin, install and hold the toolkit") for task in done)
    assert "no NVIDIA driver is loaded" in " ".join(output.split())
    assert bare.versions() == {f"{PINNED}-1"}
    assert set(PACKAGES.split()) <= set(bare.run("apt-mark showhold").split())
    assert changes(bare.role()) == 0


@on_deb13
def test_the_specification_waits_for_the_driver_and_docker_waits_for_the_specification(bare: Toolkit) -> None:
    bare.role()
    unit = "nvidia-cdi-refresh.service"
    bare.run(f"systemctl start {unit}")
    assert bare.run(f"systemctl show --value --property=ConditionResult {unit}") == "no"
    assert bare.run(f"systemctl is-failed {unit}", check=False) != "failed"
    assert bare.run(f"systemctl is-enabled {unit} nvidia-cdi-refresh.path") == "enabled\nenabled"
    assert "docker.service" in bare.run(f"systemctl show --value --property=Before {unit}").split()
    # systemd-analyze reports a cycle, if there is one.
    assert "ordering cycle" not in bare.run("systemd-analyze verify default.target 2>&1", check=False)


def test_containers_get_their_gpus_by_name(gpu: Toolkit) -> None:
    assert gpu.in_container(gpu.options("0"), "sh -c 'echo $GIVEN'") == "0"
    assert gpu.in_container(gpu.options(UUID), "sh -c 'echo $GIVEN'") == UUID
    refusal = gpu.in_container(gpu.options("7"), "true", check=False)
    assert "unresolvable CDI devices nvidia.com/gpu=7" in refusal
    assert changes(gpu.role()) == 0


@on_deb12
def test_the_runtimes_own_configuration_stays(gpu: Toolkit) -> None:
    text = gpu.run("cat /etc/nvidia-container-runtime/config.toml")
    assert "#debug = true" in text and "load-kmods = true" in text
    assert (f'mode = "{"cdi" if gpu.name.endswith("12") else "auto"}"') in text


@pytest.mark.full
def test_a_specification_by_hand_is_moved_aside(gpu: Toolkit) -> None:
    gpu.run(f"mkdir -p /etc/cdi; cat >/etc/cdi/nvidia.yaml <<'END'\n{BY_HAND}END")
    gpu.run("""printf '{"cdiVersion": "0.5.0", "kind": "example.com/nic", "devices": []}' >/etc/cdi/nic.json""")
    assert "would not change with the driver" in gpu.role()
    assert gpu.run("ls /etc/cdi") == "nic.json"
    assert "kind: nvidia.com/gpu" in gpu.run("cat /var/lib/inference/cdi-removed/etc-cdi-nvidia.yaml.*")
    assert changes(gpu.role()) == 0
    gpu.run("rm -r /etc/cdi /var/lib/inference/cdi-removed")


@pytest.mark.full
def test_an_outdated_specification_is_written_anew(gpu: Toolkit) -> None:
    gpu.run(f"sed -i s,/dev/null,/dev/gone, {SPEC}")
    assert changes(gpu.role("--check")) == 1
    gpu.role()
    assert "/dev/gone" not in gpu.run(f"cat {SPEC}")


@on_deb13
def test_a_toolkit_that_cannot_describe_the_gpus_fails_the_run(gpu: Toolkit) -> None:
    gpu.run(f"touch /run/nvidia-ctk-fails; rm {SPEC}")
    try:
        output = gpu.role(check=False)
    finally:
        gpu.run("rm /run/nvidia-ctk-fails; systemctl reset-failed nvidia-cdi-refresh.service")
    assert f"containers cannot get their GPUs: {SPEC} is not there" in output
    assert "journalctl -u nvidia-cdi-refresh" in output


@on_deb13
def test_a_container_that_lost_its_gpus_is_named(gpu: Toolkit) -> None:
    """One container keeps its GPUs. The cgroup of the other container forbids one of its device nodes."""
    gpu.run(IMAGE)
    for name in ("keeps", "loses"):
        gpu.run(f"docker run -d --name {name} --network none {gpu.options('0')} gpu-test /bin/busybox sleep 600")
        # The fake runtime makes no device nodes.
        gpu.run(f"docker exec {name} /bin/busybox mknod -m 666 /dev/nvidia0 c 1 3", check=False)
    gpu.run("docker exec loses /bin/busybox mknod -m 666 /dev/nvidia1 c 1 11; systemctl daemon-reload")
    try:
        output = gpu.role(check=False)
    finally:
        gpu.run("docker rm -f keeps loses")
    assert "running containers have lost GPUs: loses cannot open /dev/nvidia1 any more" in output
    assert "keeps" not in output.partition("have lost GPUs")[2].partition("cannot open")[0]


@pytest.mark.full
def test_upgrades_keep_the_version_and_the_variable_changes_it(gpu: Toolkit) -> None:
    gpu.run("apt-get -qq --yes full-upgrade")
    assert gpu.versions() == {f"{PINNED}-1"}
    gpu.role(docker_nvidia_toolkit_version=NEXT)
    assert gpu.versions() == {f"{NEXT}-1"}
    gpu.role()
    assert gpu.versions() == {f"{PINNED}-1"}
