# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a server lets a node delete backups. Real servers answer in molecule/backup."""

from __future__ import annotations

import base64
import http.client
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.backup import append_only
from ansible_collections.baremetal.inference.plugins.module_utils.backup.append_only import Answer
from ansible_collections.baremetal.inference.plugins.module_utils.backup.restic import Access

REST = Access("rest:https://store:8000/gpu1/", "", {"RESTIC_REST_USERNAME": "gpu1", "RESTIC_REST_PASSWORD": "s3cret"})
S3 = Access("s3:https://store/fleet/gpu1", "", {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "s3cret"})
DENIED = Answer(403, "<Error><Code>AccessDenied</Code></Error>")
ENABLED = Answer(200, "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>")


class Server:
    """A server that answers by the first rule whose words are all in the request, and 403 if no rule matches."""

    def __init__(self, *rules: tuple[str, Answer]) -> None:
        self.rules = rules
        self.requests: list[str] = []
        self.headers: list[Mapping[str, str]] = []

    def __call__(self, method: str, url: str, headers: Mapping[str, str], ca_file: str) -> Answer:
        self.requests.append(f"{method} {url}")
        self.headers.append(headers)
        request = self.requests[-1]
        return next((answer for words, answer in self.rules if all(word in request for word in words.split())), DENIED)


def refused(access: Access, server: Server) -> str:
    with pytest.raises(append_only.NotProven) as failed:
        append_only.prove(access, server)
    said = str(failed.value)
    assert said.startswith("backup_append_only is true, but the repository at ") and "s3cret" not in said
    return said


def test_a_rest_server_that_refuses_deletions_is_proven() -> None:
    server = Server(("/locks/", Answer(404)))
    append_only.prove(REST, server)
    kinds = [request.rsplit("/", 2)[1] for request in server.requests]
    assert kinds == ["data", "index", "keys", "snapshots", "locks"]
    names = {request.rsplit("/", 1)[1] for request in server.requests}
    assert len(names) == 5 and {len(name) for name in names} == {64}, "otherwise, a name could be that of an object"
    assert all(request.startswith("DELETE https://store:8000/gpu1/") for request in server.requests)
    token = base64.b64encode(b"gpu1:s3cret").decode()
    assert server.headers[0] == {"Authorization": f"Basic {token}"}


def test_an_s3_bucket_that_refuses_deletions_is_proven() -> None:
    server = Server(("/locks/", Answer(204)), ("GET versioning", ENABLED))
    append_only.prove(S3, server)
    append_only.prove(S3, server)
    locks = {request for request in server.requests if "/locks/" in request}
    assert len(locks) == 1, "otherwise, each run would leave another delete marker"
    assert any("/fleet/gpu1/data/" in request and request.endswith("?versionId=null") for request in server.requests)
    assert {request.split("/")[2] for request in server.requests} == {"store"}
    whole = Server(("/locks/", Answer(204)), ("GET versioning", ENABLED))
    append_only.prove(Access("s3:store/fleet", "", S3.environment), whole)
    assert any(request.startswith("DELETE https://store/fleet/snapshots/") for request in whole.requests)


@pytest.mark.parametrize(
    ("access", "rules", "words"),
    [
        (
            REST,
            [("DELETE", Answer(404))],
            "lets this node delete backups (data, index, keys, snapshots): start the REST",
        ),
        (REST, [("snapshots", Answer(200)), ("/locks/", Answer(404))], "delete backups (snapshots)"),
        (REST, [], "does not let this node delete its own locks"),
        (REST, [("DELETE", Answer(401))], "refuses the node's user"),
        (REST, [("DELETE", Answer(502))], "does not say whether this node can delete backups: the server answered 502"),
        (S3, [("DELETE", Answer(204))], "delete backups (data, index, keys, snapshots): allow this node's key"),
        (S3, [("versionId=null", Answer(204))], "lets this node delete backups"),
        (S3, [("versionId=null", Answer(400))], "lets this node delete backups"),
        (S3, [("versioning", Answer(200, "<VersioningConfiguration/>"))], "keeps no versions"),
        (S3, [("versioning", Answer(200, "<Status>Suspended</Status>"))], "keeps no versions"),
        (S3, [], "Allow the key s3:GetBucketVersioning"),
        (S3, [("versioning", Answer(500))], "the server answered 500"),
        (S3, [("versioning", ENABLED)], "does not let this node delete its own locks"),
        (S3, [("DELETE", Answer(403, "<Code>SignatureDoesNotMatch</Code>"))], "refuses the node's key"),
        (S3, [("DELETE", Answer(404, "<Code>NoSuchBucket</Code>"))], "there is no such bucket"),
    ],
)
def test_a_server_that_is_not_proven_append_only_is_refused(
    access: Access, rules: list[tuple[str, Answer]], words: str
) -> None:
    assert words in refused(access, Server(*rules))


def test_a_bucket_in_another_region_is_asked_with_that_region() -> None:
    elsewhere = Answer(400, "<Code>AuthorizationHeaderMalformed</Code><Region>eu-central-1</Region>")

    class Regional(Server):
        def __call__(self, method: str, url: str, headers: Mapping[str, str], ca_file: str) -> Answer:
            answer = super().__call__(method, url, headers, ca_file)
            return answer if "/eu-central-1/" in headers["Authorization"] else elsewhere

    server = Regional(("/locks/", Answer(204)), ("GET versioning", ENABLED))
    append_only.prove(S3, server)
    assert sum("/us-east-1/" in headers["Authorization"] for headers in server.headers) == 1


@pytest.mark.parametrize(
    "error", [ConnectionRefusedError(111, "Connection refused"), http.client.BadStatusLine("SSH-2.0-OpenSSH_9.2")]
)
def test_a_server_that_does_not_answer_in_http_is_an_error(error: Exception) -> None:
    def silent(method: str, url: str, headers: Mapping[str, str], ca_file: str) -> Answer:
        raise error

    with pytest.raises(append_only.NotProven, match=r"cannot be reached: .*(Connection refused|SSH-2\.0)"):
        append_only.prove(REST, silent)


def test_a_request_without_tls_to_a_server_with_tls_proves_nothing() -> None:
    """400 is no permission to delete."""
    said = refused(REST, Server(("DELETE", Answer(400, "Client sent an HTTP request to an HTTPS server.\n"))))
    assert "does not say whether this node can delete backups: the server answered 400: Client sent an HTTP" in said
    assert "backup_repository must begin with rest:https://" in said


def test_a_user_in_the_address_is_no_part_of_the_host() -> None:
    server = Server(("/locks/", Answer(404)))
    append_only.prove(Access("rest:https://gpu1@store:8000/gpu1", "", REST.environment), server)
    assert all(request.startswith("DELETE https://store:8000/gpu1/") for request in server.requests)


@pytest.fixture
def serve() -> Iterator[Callable[[int], str]]:
    servers: list[ThreadingHTTPServer] = []

    def start(status: int) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_DELETE(self) -> None:
                self.send_response(404 if "/locks/" in self.path else status)
                self.end_headers()
                self.wfile.write(b"words")

            def log_message(self, *_arguments: object) -> None:
                """Print nothing."""

        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
        threading.Thread(target=servers[-1].serve_forever, args=(0.02,), daemon=True).start()
        return f"rest:http://127.0.0.1:{servers[-1].server_port}/gpu1"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_real_server_is_asked_over_the_network(serve: Callable[[int], str]) -> None:
    append_only.prove(Access(serve(403), "", {}))
    for status in (200, 404):
        with pytest.raises(append_only.NotProven, match="lets this node delete"):
            append_only.prove(Access(serve(status), "", {}))
    assert append_only.send("DELETE", serve(418).removeprefix("rest:"), {}, "") == Answer(418, "words")
