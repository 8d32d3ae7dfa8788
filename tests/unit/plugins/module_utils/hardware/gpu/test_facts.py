# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts of a synthetic node: two GPUs on the bus, and an nvidia-smi that answers, fails or hangs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu import facts

Sample = Callable[[str], str]

FIRST, SECOND = "0000:1b:00.0", "0000:9d:00.0"

GPU = {
    "vendor": "0x10de",
    "device": "0x2330",
    "subsystem_vendor": "0x10de",
    "subsystem_device": "0x16c1",
    "class": "0x030200",
    "numa_node": "1",
    "current_link_speed": "2.5 GT/s PCIe",
    "current_link_width": "8",
    "max_link_speed": "32.0 GT/s PCIe",
    "max_link_width": "16",
}


class Node:
    """A node below a root, whose nvidia-smi is a table of answers."""

    def __init__(self, root: Path, answers: Mapping[str, Outcome]) -> None:
        self.root = root
        self.answers = dict(answers)
        self.asked: list[str] = []

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def plug(self, address: str, driver: str | None = None, **attributes: str) -> None:
        device = f"sys/bus/pci/devices/{address}"
        for name, text in {**GPU, **attributes}.items():
            self.write(f"{device}/{name}", f"{text}\n")
        if driver:
            (self.root / device / "driver").symlink_to(f"../../drivers/{driver}")

    def run(self, command: list[str]) -> Outcome:
        assert command[0] == "nvidia-smi"
        self.asked.append(" ".join(command[1:]))
        return self.answers[self.asked[-1]]

    def gather(self, *parts: str) -> dict[str, Any]:
        found = facts.gather(self.root, self.run, "nvidia-smi", parts or facts.PARTS, 5)
        # What a module returns is JSON.
        return json.loads(json.dumps(found))


@pytest.fixture
def node(tmp_path: Path, sample: Sample) -> Node:
    """A node whose nvidia-smi answers, with all facts."""
    answers = {
        "-q -x": "report-580.xml",
        "-L": "list.txt",
        "nvlink -s": "nvlink.txt",
        "topo -m": "topology.txt",
    }
    node = Node(tmp_path, {key: Outcome(0, sample(name)) for key, name in answers.items()})
    node.plug(FIRST, "nvidia")
    node.plug(SECOND, "nvidia")
    node.plug("0000:03:00.0", "ast", vendor="0x1a03", **{"class": "0x030000"})
    node.plug("0000:c1:00.0", "nvidia-nvswitch", **{"class": "0x068000"})
    node.write("var/log/kern.log", sample("kern.log"))
    node.write(
        "proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release\n"
    )
    node.write(
        "var/lib/dpkg/status",
        "Package: nvidia-open-kernel-dkms\nStatus: hold ok installed\nVersion: 580.95.05-1\n",
    )
    return node


def broken(node: Node, outcome: Outcome) -> dict[str, Any]:
    node.answers = dict.fromkeys(node.answers, outcome)
    return node.gather()


def test_a_node_with_a_working_nvidia_smi_has_all_facts(node: Node) -> None:
    found = node.gather()
    parts = ["gpu_topology", "gpu_xids", "gpu_kernel_errors"]
    assert list(found) == ["gpus", "nvswitches", "nvswitch_managers", "gpu_driver", *parts]
    assert found["gpu_driver"] == {
        "ok": True,
        "error": None,
        "version": "580.95.05",
        "cuda_version": "13.0",
        "module_version": "580.95.05",
        "module_flavor": "open",
        "package": {"name": "nvidia-open-kernel-dkms", "version": "580.95.05-1", "flavor": "open"},
        "library_version": None,
        "matches_package": True,
    }
    first, second = found["gpus"]
    assert (first["index"], first["pci_bus_id"], first["numa_node"], first["driver"]) == (0, FIRST, 1, "nvidia")
    assert (first["product"], first["compute_capability"]) == ("H100-80GB", "9.0")
    assert first["pcie"] == {"gen": 1, "width": 8, "gen_max": 5, "width_max": 16}
    assert first["nvlink"]["inactive"] == [1]
    assert [(one["profile"], one["uuid"][:12]) for one in second["mig_devices"]] == [
        ("3g.40gb", "MIG-aaaaaaaa"),
        ("1g.10gb+me", "MIG-bbbbbbbb"),
    ]
    assert [gpu["pci_bus_id"] for gpu in found["gpu_topology"]["gpus"]] == [FIRST, SECOND]
    assert [one["xid"] for one in found["gpu_xids"]] == [79, 31]
    assert [one["kind"] for one in found["gpu_kernel_errors"]] == ["fallen_off_bus"]


def test_a_node_without_a_driver_has_only_the_facts_of_the_bus_and_of_the_product_tables(node: Node) -> None:
    for path in ("proc/driver/nvidia/version", "var/lib/dpkg/status", "var/log/kern.log"):
        (node.root / path).unlink()
    for address in (FIRST, SECOND):
        (node.root / f"sys/bus/pci/devices/{address}/driver").unlink()
    found = broken(node, Outcome(None, failure="not_installed", message="nvidia-smi is not installed"))
    assert node.asked == ["-q -x"], "a missing nvidia-smi is called once"
    assert found["gpu_driver"]["ok"] is False
    assert found["gpu_driver"]["error"] == {
        "kind": "not_installed",
        "message": "nvidia-smi is not installed",
        "pci_bus_id": None,
    }
    assert found["gpu_topology"] is found["gpu_xids"] is found["gpu_kernel_errors"] is None
    for gpu, address in zip(found["gpus"], (FIRST, SECOND), strict=True):
        assert (gpu["pci_bus_id"], gpu["pci_device_id"], gpu["index"]) == (address, "10de:2330", None)
        assert (gpu["name"], gpu["product"], gpu["architecture"]) == ("NVIDIA H100 80GB HBM3", "H100-80GB", "Hopper")
        assert gpu["memory_total_mib"] is None, "nvidia-smi has not reported the memory"
        assert (gpu["reported"], gpu["driver"], gpu["uuid"], gpu["mig_mode"]) == (False, None, None, None)
        assert gpu["ecc"]["current"] is None and gpu["mig_devices"] == []


def test_switches_outside_the_bus_are_found_by_their_managers(tmp_path: Path) -> None:
    """HGX B200 has such switches. No driver is needed. For other generations of GPUs, the NICs are not read."""
    node = Node(tmp_path, {"-q -x": Outcome(None, failure="not_installed")})
    node.plug("0000:05:00.0", vendor="0x15b3", device="0x1021", vpd="SMDL=SW_MNG", **{"class": "0x020700"})
    node.plug(FIRST, device="0x2330")
    assert node.gather("nvidia_smi")["nvswitch_managers"] == []
    node.plug(SECOND, device="0x2901")
    found = node.gather("nvidia_smi")
    assert (found["nvswitches"], found["nvswitch_managers"]) == ([], ["0000:05:00.0"])


def test_a_gpu_of_an_unknown_product_has_no_name(node: Node) -> None:
    node.plug("0000:05:00.0", device="0x0001")
    gpu = broken(node, Outcome(9))["gpus"][0]
    assert (gpu["pci_bus_id"], gpu["pci_device_id"]) == ("0000:05:00.0", "10de:0001")
    assert gpu["name"] is gpu["product"] is gpu["architecture"] is gpu["compute_capability"] is None
    assert gpu["memory_total_mib"] is None


def test_memory_that_nvidia_smi_does_not_report_is_unknown(node: Node, sample: Sample) -> None:
    node.answers["-q -x"] = Outcome(0, sample("report-580.xml").replace("81559 MiB", "N/A"))
    assert [gpu["memory_total_mib"] for gpu in node.gather()["gpus"]] == [None, None]


def test_every_gpu_has_the_same_keys(node: Node) -> None:
    node.plug("0000:05:00.0")

    def keys(value: Any) -> Any:
        return {key: keys(one) for key, one in value.items()} if isinstance(value, dict) else None

    shapes = [keys({**gpu, "nvlink": None}) for gpu in node.gather()["gpus"]]
    assert shapes[0] == shapes[1] == shapes[2]


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        (Outcome(9, "it couldn't communicate with the NVIDIA driver."), "driver_not_loaded"),
        (Outcome(18, "Failed to initialize NVML: Driver/library version mismatch\n"), "driver_library_mismatch"),
        (Outcome(255, "Failed to initialize NVML: Unknown Error\n"), "nvml_unknown_error"),
        (Outcome(6, "No devices were found\n"), "no_devices"),
        (Outcome(0, "<nvidia_smi_log></nvidia_smi_log>"), "no_devices"),
        (Outcome(None, "", "", "timeout", "nvidia-smi did not end within 5 s"), "timeout"),
        (Outcome(None, "y\n" * 9, "", "endless_output", "too much"), "endless_output"),
        (Outcome(0, ""), "malformed_output"),
        (Outcome(0, "\x00\xff garbage"), "malformed_output"),
        (Outcome(-11, "", ""), "failed"),
        (Outcome(1, "", "words nobody knows"), "failed"),
    ],
)
def test_a_failure_of_nvidia_smi_is_an_error_in_the_facts(node: Node, outcome: Outcome, kind: str) -> None:
    found = broken(node, outcome)
    assert found["gpu_driver"]["ok"] is False
    assert found["gpu_driver"]["error"]["kind"] == kind
    assert found["gpu_driver"]["error"]["message"]
    assert [gpu["pci_bus_id"] for gpu in found["gpus"]] == [FIRST, SECOND]
    assert found["gpu_driver"]["version"] == "580.95.05", "the loaded module's"
    assert found["gpu_topology"] is None
    assert (len(node.asked) == 1) == (outcome.failure is not None)


def test_an_incomplete_report_keeps_its_gpus(node: Node, sample: Sample) -> None:
    text = sample("report-580.xml")
    node.answers["-q -x"] = Outcome(None, text[: text.rindex("<gpu ")], "", "timeout", "did not end")
    found = node.gather("nvidia_smi")
    assert found["gpu_driver"]["error"]["kind"] == "timeout"
    assert [(gpu["reported"], gpu["memory_used_mib"]) for gpu in found["gpus"]] == [(True, 70001), (False, None)]


def test_a_warning_after_a_good_report_is_an_error(node: Node) -> None:
    words = "WARNING: infoROM is corrupted at gpu 0000:1B:00.0\n"
    node.answers["-q -x"] = Outcome(14, node.answers["-q -x"].stdout + words)
    found = node.gather()
    assert found["gpu_driver"]["error"] == {"kind": "inforom_corrupted", "message": words.strip(), "pci_bus_id": FIRST}
    assert [gpu["reported"] for gpu in found["gpus"]] == [True, True]
    assert found["gpu_topology"] is not None


def test_a_gpu_that_nvidia_smi_reports_as_lost_is_lost(node: Node) -> None:
    words = f"Unable to determine the device handle for GPU {SECOND}: GPU is lost.  Reboot the system"
    found = broken(node, Outcome(15, words))
    assert found["gpu_driver"]["error"]["kind"] == "gpu_lost"
    assert [gpu["lost"] for gpu in found["gpus"]] == [False, True]


def test_a_gpu_without_an_address_is_not_lost_because_the_message_names_no_gpu(node: Node) -> None:
    node.answers["-q -x"] = Outcome(15, node.answers["-q -x"].stdout.replace("1B:00.0", "unknown"))
    found = node.gather("nvidia_smi")
    assert found["gpu_driver"]["error"]["kind"] == "gpu_lost"
    assert None in [gpu["pci_bus_id"] for gpu in found["gpus"]]
    assert not any(gpu["lost"] for gpu in found["gpus"])


def test_a_gpu_that_does_not_answer_on_the_bus_is_lost(node: Node) -> None:
    (node.root / f"sys/bus/pci/devices/{SECOND}/config").write_bytes(b"\xff" * 64)
    found = node.gather("nvidia_smi")
    assert found["gpu_driver"]["error"]["kind"] == "gpu_lost"
    assert found["gpu_driver"]["error"]["pci_bus_id"] == SECOND
    assert [gpu["lost"] for gpu in found["gpus"]] == [False, True]


def test_a_gpu_that_nvidia_smi_does_not_list_is_missing_unless_excluded(node: Node) -> None:
    node.plug("0000:05:00.0", "nvidia")
    found = node.gather("nvidia_smi")
    assert found["gpu_driver"]["error"]["kind"] == "gpu_missing"
    assert found["gpu_driver"]["error"]["pci_bus_id"] == "0000:05:00.0"
    assert [gpu["pci_bus_id"] for gpu in found["gpus"]] == [FIRST, SECOND, "0000:05:00.0"]
    node.write("proc/driver/nvidia/gpus/0000:05:00.0/information", "GPU Excluded:\t Yes\n")
    found = node.gather("nvidia_smi")
    assert found["gpu_driver"]["ok"] is True
    assert [gpu["excluded"] for gpu in found["gpus"]] == [False, False, True]


def test_a_gpu_given_to_a_virtual_machine_is_not_missing(node: Node) -> None:
    node.plug("0000:05:00.0", "vfio-pci")
    found = node.gather("nvidia_smi")
    assert found["gpu_driver"]["ok"] is True
    assert found["gpus"][2]["driver"] == "vfio-pci"
    assert [gpu["excluded"] for gpu in found["gpus"]] == [False, False, True], "also without the files of the driver"


def test_without_a_bus_only_the_report_counts(node: Node, tmp_path: Path) -> None:
    node.root = tmp_path / "container"
    gpu = node.gather()["gpus"][0]
    assert (gpu["pci_bus_id"], gpu["pcie"]["gen_max"], gpu["numa_node"]) == (FIRST, 5, None)


@pytest.mark.parametrize(
    ("parts", "asked", "keys"),
    [
        ([], [], ["gpus", "nvswitches", "nvswitch_managers", "gpu_driver"]),
        (["nvlink"], ["nvlink -s"], ["gpus", "nvswitches", "nvswitch_managers", "gpu_driver"]),
        (["topology"], ["topo -m"], ["gpus", "nvswitches", "nvswitch_managers", "gpu_driver", "gpu_topology"]),
        (["xids"], [], ["gpus", "nvswitches", "nvswitch_managers", "gpu_driver", "gpu_xids", "gpu_kernel_errors"]),
    ],
)
def test_parts_that_are_left_out_are_not_read(node: Node, parts: list[str], asked: list[str], keys: list[str]) -> None:
    found = facts.gather(node.root, node.run, "nvidia-smi", parts, 5)
    assert node.asked == asked and list(found) == keys
    assert found["gpu_driver"]["ok"] is (True if asked else None)
    assert [gpu["pci_bus_id"] for gpu in found["gpus"]] == [FIRST, SECOND]


@given(
    st.text(),
    st.integers(-64, 255),
    st.sampled_from(["", "\tGPU0\nGPU0\t X \n", f"GPU {'9' * 5000}: x (UUID: GPU-1)\n"]),
)
def test_any_output_of_nvidia_smi_gives_facts(text: str, code: int, before: str) -> None:
    found = facts.gather(
        Path("/none"), lambda command: Outcome(code, before + text, text), "nvidia-smi", facts.PARTS, 5
    )
    assert json.dumps(found, allow_nan=False) and found["gpu_driver"]["ok"] is False


def test_a_topology_that_hangs_is_an_error(node: Node) -> None:
    node.answers["topo -m"] = Outcome(None, "", "", "timeout", "did not end")
    found = node.gather()
    assert found["gpu_driver"]["error"]["kind"] == "timeout" and found["gpu_topology"] is None
    assert found["gpus"][0]["reported"]


def test_gathering_takes_less_than_50_ms_of_processor_time(node: Node, sample: Sample) -> None:
    # Sixteen GPUs, and as many clocks as a real report lists.
    gpu = sample("report-580.xml")
    gpu = gpu[gpu.index("<gpu ") : gpu.index("</gpu>") + 6]
    clocks = "<supported_clocks>" + "<v>1 MHz</v>" * 2000 + "</supported_clocks></gpu>"
    gpus = "".join(gpu.replace("1B:00", f"{bus:02X}:00").replace("</gpu>", clocks) for bus in range(16, 32))
    node.answers["-q -x"] = Outcome(0, f"<nvidia_smi_log>{gpus}</nvidia_smi_log>")
    times = []
    for _attempt in range(5):
        start = time.process_time()
        assert len(node.gather()["gpus"]) >= 16
        times.append(time.process_time() - start)
    assert min(times) < 0.05
