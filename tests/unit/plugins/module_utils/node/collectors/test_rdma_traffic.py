# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The traffic of RDMA ports as metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.exposition import Samples
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings.desired import Desired, Rail
from ansible_collections.baremetal.inference.plugins.module_utils.node.collectors import rdma_traffic
from ansible_collections.baremetal.inference.tests.unit.plugins.module_utils.hardware.rdma_settings.samples import (
    device,
    facts,
    port,
)

from ..conftest import write

COUNTERS = {"tx_prio3_bytes": 11, "rx_prio3_pause": 2, "rx_prio3_discards": 1, "rx_discards_phy": 4, "rx_packets": 9}


def rendered(root: Path, found: dict[str, Any], read: rdma_traffic.Read | None = None) -> str:
    samples = Samples(rdma_traffic.HELP)
    rdma_traffic.render(Paths(root), found, samples, read)
    return samples.text()


def test_an_rdma_port_has_metrics_of_bytes_priorities_and_rails(tmp_path: Path) -> None:
    write(tmp_path / "sys/class/infiniband/rocep0s0/ports/1/counters/port_xmit_data", "100")
    files.write_json(Paths(tmp_path).rdma_settings, Desired([Rail("0000:10:00.0/1", "ethernet", pfc=[3])]).as_dict())
    text = rendered(tmp_path, facts(device(0)), lambda netdev: COUNTERS if netdev == "ens0" else {})
    where = 'device="rocep0s0",port="1"'
    for line in (
        f'inference_rdma_port_bytes_total{{{where},direction="sent"}} 400',
        f'inference_rdma_priority_bytes_total{{{where},priority="3",direction="sent"}} 11',
        f'inference_rdma_priority_pauses_total{{{where},priority="3",direction="received"}} 2',
        f'inference_rdma_priority_discards_total{{{where},priority="3"}} 1',
        f"inference_rdma_port_discards_total{{{where}}} 4",
        f'inference_rdma_rail{{{where},rail="0"}} 1',
        f'inference_rdma_lossless_priority{{{where},priority="3"}} 1',
    ):
        assert f"{line}\n" in text, text
    assert "received" not in "".join(line for line in text.splitlines() if "port_bytes_total{" in line)


@pytest.mark.parametrize("record", ["{", "{}"])
def test_without_rails_and_counters_there_is_no_series(tmp_path: Path, record: str) -> None:
    files.write(Paths(tmp_path).rdma_settings, record)
    for found in (facts(device(0, port(0, netdev=None))), facts()):
        text = rendered(tmp_path, found, lambda netdev: {})
        assert not [line for line in text.splitlines() if line and not line.startswith("#")]
