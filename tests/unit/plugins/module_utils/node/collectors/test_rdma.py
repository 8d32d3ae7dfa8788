# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ports of RDMA as metrics."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.baremetal.inference.plugins.module_utils.core.exposition import Samples
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.node.collectors import rdma

from ..conftest import write
from .conftest import collect


def test_an_rdma_port_has_metrics(tmp_path: Path) -> None:
    port = tmp_path / "sys/class/infiniband/mlx5_0/ports/1"
    for name, value in {"state": "4: ACTIVE", "rate": "400 Gb/sec (4X NDR)", "link_layer": "InfiniBand"}.items():
        write(port / name, value)
    write(port / "counters/link_downed", "3")
    write(port / "hw_counters/lifespan", "12")
    text = collect("rdma", Paths(tmp_path))
    assert "inference_rdma_ports 1\n" in text
    assert 'inference_rdma_port_active{device="mlx5_0",port="1"} 1\n' in text
    assert 'inference_rdma_port_rate_bytes_per_second{device="mlx5_0",port="1"} 50000000000\n' in text
    assert 'inference_rdma_port_errors_total{device="mlx5_0",port="1",counter="link_downed"} 3\n' in text
    assert "lifespan" not in text


def test_a_node_without_rdma_has_no_port(tmp_path: Path) -> None:
    text = collect("rdma", Paths(tmp_path))
    assert "inference_rdma_ports 0\n" in text and "inference_rdma_nics_without_driver 0\n" in text
    assert "inference_rdma_port_" not in text


def test_unknown_values_of_a_port_have_no_metrics() -> None:
    port = {"port": 2, "link_layer": None, "netdev": "", "state": "", "rate_gbps": None, "counters": None}
    facts = {"rdma_devices": [{"name": "mlx5_0", "firmware": None, "ports": [port]}], "rdma_nics_without_driver": [1]}
    samples = Samples(rdma.HELP)
    rdma.render(facts, samples)
    text = samples.text()
    assert 'inference_rdma_port_info{device="mlx5_0",port="2",link_layer="",netdev="",firmware=""} 1\n' in text
    assert "inference_rdma_nics_without_driver 1\n" in text
    assert "inference_rdma_port_active{" not in text and "inference_rdma_port_rate_bytes_per_second{" not in text
