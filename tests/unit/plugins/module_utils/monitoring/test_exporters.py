# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The units of the exporters."""

from __future__ import annotations

from itertools import pairwise

from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.exporters import dcgm_unit, node_drop_in

IMAGE = f"registry.example.com/dcgm-exporter@sha256:{'0' * 64}"


def test_node_exporter_listens_on_the_given_address() -> None:
    assert "--web.listen-address=:9100 " in node_drop_in("", 9100)
    assert "--web.listen-address=[2001:db8::1]:9101 " in node_drop_in("2001:db8::1", 9101)


def test_each_dollar_in_the_unit_of_node_exporter_is_doubled() -> None:
    text = node_drop_in("", 9100)
    assert text.count("$") == 2 * text.count("$$") > 0
    assert "--collector.textfile.directory=/var/lib/prometheus/node-exporter" in text


def test_dcgm_exporter_gets_all_gpus_and_only_the_capability_sys_admin() -> None:
    cdi = dcgm_unit(IMAGE, "", 9400, "cdi")
    assert "--device=nvidia.com/gpu=all" in cdi and IMAGE in cdi and "PartOf=nvidia-persistenced.service" in cdi
    words = cdi.replace("\\\n", " ").split()
    rights = [pair for pair in pairwise(words) if pair[0] in ("--cap-drop", "--cap-add", "--security-opt")]
    assert rights == [("--cap-drop", "ALL"), ("--cap-add", "SYS_ADMIN"), ("--security-opt", "no-new-privileges")]
    assert "--runtime=nvidia" in dcgm_unit(IMAGE, "", 9400, "runtime")


def test_dcgm_exporter_does_not_start_docker() -> None:
    """Each restart of a unit also starts what it wants. A Docker that an operator has stopped would come back."""
    lines = dcgm_unit(IMAGE, "", 9400, "cdi").splitlines()
    (after,) = [line for line in lines if line.startswith("After=")]
    assert "docker.service" in after and "Restart=always" in lines
    others = [line for line in lines if line != after and not line.startswith("Exec")]
    assert not [line for line in others if "docker" in line]
