# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signs images as cosign does with a key, for tests: Debian 12 does not have cosign."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

KINDS = {
    "EC": ("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"),
    "RSA": ("-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"),
    "ED25519": ("-algorithm", "ED25519"),
}
"""Kinds of keys. cosign makes EC."""

SIMPLE = "application/vnd.dev.cosign.simplesigning.v1+json"
BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


class SigningKey:
    """A key pair in files of a directory. Existing files are used again."""

    def __init__(self, directory: Path, kind: str = "EC") -> None:
        self.kind, self.directory = kind, directory
        directory.mkdir(parents=True, exist_ok=True)
        self.private, self.public = directory / "private.pem", directory / "public.pem"
        if not self.public.exists():
            _openssl("genpkey", *KINDS[kind], "-out", str(self.private))
            _openssl("pkey", "-in", str(self.private), "-pubout", "-out", str(self.public))

    @property
    def pem(self) -> str:
        """The public key."""
        return self.public.read_text()

    def sign(self, content: bytes) -> str:
        """The signature in Base64."""
        signed, made = self.directory / "signed", self.directory / "made"
        signed.write_bytes(content)
        if self.kind == "ED25519":
            _openssl("pkeyutl", "-sign", "-inkey", str(self.private), "-rawin", "-in", str(signed), "-out", str(made))
        else:
            _openssl("dgst", "-sha256", "-sign", str(self.private), "-out", str(made), str(signed))
        return base64.b64encode(made.read_bytes()).decode()


def _openssl(*words: str) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True)


def payload(digest: str, kind: str = "cosign container image signature") -> bytes:
    """The text that cosign 2 signs."""
    image = {"docker-manifest-digest": digest}
    critical = {"identity": {"docker-reference": "registry.example.com/vllm"}, "image": image, "type": kind}
    return json.dumps({"critical": critical, "optional": None}).encode()


def layer(key: SigningKey, content: bytes) -> dict[str, Any]:
    """The entry of a manifest for a signed text."""
    return {**descriptor(SIMPLE, content), "annotations": {"dev.cosignproject.cosign/signature": key.sign(content)}}


def bundle(key: SigningKey, digest: str, predicate: str = "https://sigstore.dev/cosign/sign/v1") -> bytes:
    """The file in which cosign 3 stores a signature."""
    kind = "application/vnd.in-toto+json"
    subject = [{"digest": {"sha256": digest.removeprefix("sha256:")}}]
    statement = {"_type": "https://in-toto.io/Statement/v1", "subject": subject, "predicateType": predicate}
    text = json.dumps({**statement, "predicate": {}}).encode()
    signed = f"DSSEv1 {len(kind)} {kind} {len(text)} ".encode() + text
    envelope = {
        "payload": base64.b64encode(text).decode(),
        "payloadType": kind,
        "signatures": [{"sig": key.sign(signed)}],
    }
    return json.dumps({"mediaType": BUNDLE, "dsseEnvelope": envelope}).encode()


def manifest(*layers: dict[str, Any]) -> bytes:
    """A manifest with signatures."""
    config = descriptor("application/vnd.oci.image.config.v1+json", b"{}")
    parts = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers}
    return json.dumps(parts).encode()


def descriptor(kind: str, content: bytes) -> dict[str, Any]:
    """The entry of a manifest for a blob."""
    return {"mediaType": kind, "size": len(content), "digest": f"sha256:{hashlib.sha256(content).hexdigest()}"}


def publish(key: SigningKey, address: str, repository: str, digest: str) -> None:
    """Sign an image of an image registry, in place of earlier signatures. `address` such as http://127.0.0.1:5000."""
    text = payload(digest)
    base = f"{address}/v2/{repository}"
    for blob in (text, b"{}"):
        with _send("POST", f"{base}/blobs/uploads/", b"") as answer:
            place = str(answer.headers["Location"])
        place = place if place.startswith("http") else f"{address}{place}"
        _send("PUT", f"{place}&digest={descriptor('', blob)['digest']}", blob).close()
    _send("PUT", f"{base}/manifests/{digest.replace(':', '-')}.sig", manifest(layer(key, text)), MANIFEST).close()


def _send(method: str, url: str, content: bytes, kind: str = "application/octet-stream") -> Any:
    request = urllib.request.Request(url, data=content, headers={"Content-Type": kind}, method=method)
    # Not through a proxy: a proxy cannot reach this machine's loopback address.
    return urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10)
