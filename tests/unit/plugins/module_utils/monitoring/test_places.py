# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Paths on machines: a later version finds what an earlier one has written there."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.module_utils.monitoring import places


def test_the_paths_of_a_monitoring_host_are_those_of_earlier_versions() -> None:
    assert {str(places.DIRECTORY / name): package for name, package in places.OWNED.items()} == {
        "/etc/prometheus/prometheus.yml": "prometheus",
        "/etc/prometheus/alertmanager.yml": "prometheus-alertmanager",
    }
    drop_in = places.UNITS / f"{places.ALERTMANAGER}.d" / places.DROP_IN
    assert str(drop_in) == "/etc/systemd/system/prometheus-alertmanager.service.d/inference.conf"
    assert str(places.STATE) == "/var/lib/inference/monitoring.json"
    assert [str(places.SAMPLES), str(places.SILENCES)] == [
        "/var/lib/prometheus/metrics2",
        "/var/lib/prometheus/alertmanager",
    ]
