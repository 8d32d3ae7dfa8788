# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Redfish service over HTTPS, in place of a machine's BMC."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

SYSTEM = "/redfish/v1/Systems/node"


class Machine:
    """A simulated machine. After ForceOff or On, the first answer is PoweringOff or PoweringOn, the second Off or On.

    While `stuck`, no order has an effect.
    """

    def __init__(self) -> None:
        self.state = "On"
        self.next: list[str] = []
        self.orders: list[str] = []
        self.allowed = ["On", "ForceOff", "ForceRestart", "GracefulShutdown"]
        self.members = [SYSTEM]
        self.stuck = False

    def power_state(self) -> str:
        if self.next:
            self.state = self.next.pop(0)
        return self.state

    def reset(self, kind: str) -> None:
        self.orders.append(kind)
        if not self.stuck:
            self.next = {"ForceOff": ["PoweringOff", "Off"], "On": ["PoweringOn", "On"]}.get(kind, [])


class Service(BaseHTTPRequestHandler):
    """The Redfish service of a Machine."""

    machine: Machine
    password: str

    def answer(self, status: int, body: dict[str, Any] | None = None) -> None:
        text = json.dumps(body).encode() if body is not None else b""
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def allowed(self) -> bool:
        wanted = base64.b64encode(f"admin:{self.password}".encode()).decode()
        if self.headers["Authorization"] == f"Basic {wanted}":
            return True
        self.answer(401, {})
        return False

    def do_GET(self) -> None:
        if not self.allowed():
            return
        if self.path == "/redfish/v1/Systems":
            self.answer(200, {"Members": [{"@odata.id": path} for path in self.machine.members]})
        elif self.path == SYSTEM:
            action = {
                "target": f"{SYSTEM}/Actions/ComputerSystem.Reset",
                "ResetType@Redfish.AllowableValues": self.machine.allowed,
            }
            self.answer(200, {"PowerState": self.machine.power_state(), "Actions": {"#ComputerSystem.Reset": action}})
        else:
            self.answer(404, {"error": {"message": "no such resource"}})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.allowed():
            return
        if self.path != f"{SYSTEM}/Actions/ComputerSystem.Reset":
            self.answer(404, {})
            return
        self.machine.reset(body["ResetType"])
        self.answer(204)

    def log_message(self, *args: object) -> None:
        """Print nothing."""


def certificate(directory: Path) -> Path:
    """A self-signed certificate for 127.0.0.1, with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "bmc")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = directory / "bmc.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


@contextmanager
def serve(machine: Machine, password: str, directory: Path, address: str = "127.0.0.1") -> Iterator[tuple[str, Path]]:
    """Serve a machine's Redfish for the user `admin`. Yields the address with port, and the file of the certificate."""
    path = certificate(directory)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    handler = type("OneService", (Service,), {"machine": machine, "password": password})
    server = ThreadingHTTPServer((address, 0), handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield f"{address}:{server.server_port}", path
    finally:
        server.shutdown()
        server.server_close()
