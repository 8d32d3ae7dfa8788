# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""TLS at the gateway: the site's own CA by default, a site's certificate, ACME, and plain HTTP after an upgrade."""

from __future__ import annotations

import hashlib
import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures import on_deb12
from gateway import KEY, SHORT, Gateway
from load import Load
from node import Node, changed_tasks, wait_for

RENEW = "inference-gateway-certificate update --renew"
TLS = "/var/lib/inference/gateway-tls"

PEBBLE = {
    "pebble": {
        "listenAddress": "127.0.0.1:14000",
        "managementListenAddress": "127.0.0.1:15000",
        "certificate": "/root/acme/server.pem",
        "privateKey": "/root/acme/server.key",
        "httpPort": 80,
        "tlsPort": 443,
        "ocspResponderURL": "",
        "externalAccountBindingRequired": False,
    }
}
"""The configuration of Pebble, the ACME authority for tests."""


def fingerprint(gateway: Gateway) -> str:
    """SHA-1 of the certificate that clients get."""
    return hashlib.sha1(ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate((gateway.address, 8000)))).hexdigest()


def plain(gateway: Gateway) -> Load:
    """Clients without TLS."""
    return Load(f"http://{gateway.address}:8000", ("main",), 3, KEY, SHORT)


def test_a_new_gateway_has_a_certificate_of_the_sites_own_ca(gateway: Gateway) -> None:
    """The certificate has the gateway's name and address. A connection without TLS ends. TLS 1.1 is refused."""
    report = gateway.load(clients=2, keep=False).during(lambda: None)
    assert not report.failures and report.succeeded, report
    without = plain(gateway).during(lambda: None)
    assert without.failures and not without.succeeded
    # "Empty reply from server", or "Connection reset by peer".
    code = gateway.node.run("curl --silent http://127.0.0.1:8000/v1/models; echo $?")
    assert code in ("52", "56")
    assert "127.0.0.1" in gateway.node.run("journalctl --unit haproxy --grep 'SSL handshake failure' --output cat")
    name = gateway.node.name
    curl = f"curl --silent --cacert /etc/haproxy/site-ca.pem --resolve {name}:8000:127.0.0.1"
    ask = f"{curl} --header 'Authorization: Bearer {KEY}' https://{name}:8000/v1/models --output /dev/null"
    for version in ("1.1", "2"):
        said = gateway.node.run(f"{ask} --http{version} --write-out '%{{http_code}} %{{http_version}}'")
        assert said == f"200 {version}"
    # With Debian's default ciphers, curl itself would refuse TLS 1.1.
    old = "--tls-max 1.1 --ciphers DEFAULT@SECLEVEL=0"
    assert gateway.node.run(f"{ask} {old} --write-out %{{http_code}}", check=False) == "000"
    assert "ends: " in gateway.node.run("inference-gateway-certificate status")
    timer = "systemctl show --value --property=ActiveState --property=UnitFileState inference-gateway-certificate.timer"
    assert gateway.node.run(timer).split() == ["active", "enabled"]


def test_a_renewal_under_load_fails_no_request(gateway: Gateway) -> None:
    """Each request has a new connection, and each client verifies the certificate."""
    before, process, root = fingerprint(gateway), gateway.pid, gateway.trusted
    report = gateway.load(clients=6, keep=False).during(lambda: [gateway.node.run(RENEW) for _turn in range(3)])
    assert not report.failures and report.succeeded > 20, report
    assert fingerprint(gateway) != before and gateway.pid == process
    assert gateway.node.run("cat /etc/haproxy/site-ca.pem") == root
    # The timer starts this service. After a reload, HAProxy has the same certificate.
    gateway.node.run("systemctl start inference-gateway-certificate.service")
    now = fingerprint(gateway)
    report = gateway.load(clients=3, keep=False).during(lambda: gateway.node.run("systemctl reload haproxy"))
    assert not report.failures and fingerprint(gateway) == now, report


def test_no_private_key_is_readable_or_printed(gateway: Gateway, tmp_path: Path) -> None:
    before = fingerprint(gateway)
    changed, said = changed_tasks(gateway.node, tmp_path, "--diff", gateway_tls_names=["llm.example.com"])
    try:
        assert changed and "PRIVATE" not in said
        assert fingerprint(gateway) != before and gateway.ask().status == 200
        assert gateway.node.run("journalctl --grep 'PRIVATE KEY' --quiet", check=False) == ""
        found = gateway.node.run(
            "grep -rlsI -e '-----BEGIN.*PRIVATE KEY' /var/lib/inference /etc/haproxy /run /var/log /tmp"
        ).split()
        assert f"{TLS}/served.pem" in found
        assert set(gateway.node.run(f"stat --format %a {' '.join(found)}").split()) == {"600"}
        assert gateway.node.run(f"stat --format %a {TLS}") == "700"
    finally:
        gateway.node.site()
    assert changed_tasks(gateway.node, tmp_path)[0] == set()


def test_an_upgraded_gateway_serves_plain_http_until_tls_is_set(gateway: Gateway, tmp_path: Path) -> None:
    """Only the inventory turns TLS on; the run names the pending variable. The new configuration fails no request."""
    node = gateway.node
    node.site(gateway_tls="none")
    try:
        assert node.run("ls /usr/local/sbin/inference-gateway-certificate", check=False) == ""
        # Restore the state that version 0.1.0 wrote: without tls_form and tls_names.
        path = "/var/lib/inference/gateway.json"
        state = json.loads(node.run(f"cat {path}"))
        old = {key: value for key, value in state["settings"].items() if key not in ("tls_form", "tls_names")}
        node.run(f"cat > {path} <<'END'\n{json.dumps({**state, 'settings': old})}\nEND")
        node.run("sed --in-place '/lua-load deaths.lua/d' /etc/haproxy/haproxy.cfg")
        said: list[str] = []
        report = plain(gateway).during(lambda: said.append(node.site()))
        assert not report.failures and report.succeeded, report
        assert "lua-load deaths.lua" in node.run("cat /etc/haproxy/haproxy.cfg")
        report = plain(gateway).during(lambda: None)
        assert not report.failures and report.succeeded, report
        assert "gateway_tls is pending" in " ".join(said[0].split())
        changed, again = changed_tasks(node, tmp_path)
        assert changed == set() and "gateway_tls is pending" in " ".join(again.split())
        assert "gateway_tls is pending" not in " ".join(node.site(gateway_tls="none").split())
    finally:
        node.site(gateway_tls="ca")
    # The state has TLS now, so TLS stays without the variable.
    assert changed_tasks(node, tmp_path)[0] == set()
    assert gateway.ask().status == 200


def test_a_certificate_of_the_site_is_served_and_renewed(gateway: Gateway) -> None:
    """The timer's command loads a renewed file. The run reports mistakes before anything changes."""
    make = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=gateway.example.com"
        " -addext subjectAltName=DNS:gateway.example.com 2>/dev/null"
    )
    own: dict[str, Any] = {
        "gateway_tls_certificate": "/etc/ssl/gateway/chain.pem",
        "gateway_tls_key": "/etc/ssl/gateway/key.pem",
    }
    names: dict[str, Any] = {"gateway_tls_names": ["gateway.example.com"]}
    gateway.node.run(f"mkdir -p /etc/ssl/gateway; cd /etc/ssl/gateway; {make} -keyout key.pem -out chain.pem")
    before = fingerprint(gateway)
    said = gateway.node.site(check=False, **own, gateway_tls_names=["other.example.com"])
    assert "lacks other.example.com of gateway_tls_names" in said and fingerprint(gateway) == before
    gateway.node.run(f"cd /etc/ssl/gateway; {make} -keyout other.pem -out /dev/null")
    said = gateway.node.site(check=False, **{**own, "gateway_tls_key": "/etc/ssl/gateway/other.pem"})
    assert "the key does not belong to the certificate" in said and fingerprint(gateway) == before
    try:
        gateway.node.site(**own, **names)
        first, process = fingerprint(gateway), gateway.pid
        assert first != before
        gateway.node.run(f"cd /etc/ssl/gateway; {make} -keyout key.pem -out chain.pem")
        load = gateway.load(clients=3, keep=False, trusted="")
        report = load.during(lambda: gateway.node.run("inference-gateway-certificate update"))
        assert not report.failures and report.succeeded, report
        assert fingerprint(gateway) not in (first, before) and gateway.pid == process
    finally:
        gateway.node.site()
    assert gateway.ask().status == 200


@pytest.mark.full
def test_a_second_gateway_has_the_same_ca(deb12: Node, deb13: Node) -> None:
    """The first gateway signs for the second. No private key is copied."""
    one, two = Gateway(deb12), Gateway(deb13)
    deb13.run(f"mv {TLS} /root/tls-before")
    try:
        deb13.site(gateway_lead="deb12")
        assert two.trusted == one.trusted and two.ask().status == 200
        keys = f"cat {TLS}/*.key {TLS}/*/key.pem 2>/dev/null | grep -v -e '^-'"
        assert set(deb12.run(keys).split()).isdisjoint(deb13.run(keys).split())
        assert deb13.run(f"ls {TLS}/authority", check=False) == ""
    finally:
        deb13.run(f"rm -rf {TLS}; mv /root/tls-before {TLS}")
        deb13.site()


@pytest.fixture
def acme(node: Node) -> Iterator[dict[str, Any]]:
    """An ACME authority on the gateway itself, and the variables for it."""
    node.run("DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends pebble >/dev/null")
    make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    node.run(
        f"mkdir -p /root/acme; cd /root/acme; {make} -keyout server.key -out server.pem 2>/dev/null;"
        " cp server.pem /usr/local/share/ca-certificates/acme-of-the-test.crt; update-ca-certificates >/dev/null;"
        " grep -q gw.acme.test /etc/hosts || echo 127.0.0.1 gw.acme.test >> /etc/hosts;"
        f" cat > config.json <<'END'\n{json.dumps(PEBBLE)}\nEND"
    )
    node.run("systemd-run --unit acme-of-the-test --setenv PEBBLE_VA_NOSLEEP=1 pebble -config /root/acme/config.json")
    wait_for("the authority answers", lambda: node.run("curl -s https://localhost:14000/dir", check=False), 30)
    yield {
        "gateway_tls": "acme",
        "gateway_tls_names": ["gw.acme.test"],
        "gateway_acme_email": "operator@acme.test",
        "gateway_acme_server": "https://localhost:14000/dir",
    }
    node.run(
        "systemctl stop acme-of-the-test; rm /usr/local/share/ca-certificates/acme-of-the-test.crt;"
        " update-ca-certificates >/dev/null"
    )
    node.site()


@pytest.mark.full
@on_deb12
def test_acme_obtains_and_renews_the_certificate(gateway: Gateway, acme: dict[str, Any], tmp_path: Path) -> None:
    """Debian's certbot obtains a certificate from Pebble. A renewal reaches the running HAProxy by itself."""
    gateway.node.run("systemd-run --unit port-80-of-the-test python3 -m http.server 80")
    wait_for("port 80 is taken", lambda: gateway.node.run("ss -Hltn 'sport = :80'"), 30)
    before = fingerprint(gateway)
    said = gateway.node.site(check=False, **acme)
    assert "another program listens on port 80" in said and fingerprint(gateway) == before
    gateway.node.run("systemctl stop port-80-of-the-test")

    report = gateway.load(clients=3, keep=False, trusted="").during(lambda: gateway.node.site(**acme))
    assert not report.failures and report.succeeded, report
    first, process = fingerprint(gateway), gateway.pid
    assert first != before and "gw.acme.test" in gateway.node.run("inference-gateway-certificate status", check=False)
    assert gateway.node.run("systemctl is-active certbot.timer") == "active"
    assert changed_tasks(gateway.node, tmp_path, **acme)[0] == set()
    renew = "certbot renew --force-renewal --no-random-sleep-on-renew"
    report = gateway.load(clients=3, keep=False, trusted="").during(lambda: gateway.node.run(renew))
    assert not report.failures and report.succeeded, report
    assert fingerprint(gateway) != first and gateway.pid == process
