# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Accepted requests and their engines, and the errors of refused requests."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator

import pytest
from gateway import CHAT, KEY, Answer, Gateway, body

MIB8 = 8 << 20


def of_size(size: int) -> bytes:
    """A body of this number of bytes, with the model at its end."""
    head, tail = b'{"max_tokens": 1, "padding": "', b'", "model": "main"}'
    return head + b"x" * (size - len(head) - len(tail)) + tail


def chunks(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


@pytest.mark.parametrize(
    ("model", "answers"),
    [("main", {"main"}), ("tiny-a", {"main"}), ("lone", {"lone"}), ("other", {"other"}), ("tiny-b", {"lone", "other"})],
)
def test_a_model_name_leads_to_its_engines(gateway: Gateway, model: str, answers: set[str]) -> None:
    """A name is that of a replica set, that of its model, or that of a model that two sets serve."""
    texts = [gateway.ask(data=body(model)).json["choices"][0]["message"]["content"] for _ in range(6)]
    assert {text.split()[2] for text in texts} == answers
    if model in ("main", "tiny-a"):
        assert {text.split()[-1] for text in texts} == {"127.0.0.1.", "127.0.0.2."}


def test_the_models_that_are_served_are_listed(gateway: Gateway) -> None:
    answer = gateway.ask("GET", "/v1/models")
    assert [entry["id"] for entry in answer.json["data"]] == ["lone", "main", "other", "tiny-a", "tiny-b"]
    assert gateway.ask("GET", "/v1/models", key="").status == 401


def test_the_error_for_an_unknown_model_names_the_known_ones(gateway: Gateway) -> None:
    error = gateway.ask(data=body('no"such\n%[env(PATH)]\\model')).error
    assert error["code"] == "model_not_found"
    assert 'no"such\n%[env(PATH)]\\model does not exist. Known: lone, main, other, tiny-a, tiny-b' in error["message"]


@pytest.mark.parametrize("data", [b"", b"hello", b"[1]", b'{"prompt": "x"}', b'{"nested": {"model": "main"}}'])
def test_a_body_without_a_model_is_refused(gateway: Gateway, data: bytes) -> None:
    answer = gateway.ask(data=data)
    assert (answer.status, answer.error["code"]) == (400, "model_missing")


def test_an_escaped_slash_is_a_slash(gateway: Gateway) -> None:
    """PHP escapes a slash in JSON: the gateway looks for the name with a plain slash."""
    answer = gateway.ask(data=b'{"max_tokens": 1, "model": "no\\/such"}')
    assert answer.status == 404 and "no/such" in answer.json["error"]["message"]


@pytest.mark.parametrize("chunk", [None, 65536, 1000])
def test_8_mib_pass_and_one_byte_more_does_not(gateway: Gateway, chunk: int | None) -> None:
    for size, status in ((MIB8, 200), (MIB8 + 1, 413), (5 * MIB8, 413)):
        data = of_size(size)
        answer = gateway.ask(data=chunks(data, chunk) if chunk else data)
        assert answer.status == status, answer
        if status == 413:
            assert answer.error["code"] == "request_too_large"
        else:
            assert max(gateway.engine(address)["last"]["body_bytes"] for address in ("127.0.0.1", "127.0.0.2")) == MIB8


SPEECH = "/v1/audio/transcriptions"

MIB12 = 12 << 20


def form(model: str | None = "other", size: int = 100, first: bool = False) -> bytes:
    """A form with a file and, unless `model` is None, the field `model`, which comes before the file if `first`.

    The content of the file, of `size` bytes, looks like parts of a form.
    """
    field = f'Content-Disposition: form-data; name="model"\r\n\r\n{model}'.encode()
    file = b'Content-Disposition: form-data; name="file"; filename="model"\r\nContent-Type: audio/wav\r\n\r\n'
    file += b'name="model"\r\n\r\nmain\r\n--x\0\xff'.ljust(size, b"\r")
    parts = [file] if model is None else [field, file] if first else [file, field]
    return b"".join(b"--b-1+(\r\n" + part + b"\r\n" for part in parts) + b"--b-1+(--\r\n"


def speak(gateway: Gateway, data: bytes | Iterator[bytes], path: str = SPEECH) -> Answer:
    return gateway.ask(path=path, data=data, kind='multipart/form-data; Boundary="b-1+("')


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("chunk", [None, 65536])
def test_audio_passes_up_to_its_own_limit(gateway: Gateway, first: bool, chunk: int | None) -> None:
    around = len(form(size=1000, first=first)) - 1000
    for size, status in ((MIB12, 200), (MIB12 + 1, 413)):
        data = form(size=size - around, first=first)
        assert len(data) == size
        answer = speak(gateway, chunks(data, chunk) if chunk else data)
        assert answer.status == status, answer
        if status == 200:
            assert gateway.engine("127.0.0.2", 5006)["last"]["body_bytes"] == size
        else:
            assert (
                answer.error["code"] == "request_too_large" and "audio is larger than 12 MiB" in answer.error["message"]
            )


def test_a_form_without_a_model_is_refused(gateway: Gateway) -> None:
    for data in (form(None), b"", b"--b-1+(\r\nno blank line", json.dumps({"model": "other"}).encode()):
        answer = speak(gateway, data)
        assert (answer.status, answer.error["code"]) == (400, "model_missing"), data
        assert "field model" in answer.error["message"]
    assert speak(gateway, form("none")).error["code"] == "model_not_found"


TWICE = (
    '{"model": "lone", "model": "tiny-b"}',
    '{"model": "lone", "\\u006dodel": "tiny-b"}',
    '{"\\u006dodel": "tiny-b", "model": "lone"}',
    '{"model": "lone", "messages": [{"content": "a } b \\" c"}], "model" : "tiny-b"}',
    # This body names one model. But a key with a backslash counts as a second key `model`: it could be this word.
    '{"model": "lone", "m\\/": 1, "user": "\\u00e9"}',
)

ONCE = (
    '{"model": "lone", "max_tokens": 1, "tools": [{"function": {"parameters": {"model": {"model": "x"}}}}]}',
    '{"tools": [{"model": "none"}], "max_tokens": 1, "model": "lone"}',
    '{"metadata": {"model": "none"}, "max_tokens": 1, "model": "lone"}',
    '{"model": "lone", "max_tokens": 1, "user": "\\u00e9 \\"model\\": \\"x\\", \\\\", "stop": "model"}',
    '{"model": "lone", "max_tokens": 1, "messages": [{"role": "user", "content": "\\"model\\": \\"none\\""}]}',
)


@pytest.mark.parametrize("data", TWICE)
def test_a_body_with_two_models_is_refused_where_an_engine_serves_several_models(gateway: Gateway, data: str) -> None:
    answer = gateway.ask(data=data.encode())
    assert (answer.status, answer.error["code"]) == (400, "model_twice")
    # Where an engine serves one model, all its names lead to this model, so the gateway does not refuse.
    if "tiny-b" in data:
        other = data.replace("lone", "main").replace("tiny-b", "tiny-a").replace("{", '{"max_tokens": 1, ', 1)
        assert gateway.ask(data=other.encode()).status == 200


@pytest.mark.parametrize("data", ONCE)
def test_the_word_model_in_a_text_or_a_tool_is_no_second_model(gateway: Gateway, data: str) -> None:
    assert gateway.ask(data=data.encode()).status == 200
    padding = json.dumps("\n\u00e9" * 200000)
    assert gateway.ask(data=(data[:-1] + f', "padding": {padding}}}').encode()).status == 200


def test_a_form_with_two_models_is_refused_where_an_engine_serves_several_models(gateway: Gateway) -> None:
    for field in ('name="model"', "NAME=model", "name*=utf-8''model", 'name="mo\\del"'):
        more = f"--b-1+(\r\nContent-Disposition: form-data; {field}\r\n\r\ntiny-b\r\n".encode()
        answer = speak(gateway, more + form("lone"), path=CHAT)
        assert (answer.status, answer.error["code"]) == (400, "model_twice"), field
    # gateway.lua reads 64 parts: the form has two.
    other = b'--b-1+(\r\nContent-Disposition: form-data; name="prompt"\r\n\r\nx\r\n'
    assert speak(gateway, 62 * other + form("lone"), path=CHAT).status == 200
    assert speak(gateway, 63 * other + form("lone"), path=CHAT).error["code"] == "model_missing"


@pytest.mark.parametrize("model", ["main", "tiny-a"])
def test_a_path_that_no_task_of_the_model_serves_is_refused(gateway: Gateway, model: str) -> None:
    before = gateway.engine()["served"]
    for path in ("/v1/embeddings", "/v1/rerank", "/v1/score", "/classify", "/pooling"):
        answer = gateway.ask(path=path, data=body(model))
        assert (answer.status, answer.error["code"]) == (400, "wrong_task"), path
        for words in (f"The model {model} does", "Its task is generate. Paths: /v1/chat/completions, /v1/completions"):
            assert words in answer.error["message"]
    assert speak(gateway, form(model)).error["code"] == "wrong_task"
    assert gateway.engine()["served"] == before
    # A key without the right to the model gets an error without the tasks of the model.
    assert gateway.ask(path="/v1/embeddings", data=body("other"), key="narrow-key-90ab4417").status == 403


def test_the_engine_decides_where_the_tasks_of_a_model_are_unknown(gateway: Gateway) -> None:
    assert gateway.ask(path="/v1/embeddings", data=body("lone")).status == 200


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/invocations", "/metrics", "/health", "/sleep", "/v1/load_lora_adapter", "/tokenize", "/v1/models/"),
        *("//v1/models", "/v1%2fmodels", "/v1/x/../models", "/v1/chat/completions/", "/v1/chat/completions%20"),
    ],
)
def test_only_the_apis_paths_pass(gateway: Gateway, path: str) -> None:
    before = gateway.engine()["served"]
    assert {gateway.ask(method, path).status for method in ("GET", "POST")} == {404}
    assert gateway.ask("GET", path).error["code"] == "unknown_url"
    assert gateway.engine()["served"] == before


def test_the_error_for_a_wrong_method_names_the_right_one(gateway: Gateway) -> None:
    for method, path, allowed in (("GET", CHAT, "POST"), ("DELETE", CHAT, "POST"), ("POST", "/v1/models", "GET")):
        answer = gateway.ask(method, path)
        assert (answer.status, answer.headers["allow"]) == (405, allowed)


def test_a_query_string_of_the_url_does_not_matter(gateway: Gateway) -> None:
    assert gateway.ask(path=f"{CHAT}?api-version=1").status == 200


def test_the_engine_gets_its_own_key_and_not_the_clients(gateway: Gateway) -> None:
    for address in ("127.0.0.1", "127.0.0.2", "127.0.0.1"):
        gateway.ask()
        headers = gateway.engine(address)["last"]["headers"]
        assert headers["authorization"] == "Bearer engine-key-b71f09"
    gateway.ask(data=body("lone"))
    assert "authorization" not in gateway.engine(port=5006)["last"]["headers"]


def test_the_gateway_passes_on_each_event_of_a_stream_at_once(gateway: Gateway) -> None:
    gateway.engine(port=5006, token_seconds=0.3)
    connection = gateway.connection(timeout=30)
    began = time.monotonic()
    connection.request("POST", CHAT, body("lone", 6, stream=True), {"Authorization": f"Bearer {KEY}"})
    answer = connection.getresponse()
    times = []
    while line := answer.readline():
        if line.startswith(b"data: "):
            times.append(time.monotonic() - began)
    assert len(times) == 7
    assert times[0] < 1.2 and times[5] - times[0] > 1.2, times


def test_an_engine_aborts_a_request_whose_client_disconnects(gateway: Gateway) -> None:
    for stream in (True, False):
        gateway.engine(port=5006, token_seconds=0.2)
        aborted = gateway.engine(port=5006)["aborted"]
        connection = gateway.connection(timeout=30)
        connection.request("POST", CHAT, body("lone", 200, stream=stream), {"Authorization": f"Bearer {KEY}"})
        deadline = time.monotonic() + 20
        while gateway.engine(port=5006)["running"] == 0 and time.monotonic() < deadline:
            time.sleep(0.2)
        connection.close()
        while gateway.engine(port=5006)["running"] and time.monotonic() < deadline:
            time.sleep(0.2)
        assert gateway.engine(port=5006)["aborted"] == aborted + 1


def test_answers_and_engines_get_the_id_of_the_request(gateway: Gateway) -> None:
    answer = gateway.ask(request_id="ticket-4711.a")
    assert answer.headers["x-request-id"] == "ticket-4711.a"
    own = gateway.ask(request_id='bad" id').headers["x-request-id"]
    assert len(own) == 36
    assert gateway.ask(path="/nothing").headers["x-request-id"]
    seen = [gateway.engine(address)["last"]["headers"]["x-request-id"] for address in ("127.0.0.1", "127.0.0.2")]
    assert own in seen


def test_the_log_is_json_without_prompts_and_keys(gateway: Gateway) -> None:
    secret = "a-prompt-that-nobody-reads"
    answer = gateway.ask(
        path=f"{CHAT}?api_key={KEY}", data=body("tiny-a", messages=[{"role": "user", "content": secret}])
    )
    line = gateway.log(answer.headers["x-request-id"])
    assert (line["key"], line["model"], line["backend"], line["status"]) == ("everything", "tiny-a", "set_main", 200)
    assert line["engine"] in ("one", "two") and line["path"] == CHAT and line["ms_total"] >= 0
    refused = gateway.log(gateway.ask(data=body('odd"\n\u00fc' + "y" * 5000)).headers["x-request-id"])
    assert refused["status"] == 404 and len(refused["model"]) <= 200
    unread = gateway.log(gateway.ask(path="/" + "z" * 5000, key="wrong-key-00000000").headers["x-request-id"])
    assert unread["status"] == 404 and len(unread["path"]) <= 200
    whole = gateway.node.run("journalctl --unit haproxy --output cat --since -1h")
    for word in (secret, KEY, "wrong-key-00000000", "engine-key-b71f09"):
        assert word not in whole


def test_prometheus_finds_metrics_on_their_own_port(gateway: Gateway) -> None:
    connection = http.client.HTTPConnection(gateway.address, 8404, timeout=30)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    assert 'haproxy_server_status{proxy="set_main",server="one",state="UP"} 1' in text
    for path, status in (("/health", 200), ("/stats", 404)):
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == status


def test_nodes_can_read_the_state_of_each_replica_set(gateway: Gateway) -> None:
    for name, servers in (("main", {"one", "two"}), ("lone", {"one"})):
        view = gateway.view(name).json
        assert (view["set"], view["hold_seconds"], set(view["servers"])) == (name, 8, servers)
    for name in ("nobody", "set_main", "tiny-a", "", "main/", "main%22", "../metrics"):
        refused = gateway.view(name)
        assert (refused.status, refused.error["code"]) == (404, "unknown_set"), name
    connection = http.client.HTTPConnection(gateway.address, 8404, timeout=30)
    connection.request("POST", "/sets/main", b"{}")
    answer = connection.getresponse()
    assert (answer.status, answer.getheader("allow")) == (405, "GET")
    # Clients cannot read this page.
    assert gateway.ask("GET", "/sets/main").status == 404


def test_root_on_the_gateway_needs_no_key(gateway: Gateway) -> None:
    curl = "curl --silent --unix-socket /run/haproxy/api.sock http://gateway"
    listed = json.loads(gateway.node.run(f"{curl}/v1/models"))
    assert listed["object"] == "list"
    as_nobody = "setpriv --reuid nobody --clear-groups --regid nogroup"
    assert gateway.node.run(f"{as_nobody} {curl}/v1/models", check=False) == ""
