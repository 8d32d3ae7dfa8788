# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading from image registries: names, logins, certificates, proxies, and what a refusal means."""

from __future__ import annotations

import json
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine import image_registry
from ansible_collections.baremetal.inference.plugins.module_utils.engine.image_registry import (
    Access,
    Image,
    Registry,
    RegistryError,
    parse,
)

from .image_server import ImageServer

DIGEST = f"sha256:{'0' * 64}"
LOGIN = image_registry.login("ann", "s3cret")


@pytest.fixture
def server() -> Iterator[ImageServer]:
    found = ImageServer()
    yield found
    found.close()


def registry(server: ImageServer, tmp_path: Path, **access: object) -> Registry:
    given = {"client_config": tmp_path / "config.json", "authorities_path": tmp_path / "certs.d", **access}
    return Registry(parse(f"{server.name}/vllm@{DIGEST}"), Access(**given))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("registry.example.com:5000/a/vllm:v1@sha256:0", ("registry.example.com:5000", "a/vllm", "sha256:0")),
        ("localhost/vllm", ("localhost", "vllm", "")),
        ("vllm/vllm-openai:v0.33.0@sha256:0", ("docker.io", "vllm/vllm-openai", "sha256:0")),
        ("index.docker.io/vllm/vllm-openai", ("docker.io", "vllm/vllm-openai", "")),
        ("debian@sha256:0", ("docker.io", "library/debian", "sha256:0")),
    ],
)
def test_the_name_of_an_image_is_parsed(name: str, parts: tuple[str, str, str]) -> None:
    assert parse(name) == Image(*parts)
    assert parse(name).name == f"{parts[0]}/{parts[1]}"


def test_a_manifest_or_blob_that_does_not_exist_is_none(server: ImageServer, tmp_path: Path) -> None:
    server.put("/v2/vllm/manifests/tag", b'{"layers": []}')
    server.put("/v2/vllm/blobs/sha256:1", b"content")
    asked = registry(server, tmp_path)
    assert asked.manifest("tag") == {"layers": []} and asked.manifest("none") is None
    assert asked.blob("sha256:1") == b"content" and asked.blob("sha256:2") is None


def test_referrers_are_found_by_the_api_or_by_a_tag(server: ImageServer, tmp_path: Path) -> None:
    assert registry(server, tmp_path).referrers() == []
    server.put(f"/v2/vllm/manifests/{DIGEST.replace(':', '-')}", b'{"manifests": [{"digest": "a"}, "odd"]}')
    assert registry(server, tmp_path).referrers() == [{"digest": "a"}]
    server.put(f"/v2/vllm/referrers/{DIGEST}", b"page not found", 405)
    assert registry(server, tmp_path).referrers() == [{"digest": "a"}]
    server.put(f"/v2/vllm/referrers/{DIGEST}", b'{"manifests": [{"digest": "b"}]}')
    assert registry(server, tmp_path).referrers() == [{"digest": "b"}]


def test_a_login_by_password_is_sent(server: ImageServer, tmp_path: Path) -> None:
    server.put("/v2/vllm/blobs/sha256:1", b"content")
    server.authorization, server.challenge = f"Basic {LOGIN}", 'Basic realm="images"'
    assert registry(server, tmp_path, logins={server.name: LOGIN}).blob("sha256:1") == b"content"
    with pytest.raises(RegistryError, match=r"refuses vllm .HTTP 401.: set docker_registry_credentials"):
        registry(server, tmp_path).blob("sha256:1")
    with pytest.raises(RegistryError, match="HTTP 401"):
        registry(server, tmp_path, logins={server.name: "other"}).blob("sha256:1")
    # The login in Docker's own configuration counts, too.
    (tmp_path / "config.json").write_text(json.dumps({"auths": {f"https://{server.name}": {"auth": LOGIN}}}))
    assert registry(server, tmp_path).blob("sha256:1") == b"content"


def test_a_login_gets_a_token_that_serves_for_all_requests(server: ImageServer, tmp_path: Path) -> None:
    server.put("/v2/vllm/blobs/sha256:1", b"content")
    server.authorization = "Bearer t0ken"
    server.challenge = f'Bearer realm="http://{server.name}/token",service="images",error="invalid_token"'
    scope = "/token?service=images&scope=repository%3Avllm%3Apull"
    server.put(scope, b'{"access_token": "t0ken"}')
    asked = registry(server, tmp_path, logins={server.name: LOGIN})
    assert asked.blob("sha256:1") == b"content" and (scope, f"Basic {LOGIN}") in server.asked
    # The next request needs no new token.
    number = len(server.asked)
    assert asked.blob("sha256:2") is None and len(server.asked) == number + 1
    server.put(scope, b"{}", 403)
    with pytest.raises(RegistryError, match="HTTP 403"):
        registry(server, tmp_path).blob("sha256:1")


def test_the_address_of_a_token_server_may_have_parameters(server: ImageServer, tmp_path: Path) -> None:
    server.put("/v2/vllm/blobs/sha256:1", b"content")
    server.put("/token?account=a&scope=repository%3Avllm%3Apull", b'{"token": "t0ken"}')
    server.authorization = "Bearer t0ken"
    server.challenge = f'Bearer realm="http://{server.name}/token?account=a"'
    assert registry(server, tmp_path).blob("sha256:1") == b"content"


def test_a_password_is_not_sent_to_an_address_without_tls(
    server: ImageServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.authorization, server.challenge = "Bearer t", f'Bearer realm="http://{server.name}/token"'
    asked = registry(server, tmp_path, logins={server.name: LOGIN})
    monkeypatch.setattr(asked, "_insecure", False)
    with pytest.raises(RegistryError, match="HTTP 401"):
        asked.blob("sha256:1")
    assert not any(path.startswith("/token") for path, _given in server.asked)


@pytest.mark.parametrize("challenge", ["Bearer", 'Bearer realm=""', 'Bearer realm="file:///etc/hostname"'])
def test_a_challenge_without_a_usable_address_is_a_refusal(server: ImageServer, tmp_path: Path, challenge: str) -> None:
    server.authorization, server.challenge = "Bearer t", challenge
    with pytest.raises(RegistryError, match="HTTP 401"):
        registry(server, tmp_path).blob("sha256:1")


def test_the_storage_behind_an_image_registry_does_not_get_the_login(server: ImageServer, tmp_path: Path) -> None:
    storage = ImageServer()
    storage.put("/blob", b"content")
    server.put("/v2/vllm/blobs/sha256:1", b"", 307, Location=f"http://{storage.name}/blob")
    server.authorization, server.challenge = f"Basic {LOGIN}", "Basic"
    try:
        assert registry(server, tmp_path, logins={server.name: LOGIN}).blob("sha256:1") == b"content"
    finally:
        storage.close()
    assert storage.asked == [("/blob", "")]


@pytest.mark.parametrize(
    ("status", "content", "words"),
    [
        (403, b"{}", "refuses vllm .HTTP 403.: set docker_registry_credentials"),
        (500, b"{}", "HTTP 500.: check the image's name, and the image registry's log"),
        (200, b"<html>", "must answer with a JSON object"),
        (200, b"[]", "must answer with a JSON object"),
    ],
)
def test_a_refusal_of_the_image_registry_is_an_error(
    server: ImageServer, tmp_path: Path, status: int, content: bytes, words: str
) -> None:
    server.put("/v2/vllm/manifests/tag", content, status)
    with pytest.raises(RegistryError, match=words):
        registry(server, tmp_path).manifest("tag")


def test_an_answer_above_the_limit_is_an_error(
    server: ImageServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_registry, "LARGEST_ANSWER", 1 << 20)
    server.put("/v2/vllm/blobs/sha256:1", b" " * (2 << 20))
    with pytest.raises(RegistryError, match="gives no answer that can be used: the answer has more than 1 MiB"):
        registry(server, tmp_path).blob("sha256:1")


def test_an_image_registry_that_does_not_answer_is_an_error(server: ImageServer, tmp_path: Path) -> None:
    asked = registry(server, tmp_path)
    server.close()
    with pytest.raises(RegistryError, match=r"does not answer: .*refused.*whether the node reaches the image registry"):
        asked.manifest("tag")


def test_a_token_server_that_does_not_answer_is_named(server: ImageServer, tmp_path: Path) -> None:
    tokens = ImageServer()
    tokens.close()
    server.authorization, server.challenge = "Bearer t", f'Bearer realm="http://{tokens.name}/token"'
    with pytest.raises(RegistryError, match=f"^{tokens.name} does not answer: "):
        registry(server, tmp_path).blob("sha256:1")


def test_a_wrong_name_of_an_image_registry_is_an_error(tmp_path: Path) -> None:
    image = image_registry.parse("[fd00::1/vllm@sha256:0")
    with pytest.raises(RegistryError, match=r"^\[fd00::1 is no name of an image registry .*: correct the image's name"):
        image_registry.Registry(image, image_registry.Access(tmp_path))


@pytest.fixture
def secure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ImageServer, str]]:
    """A server with a certificate that it has signed itself, and the certificate."""
    both, only = tmp_path / "both.pem", tmp_path / "only.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    command += [
        "-subj",
        "/CN=images",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
        "-keyout",
        str(both),
        "-out",
        str(only),
    ]
    subprocess.run(command, check=True, capture_output=True)
    both.write_text(both.read_text() + only.read_text())
    found = ImageServer(both)
    found.put("/v2/vllm/blobs/sha256:1", b"content")
    monkeypatch.setattr(image_registry, "_loopback", lambda _host: False)
    yield found, only.read_text()
    found.close()


def test_a_certificate_needs_a_trusted_authority_or_an_insecure_image_registry(
    secure: tuple[ImageServer, str], tmp_path: Path
) -> None:
    server, certificate = secure
    with pytest.raises(RegistryError, match="does not trust the image registry's certificate: set docker_registry_cas"):
        registry(server, tmp_path).blob("sha256:1")
    assert registry(server, tmp_path, authorities={server.name: certificate}).blob("sha256:1") == b"content"
    assert registry(server, tmp_path, insecure=["127.0.0.0/8"]).blob("sha256:1") == b"content"
    with pytest.raises(RegistryError, match="does not trust"):
        registry(server, tmp_path, authorities={"other": certificate}, insecure=["10.0.0.0/8"]).blob("sha256:1")
    # The file that the role docker writes.
    kept = tmp_path / "certs.d" / server.name / "ca.crt"
    kept.parent.mkdir(parents=True)
    kept.write_text(certificate)
    assert registry(server, tmp_path).blob("sha256:1") == b"content"
    kept.write_text("no certificate")
    with pytest.raises(RegistryError, match=r"cannot be read: .*Correct docker_registry_cas"):
        registry(server, tmp_path)


def test_plain_http_must_be_declared(server: ImageServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_registry, "_loopback", lambda _host: False)
    with pytest.raises(RegistryError, match="plain HTTP, add it to docker_insecure_registries"):
        registry(server, tmp_path).blob("sha256:1")
    assert registry(server, tmp_path, insecure=[server.name]).blob("sha256:1") is None


@pytest.mark.parametrize(
    ("direct", "passes"),
    [
        ([], True),
        (["other.example.com", "10.0.0.0/8"], True),
        (["registry.example.com"], False),
        (["x", ".example.com"], False),
        (["example.com"], False),
        (["*"], False),
    ],
)
def test_a_proxy_is_used_except_for_the_names_in_no_proxy(
    server: ImageServer, tmp_path: Path, direct: list[str], passes: bool
) -> None:
    """The proxy answers for a name that the resolver does not know."""
    proxies = {"http": f"http://{server.name}", "https": ""}
    access = Access(tmp_path / "none", insecure=["registry.example.com"], proxies=proxies, no_proxy=direct)
    asked = Registry(parse(f"registry.example.com/vllm@{DIGEST}"), access)
    asked._schemes = ["http"]
    assert any(getattr(one, "proxies", None) for one in vars(asked._opener)["handlers"]) == passes
    if passes:
        server.put("http://registry.example.com/v2/vllm/blobs/sha256:1", b"content")
        assert asked.blob("sha256:1") == b"content"


def test_the_login_of_docker_hub_is_found_by_its_old_name(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"auths": {image_registry.HUB_LOGIN: {"auth": LOGIN}}}))
    assert Registry(parse("vllm/vllm-openai"), Access(config))._login() == LOGIN
    config.write_text("damaged")
    assert Registry(parse("vllm/vllm-openai"), Access(config))._login() == ""
    given = Access(config, logins={"docker.io": "other"})
    assert Registry(parse("vllm/vllm-openai"), given)._login() == "other"


def test_certificates_are_verified_by_default(tmp_path: Path) -> None:
    context = Registry(parse("registry.example.com/vllm"), Access(tmp_path / "none"))._context()
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
