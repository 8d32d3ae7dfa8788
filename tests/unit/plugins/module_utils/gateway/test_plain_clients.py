# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a client without TLS gets from a gateway with TLS, from a real HAProxy."""

from __future__ import annotations

import http.client
import shutil
import ssl
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.gateway.backends import Replica
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.files import plan
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.names import CERTIFICATE

from ...ports import free_port
from .running import Engine, Haproxy, wait

pytestmark = pytest.mark.skipif(shutil.which("haproxy") is None, reason="no HAProxy here")

KEY = "a-key-of-20-letters-"


@pytest.fixture
def gateway(settings: dict[str, Any]) -> Iterator[Haproxy]:
    """A gateway with TLS, and an engine behind the gateway."""
    engine = Engine("gpu1")
    ports = {"port": free_port(), "metrics_port": free_port()}
    given = {**settings, **ports, "tls": True, "agent_port": 0, "slow_start_seconds": 0}
    found = plan(given, [Replica("gpu1", "127.0.0.1", "chat", "large", engine.port)], [{"name": "alice", "key": KEY}])
    with tempfile.TemporaryDirectory(prefix="gateway-") as name:
        make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=gateway"
        served = Path(name, CERTIFICATE)
        subprocess.run([*make.split(), "-keyout", served, "-out", f"{name}/root"], check=True, capture_output=True)
        served.write_text(Path(name, "root").read_text() + served.read_text())
        haproxy = Haproxy(found, Path(name), ports["port"], ports["metrics_port"], KEY)
        try:
            yield haproxy
        finally:
            haproxy.stop()
            engine.stop()


def test_the_gateway_closes_the_connection_and_logs_the_client(gateway: Haproxy) -> None:
    """No request of this client reaches the rules of the gateway: no key, no path and no prompt is in the log."""
    headers = {"Authorization": f"Bearer {KEY}"}
    plain = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=20)
    plain.request("GET", "/v1/models", headers=headers)
    client = f"127.0.0.1:{plain.sock.getsockname()[1]} "
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        plain.getresponse()
    wait("a line about the client", lambda: client in gateway.log.read_text())
    said = gateway.log.read_text()
    (line,) = (line for line in said.splitlines() if line.startswith(client))
    assert "SSL handshake failure" in line
    assert KEY not in said and "/v1/models" not in said

    trusted = ssl.create_default_context(cafile=str(gateway.directory / "root"))
    trusted.check_hostname = False
    secure = http.client.HTTPSConnection("127.0.0.1", gateway.port, context=trusted, timeout=20)
    secure.request("GET", "/v1/models", headers=headers)
    assert secure.getresponse().status == 200
