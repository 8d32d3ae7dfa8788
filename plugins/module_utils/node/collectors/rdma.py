# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics of the RDMA ports. Private to the collection; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.exposition import Help, Samples

BYTES = 1_000_000_000 / 8
"""Bytes in a gigabit."""

COUNTERS = (
    "duplicate_request",
    "link_downed",
    "link_error_recovery",
    "local_ack_timeout_err",
    "local_link_integrity_errors",
    "np_cnp_sent",
    "np_ecn_marked_roce_packets",
    "out_of_buffer",
    "out_of_sequence",
    "packet_seq_err",
    "port_rcv_errors",
    "port_xmit_discards",
    "port_xmit_wait",
    "rnr_nak_retry_err",
    "roce_slow_restart",
    "rp_cnp_handled",
    "rx_icrc_encapsulated",
    "symbol_error",
    "symbol_error_ber",
    "out_of_seq_request",
    "rcvd_seq_err",
    "retry_exceeded_err",
)
"""Counters that show bad links and congestion; the last three belong to software RoCE. All counters of the kernel would
be some hundred series for a node. Sources: Documentation/ABI/stable/sysfs-class-infiniband, mlx5/counters.c and
rxe_hw_counters.c of Linux."""

HELP: Help = {
    "inference_rdma_ports": "Ports of RDMA devices.",
    "inference_rdma_nics_without_driver": "Network cards that can do RDMA, without a driver for it.",
    "inference_rdma_port_info": "1 for the identity of a port.",
    "inference_rdma_port_active": "1 if the port is active.",
    "inference_rdma_port_rate_bytes_per_second": "Rate of the port over all lanes.",
    "inference_rdma_port_errors_total": "Errors and signs of congestion, by the kernel's name for the counter.",
}


def render(facts: Mapping[str, Any], samples: Samples) -> None:
    """Add the facts of rdma_facts."""
    ports = [(device, port) for device in facts["rdma_devices"] for port in device["ports"]]
    samples.add("inference_rdma_ports", len(ports))
    samples.add("inference_rdma_nics_without_driver", len(facts["rdma_nics_without_driver"]))
    for device, port in ports:
        where = {"device": device["name"], "port": str(port["port"])}
        words = {"link_layer": port["link_layer"], "netdev": port["netdev"], "firmware": device["firmware"]}
        samples.add("inference_rdma_port_info", 1, **where, **{key: str(text or "") for key, text in words.items()})
        if port["state"]:
            samples.add("inference_rdma_port_active", port["state"].startswith("ACTIVE"), **where)
        if port["rate_gbps"] is not None:
            samples.add("inference_rdma_port_rate_bytes_per_second", port["rate_gbps"] * BYTES, **where)
        for counter, value in (port["counters"] or {}).items():
            if counter in COUNTERS:
                samples.add("inference_rdma_port_errors_total", value, **where, counter=counter)
