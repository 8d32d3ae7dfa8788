# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The certificate of a gateway over its life: renewed, handed over, published."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import systemd
from ansible_collections.baremetal.inference.plugins.module_utils.gateway import acme, certificates, serving
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.authority import Authority
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.serving import Serving

from .test_handing_over import HAProxy

NAMES = ("gw1", "192.0.2.1")
NOW = datetime.now(UTC)


@pytest.fixture(scope="session")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a gateway that has made its CA and its certificate. Tests work on copies."""
    authority = Authority(tmp_path_factory.mktemp("certified") / "tls")
    authority.make_root("gw1", NOW)
    authority.install(authority.sign(authority.request(), "gw1", NAMES))
    authority.renew(NAMES, NOW)
    return authority.directory


@pytest.fixture
def own(certified: Path, tmp_path: Path) -> Serving:
    authority = Authority(shutil.copytree(certified, tmp_path / "tls"))
    metrics = tmp_path / "metrics/inference-gateway.prom"
    metrics.parent.mkdir()
    return Serving("ca", str(authority.served), "", NAMES, authority, metrics)


@pytest.fixture
def haproxy(own: Serving, tmp_path: Path) -> HAProxy:
    found = HAProxy(certificates.fingerprint(Path(own.certificate)))
    found.coming_to = str(tmp_path / "coming.pem")
    return found


def test_nothing_is_done_until_a_renewal_is_due(own: Serving, haproxy: HAProxy) -> None:
    assert own.update(haproxy, NOW) == []
    assert not any(call.startswith("set") for call in haproxy.calls)
    done = own.update(haproxy, NOW + timedelta(days=61))
    assert done == [f"renewed the certificate {own.certificate}", "HAProxy serves the new certificate"]
    assert haproxy.serves == certificates.fingerprint(Path(own.certificate))


def test_only_a_certificate_of_the_sites_own_ca_can_be_renewed_by_hand(own: Serving, haproxy: HAProxy) -> None:
    assert len(own.update(haproxy, NOW, renew=True)) == 2
    with pytest.raises(ValueError, match="renew it where it comes from"):
        Serving("certificate", own.certificate, authority=own.authority).update(haproxy, NOW, renew=True)


def test_a_haproxy_that_refuses_the_certificate_is_reloaded(
    own: Serving, haproxy: HAProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, ...]] = []
    monkeypatch.setattr(systemd, "systemctl", lambda *words: calls.append(words))
    haproxy.takes = False
    (_renewed, message) = own.update(haproxy, NOW, renew=True)
    assert calls == [("reload", "haproxy.service")] and "was reloaded" in message


def test_metrics_and_status_have_the_end_and_the_served_certificate(own: Serving, haproxy: HAProxy) -> None:
    own.update(haproxy, NOW)
    text = own.metrics.read_text()
    end = certificates.read(Path(own.certificate)).end.timestamp()
    assert f'inference_gateway_certificate_end_timestamp_seconds{{form="ca"}} {end:.0f}\n' in text
    assert "inference_gateway_certificate_served 1\n" in text and "inference_gateway_authority_end" in text
    lines, sound = own.status(haproxy, NOW)
    assert sound and "names: 192.0.2.1, gw1" in lines[1].replace("gw1, 192.0.2.1", "192.0.2.1, gw1"), lines
    assert not own.status(haproxy, NOW + timedelta(days=75))[1]
    haproxy.serves = "A" * 40
    lines, sound = own.status(haproxy, NOW)
    assert not sound and "another certificate" in lines[-1]
    haproxy.serves = ""
    assert "serves no certificate" in own.status(haproxy, NOW)[0][-1]


def test_a_certificate_that_is_not_valid_yet_is_reported_and_renewed(own: Serving, haproxy: HAProxy) -> None:
    """The clock was ahead when the certificate was made."""
    own.authority.renew(NAMES, NOW + timedelta(days=400))
    haproxy.serves = certificates.fingerprint(Path(own.certificate))
    lines, sound = own.status(haproxy, NOW)
    assert not sound and "not valid yet: it begins" in lines[-1], lines
    assert "inference-gateway-certificate update" in lines[-1]
    assert own.update(haproxy, NOW)[0] == f"renewed the certificate {own.certificate}"
    assert own.status(haproxy, NOW)[1]
    sites = Serving("certificate", own.certificate, authority=own.authority, metrics=own.metrics)
    assert "set the clock, or renew it" in sites.status(haproxy, NOW - timedelta(days=2))[0][-1]


def test_without_a_node_exporter_there_are_no_metrics(own: Serving, haproxy: HAProxy) -> None:
    own.metrics.parent.rmdir()
    own.update(haproxy, NOW)
    assert not own.metrics.parent.exists()


def test_settings_are_kept_for_the_timer(own: Serving, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps(own.to_dict()))
    found = serving.load(path)
    assert (found.form, found.certificate, found.names) == (own.form, own.certificate, own.names)
    for text in ('{"schema": 99}', "[]", '{"schema": 1, "form": "ca"}', json.dumps({**own.to_dict(), "names": None})):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"baremetal\.inference\.site"):
            serving.load(path)


def test_the_paths_depend_on_the_form() -> None:
    assert serving.paths("certificate", "/a", "/b") == ("/a", "/b")
    assert serving.paths("none", "/a", "/b") == serving.paths("kept", "/a", "/b") == ("", "")
    assert serving.paths("ca", "", "") == ("/var/lib/inference/gateway-tls/served.pem", "")
    assert serving.coming() == {
        "/var/lib/inference/gateway-tls/served.pem",
        str(acme.chain()),
        "/etc/letsencrypt/live/inference-gateway/privkey.pem",
    }
