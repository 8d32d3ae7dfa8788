# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The remains of earlier runs on a machine below a temporary root."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import systemd
from ansible_collections.baremetal.inference.plugins.module_utils.gateway import names
from ansible_collections.baremetal.inference.plugins.module_utils.gateway import places as gateway_places
from ansible_collections.baremetal.inference.plugins.module_utils.gateway import removal as gateway
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring import places, removal
from ansible_collections.baremetal.inference.plugins.module_utils.node import left

from ...modules.conftest import Systemd


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without files of this collection."""
    for name, path in (("DIRECTORY", "haproxy"), ("FLOATING", "keepalived.conf"), ("STATE", "gateway.json")):
        monkeypatch.setattr(gateway, name, tmp_path / path)
    for name, path in (("DIRECTORY", "prometheus"), ("STATE", "monitoring.json")):
        monkeypatch.setattr(removal, name, tmp_path / path)
    monkeypatch.setattr(places, "LOG_CONFIG", tmp_path / "logs.conf")
    monkeypatch.setattr(places, "LOG_STATES", (tmp_path / "private", tmp_path))
    for path in ("haproxy", "prometheus"):
        (tmp_path / path).mkdir()
    return tmp_path


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Systemd:
    """All of the services run."""
    found = Systemd((gateway_places.HAPROXY, gateway_places.KEEPALIVED, places.PROMETHEUS, places.ALERTMANAGER))
    monkeypatch.setattr(systemd, "show", found.show)
    monkeypatch.setattr(systemd, "systemctl", found.systemctl)
    return found


def test_a_machine_without_files_has_no_remains_and_its_services_are_not_read(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(systemd, "systemctl", lambda *_arguments: pytest.fail("asked"))
    found = left.gather()
    assert found["left"] == []
    nothing = {
        "services": [],
        "files": [],
        "floating_address": "",
        "serves": "",
        "authority": {"lead": False, "root": ""},
    }
    assert found["gateway"] == nothing
    assert found["monitoring"] == {"services": [], "files": []} and found["logs"] == {"files": []}


def test_remains_are_reported_with_their_services(root: Path, running: Systemd) -> None:
    (root / "haproxy/haproxy.cfg").write_text(f"{names.HEADER}\n")
    (root / "keepalived.conf").write_text(f"{names.HEADER}\nvirtual_ipaddress {{\n  192.0.2.10/24\n}}\n")
    (root / "prometheus/prometheus.yml").write_text(f"{places.HEADER}\n")
    (root / "logs.conf").write_text(f"{places.HEADER}\n")
    found = left.gather()
    assert found["left"] == ["gateway", "monitoring", "logs"]
    assert found["gateway"]["services"] == [gateway_places.KEEPALIVED, gateway_places.HAPROXY]
    assert (found["gateway"]["floating_address"], found["gateway"]["serves"]) == ("192.0.2.10/24", "plain")
    assert found["monitoring"]["services"] == [places.PROMETHEUS, places.ALERTMANAGER]
    assert found["logs"]["files"] == [str(root / "logs.conf")]
    # gather() changes nothing.
    assert running.calls == [] and (root / "haproxy/haproxy.cfg").exists()


def test_a_link_that_a_cut_off_removal_has_left_is_reported(root: Path) -> None:
    (root / places.LOG_STATE).symlink_to("private/gone")
    assert left.gather()["left"] == ["logs"]


def test_a_configuration_that_this_collection_did_not_write_is_not_reported(root: Path) -> None:
    (root / "haproxy/haproxy.cfg").write_text("global\n")
    (root / "prometheus/prometheus.yml").write_text("global:\n")
    assert left.gather()["left"] == []


def test_a_damaged_state_is_an_error(root: Path) -> None:
    (root / "gateway.json").write_text("{")
    with pytest.raises(ValueError, match=r"gateway\.json is not JSON"):
        left.gather()
