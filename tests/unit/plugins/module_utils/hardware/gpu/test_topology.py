# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The matrix of nvidia-smi topo -m, of the synthetic machine and of recorded ones, whole and mangled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu import topology

Sample = Callable[[str], str]

MATRIX = (Path(__file__).parent / "data/topology.txt").read_text()


def parse(text: str) -> topology.Topology:
    matrix = topology.parse(text)
    assert matrix is not None
    return matrix


def test_a_matrix_has_links_affinity_and_nearest_nics() -> None:
    matrix = parse(MATRIX)
    assert matrix.links == {
        "GPU0": {"GPU1": "NV18", "NIC0": "SYS", "NIC1": "PIX", "NIC2": "PIX"},
        "GPU1": {"GPU0": "NV18", "NIC0": "NODE", "NIC1": "SYS", "NIC2": "SYS"},
        "NIC0": {"GPU0": "SYS", "GPU1": "NODE", "NIC1": "SYS", "NIC2": "SYS"},
        "NIC1": {"GPU0": "PIX", "GPU1": "SYS", "NIC0": "SYS", "NIC2": "PXB"},
        "NIC2": {"GPU0": "PIX", "GPU1": "SYS", "NIC0": "SYS", "NIC1": "PXB"},
    }
    assert matrix.nics == [
        topology.TopologyNic("NIC0", "mlx5_2"),
        topology.TopologyNic("NIC1", "mlx5_0"),
        topology.TopologyNic("NIC2", None),
    ]
    assert matrix.gpus == [
        topology.TopologyGpu(0, None, "0-31,64-95", "0", None, ["mlx5_0", "NIC2"]),
        topology.TopologyGpu(1, None, "32-63,96-127", "1", None, ["mlx5_2"]),
    ]
    assert matrix.all_nvlink is True


def test_spaces_instead_of_tabs_give_the_same_links() -> None:
    assert parse(MATRIX.replace("\t", "   ")).links == parse(MATRIX).links


def test_columns_may_have_the_names_of_rdma_devices() -> None:
    matrix = parse("\tGPU0\tmlx5_1\tCPU Affinity\nGPU0\t X \tPHB\t0-7\nmlx5_1\tPHB\t X \n")
    assert matrix.nics == [topology.TopologyNic("mlx5_1", "mlx5_1")]
    assert matrix.gpus == [topology.TopologyGpu(0, None, "0-7", None, None, ["mlx5_1"])]
    assert matrix.all_nvlink is None


def test_one_pair_of_gpus_without_nvlink_makes_all_nvlink_false() -> None:
    text = "\tGPU0\tGPU1\tGPU2\nGPU0\tX\tNV4\tSYS\nGPU1\tNV4\tX\tSYS\nGPU2\tSYS\tSYS\tX\n"
    assert parse(text).all_nvlink is False


def test_affinity_that_a_container_does_not_have_is_unknown() -> None:
    header = "\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    assert parse(f"{header}GPU0\t X \t\t\t\tN/A\n").gpus == [topology.TopologyGpu(0)]
    assert parse(f"{header}GPU0\t X \t\t1\t\tN/A\n").gpus == [topology.TopologyGpu(0, numa_affinity="1")]
    assert parse(f"{header}GPU0\t X \t0-7\t\t\tN/A\n").gpus == [topology.TopologyGpu(0, cpu_affinity="0-7")]


def test_a_lost_tab_does_not_shift_the_links() -> None:
    matrix = parse(MATRIX.replace("NIC0\tNIC1\tNIC2\tCPU", "NIC0\tNIC1NIC2\tCPU").replace("PIX\tPIX", "PIXPIX"))
    assert matrix.links == parse(MATRIX).links


@pytest.mark.parametrize("row", ["GPU0\tNV18\t X \tSYS\tPIX\tPIX\t0-31", "GPU0\t X \tNV18\tSYS\t0-31\t0\tN/A", "GPU0"])
def test_a_row_that_is_shifted_or_cut_is_left_out(row: str) -> None:
    lines = MATRIX.splitlines()
    matrix = parse("\n".join([lines[0], row, *lines[2:]]))
    assert list(matrix.links) == ["GPU1", "NIC0", "NIC1", "NIC2"]
    assert matrix.all_nvlink is None


@pytest.mark.parametrize(
    "text",
    ["", "No devices were found", "ERROR: Option -m is missing its value\n", f"\tGPU0\n{'GPU' + '9' * 5000}\t X \n"],
)
def test_a_text_without_a_matrix_is_none(text: str) -> None:
    assert topology.parse(text) is None


def test_the_name_of_a_gpu_may_have_a_leading_zero() -> None:
    (gpu,) = parse("\tGPU0\tGPU01\tNIC0\nGPU01\tSYS\t X \tPIX\n").gpus
    assert (gpu.index, gpu.nearest_nics) == (1, ["NIC0"])


@given(st.integers(0, len(MATRIX)))
def test_a_matrix_cut_anywhere_has_no_wrong_link(end: int) -> None:
    matrix = topology.parse(MATRIX[:end])
    whole = parse(MATRIX).links
    for name, links in matrix.links.items() if matrix else ():
        # The cut may be within the last link: NV1 of NV18.
        assert all(whole[name][other].startswith(link) for other, link in links.items() if other in whole[name])


@given(st.lists(st.tuples(st.integers(0, len(MATRIX) - 1), st.characters()), max_size=20))
def test_flipped_characters_are_no_exception(flips: list[tuple[int, str]]) -> None:
    text = list(MATRIX)
    for position, character in flips:
        text[position] = character
    topology.parse("".join(text))


@pytest.mark.recordings("topo")
def test_recorded_matrices_are_read(recording: Any) -> None:
    expected = recording.expected
    matrix = topology.parse(recording.text())
    if not expected.get("valid", True) or expected.get("gpu_count", 0) == 0:
        assert matrix is None or not matrix.gpus
        return
    assert matrix is not None
    assert len(matrix.gpus) == expected["gpu_count"]
    assert bool(matrix.all_nvlink) == expected["all_nvlink"]
    gpus = [f"GPU{gpu.index}" for gpu in matrix.gpus]
    links = {matrix.links[one][other] for one in gpus for other in gpus if one != other}
    assert links == set(expected["gpu_gpu_links"])
    if "nic_count" in expected:
        assert len(matrix.nics) == expected["nic_count"]
        legend = {nic.name: nic.device for nic in matrix.nics if nic.name.startswith("NIC") and nic.device}
        assert legend == expected["nic_legend"]
    names = expected.get("devices")
    for name, row in expected.get("matrix", {}).items():
        assert matrix.links[name] == {other: cell for other, cell in zip(names, row, strict=True) if other != name}
    for gpu in matrix.gpus if "affinity" in expected else ():
        known = expected["affinity"].get(f"GPU{gpu.index}", {})
        found = (gpu.cpu_affinity, gpu.numa_affinity, gpu.gpu_numa_id)
        wanted = (known.get("cpu"), known.get("numa"), known.get("gpu_numa"))
        assert found == tuple(None if value == "N/A" else value for value in wanted)
