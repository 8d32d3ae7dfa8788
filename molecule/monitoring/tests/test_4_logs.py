# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logs of the collection's units reach a server, also after the server was away, and no prompt leaves the node."""

from __future__ import annotations

import json
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from node import Node, changes, wait_for
from watcher import Watcher

UNIT, CHECK = "inference-logs.service", "inference-logs-check.service"
POSITION = "/var/lib/inference-logs/position"
PORT, TLS_PORT = 6514, 6515
NAME = "logs.example.com"
TAKEN = "/tmp/taken.jsonl"

# Receives bytes, by TLS if it gets a certificate, and appends them to a file.
RECEIVER = f"""
import socket, ssl, sys, threading
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if sys.argv[2:] else None
if context:
    context.load_cert_chain(*sys.argv[2:])
def take(channel):
    with open("{TAKEN}", "ab", buffering=0) as taken:
        if context:
            channel = context.wrap_socket(channel, server_side=True)
        while data := channel.recv(65536):
            taken.write(data)
server = socket.create_server(("0.0.0.0", int(sys.argv[1])))
while True:
    threading.Thread(target=take, args=(server.accept()[0],), daemon=True).start()
"""

# Lines of an engine's log. The word SECRET in them must not leave the node.
SECRET = "stromboli"
API = "(APIServer pid=1) INFO 11-22 12:31:15 [request_logger.py:65] "
CORE = "(EngineCore pid=86) ERROR 11-22 12:31:15 [core.py:1750] "
ENGINE_LINES = f"""
{API}Received request a: params: Params(stop=['{SECRET}'])
(APIServer pid=1) DEBUG 11-22 12:31:15 [core.py:40] Request a details: prompt: '{SECRET}'
(APIServer pid=1) WARNING 11-22 12:31:15 [chat_utils.py:1931] Skipping multimodal part '{SECRET}'
(APIServer pid=1) INFO:     127.0.0.1:5 - "POST /v1/completions?prompt={SECRET} HTTP/1.1" 200 OK
{CORE}EngineCore encountered a fatal error.
{CORE}Traceback (most recent call last):
{CORE}  File "/venv/vllm/v1/engine/core.py", line 1741, in run_engine_core
{CORE}    raise ValueError("{SECRET}")
{CORE}vllm.exceptions.VLLMValidationError: {SECRET}
{CORE}{SECRET} in the second line of what the exception says
(EngineCore pid=86) ERROR 11-22 12:31:16 [core.py:1750] torch.OutOfMemoryError: CUDA out of memory. Tried 2 GiB
(EngineCore pid=86) INFO 11-22 12:31:17 [core.py:99] failed with prompt: '{SECRET}'
ValueError: {SECRET}
{SECRET} as a program prints it that nobody knows
{{"prompt": "{SECRET}"}}
(APIServer pid=1) INFO:     Application startup complete.
"""

# The engine's own lines about a request, with its most verbose settings.
REQUESTS = f"""
from vllm.logger import _configure_vllm_root_logger
_configure_vllm_root_logger()
from vllm.entrypoints.serve.utils.request_logger import RequestLogger
from vllm.sampling_params import SamplingParams
logger = RequestLogger(max_log_len=None)
logger.log_inputs("id-1", "{SECRET}\\nand {SECRET}", [1, 2], None, SamplingParams(stop=["{SECRET}"]), None)
logger.log_outputs("id-1", "{SECRET}", [1, 2], "stop")
"""


@dataclass(frozen=True)
class Receiver:
    """A log server on a node."""

    node: Node
    watcher: Watcher
    sender: Node

    def start(self, port: int = PORT, *certificate: str) -> None:
        argv = self.node.argv("sh", "-c", "cat > /tmp/receiver.py")
        subprocess.run(argv, input=RECEIVER, text=True, check=True)
        command = f"python3 /tmp/receiver.py {port} {' '.join(certificate)}"
        self.node.run(f"systemd-run --collect --unit=receiver-{port} {command}")

    def stop(self, port: int = PORT) -> None:
        self.node.run(f"systemctl stop receiver-{port}.service", check=False)

    def lines(self) -> list[dict[str, Any]]:
        """All received lines. Fails for a line that is not JSON."""
        text = self.node.run(f"cat {TAKEN}", check=False)
        # The last line may be incomplete.
        return [json.loads(line) for line in text.split("\n")[:-1]]

    def of(self, unit: str, node: Node | None = None) -> list[dict[str, Any]]:
        name = (node or self.sender).name
        return [line for line in self.lines() if line["unit"] == unit and line["host"] == name]

    def playbook(self, *options: str, check: bool = True, **extra: Any) -> str:
        """Let both nodes ship to this server."""
        wanted = {
            "monitoring_log_server": self.node.address,
            "monitoring_log_port": PORT,
            "monitoring_log_protocol": "tcp",
            "firewall_allow": [{"name": "logs", "port": [PORT, TLS_PORT], "sources": [self.sender.address]}],
        }
        limit = f"{self.sender.name},{self.node.name}"
        return self.watcher.playbook(*options, limit=limit, check=check, **{**wanted, **extra})


def log_lines(node: Node, *words: str) -> str:
    """Let a unit log lines. Returns the name of the unit."""
    unit = f"inference-test-{uuid.uuid4().hex[:8]}"
    argv = node.argv("systemd-run", "--wait", "--quiet", "--collect", f"--unit={unit}", "printf", "%s\\n", *words)
    subprocess.run(argv, check=True)
    return f"{unit}.service"


def engine_logs(node: Node, instance: str, text: str, *command: str) -> None:
    """Let a container log lines as an engine does."""
    image = node.run("docker inspect --format '{{.Image}}' vllm-main")
    options = ["--log-driver=journald", f"--log-opt=tag=vllm@{instance}", "--env=VLLM_LOGGING_LEVEL=DEBUG"]
    entry = command or ("cat",)
    argv = node.argv("docker", "run", "--rm", "--interactive", *options, f"--entrypoint={entry[0]}", image, *entry[1:])
    subprocess.run(argv, input=text, text=True, check=True, capture_output=True)


@pytest.fixture(scope="module")
def receiver(watcher: Watcher, deb12: Node, deb13: Node) -> Iterator[Receiver]:
    """Both nodes ship to the second node. After the tests, log shipping is removed."""
    receiver = Receiver(deb13, watcher, deb12)
    deb13.run(f"rm -f {TAKEN}")
    receiver.start()
    assert changes(receiver.playbook("--check")) > 0
    receiver.playbook()
    yield receiver
    both = f"{deb12.name},{deb13.name}"
    assert changes(watcher.playbook("--check", limit=both)) > 0
    watcher.playbook(limit=both)
    for node in (deb12, deb13):
        assert not node.run("find / -xdev -path /proc -prune -o -name 'inference-logs*' -print")
        assert node.run("ls /etc/inference/logs.conf 2>&1", check=False).endswith("No such file or directory")
        assert node.run(f"systemctl show --value --property=LoadState {UNIT}") == "not-found"
    for port in (PORT, TLS_PORT):
        receiver.stop(port)
    assert changes(watcher.playbook(limit=both)) == 0


def with_data(receiver: Receiver, unit: str, node: Node, data: dict[str, Any]) -> list[dict[str, Any]]:
    return [line for line in receiver.of(unit, node) if line.get("data") == data]


def test_lines_arrive_with_host_unit_and_fields(receiver: Receiver, deb12: Node, deb13: Node) -> None:
    for node in (deb12, deb13):
        unit = log_lines(node, "hello", '{"answer": 42}')
        wait_for("the JSON line arrives", partial(with_data, receiver, unit, node, {"answer": 42}), 30)
        assert ("info", "hello") in [(line["severity"], line["message"]) for line in receiver.of(unit, node)]
    deb12.run("inferctl drain main --reason test; inferctl undrain main")
    done = wait_for("the drain's line", lambda: receiver.of("inferctl"), 30)
    assert (done[0]["instance"], done[0]["data"]) == ("main", {"event": "drain"})


def test_lines_of_requests_and_engines_arrive(receiver: Receiver, deb12: Node) -> None:
    key = "Authorization: Bearer monitoring-load-key-7e20"
    body = json.dumps({"model": "main", "prompt": SECRET, "max_tokens": 3})
    asked = f"curl --silent --fail -H '{key}' -H 'Content-Type: application/json' -d '{body}'"
    deb12.run(f"{asked} http://127.0.0.1:8000/v1/completions")

    def requests() -> list[tuple[str, str, int]]:
        lines = [line["data"] for line in receiver.of("haproxy.service") if "data" in line]
        return [(one["key"], one["model"], one["status"]) for one in lines]

    wait_for("the gateway's line", lambda: ("load", "main", 200) in requests(), 30)

    def throughput() -> list[dict[str, Any]]:
        lines = receiver.of("vllm@main.service") + receiver.of("vllm@main.service", receiver.node)
        return [one for one in lines if "throughput" in one["message"]]

    (line, *_more) = wait_for("the engine's line", throughput, 60)
    assert line["instance"] == "main" and line["data"]["source"].startswith("loggers.py:")


def test_no_prompt_leaves_the_node(receiver: Receiver, deb12: Node) -> None:
    # Docker splits a line of this length.
    engine_logs(deb12, "talker", f"{ENGINE_LINES}{API}Received request b: {'x' * 20000} {SECRET} {'x' * 20000}\n")
    engine_logs(deb12, "logger", REQUESTS, "python3", "-")
    # The journal has these lines.
    assert SECRET in deb12.run("journalctl --no-pager -t vllm@logger -g 'prompt: .*stromboli'")
    assert SECRET in deb12.run("journalctl --no-pager -t vllm@logger -g 'Generated response'")
    marker = log_lines(deb12, "the end")
    wait_for("all lines have arrived", lambda: receiver.of(marker), 60)
    text = receiver.node.run(f"cat {TAKEN}")
    assert SECRET not in text
    assert [(line["severity"], line["message"]) for line in receiver.of("vllm@talker.service")] == [
        ("warning", "(left out)"),
        ("err", "EngineCore encountered a fatal error."),
        ("err", "Traceback (most recent call last):"),
        ("err", '  File "/venv/vllm/v1/engine/core.py", line 1741, in run_engine_core'),
        ("err", "vllm.exceptions.VLLMValidationError: (left out)"),
        ("err", "torch.OutOfMemoryError: CUDA out of memory. Tried 2 GiB"),
        ("info", "failed with prompt: (left out)"),
        ("info", "ValueError: (left out)"),
        ("info", "INFO:     Application startup complete."),
    ]


def test_lines_of_other_units_and_containers_stay_on_the_node(receiver: Receiver, deb12: Node) -> None:
    deb12.run("systemd-run --wait --quiet --collect --unit=stranger echo stranger-line")
    image = deb12.run("docker inspect --format '{{.Image}}' vllm-main")
    deb12.run(f"docker run --rm --log-driver=journald --entrypoint=echo {image} container-line")
    marker = log_lines(deb12, "the end")
    wait_for("all lines have arrived", lambda: receiver.of(marker), 60)
    text = receiver.node.run(f"cat {TAKEN}")
    assert "stranger" not in text and "container-line" not in text


def test_while_the_server_is_away_no_line_is_lost_and_no_program_waits(
    receiver: Receiver, watcher: Watcher, deb12: Node
) -> None:
    wanted = [f"line {number} {uuid.uuid4().hex}" for number in range(600)]
    receiver.stop()
    units = [log_lines(deb12, *wanted[:200])]
    # Without the server, programs log and the service restarts without delay.
    deb12.run(f"timeout 20 systemctl restart {UNIT}")
    units.append(log_lines(deb12, *wanted[200:400]))
    deb12.run(f"systemctl kill --signal=KILL {UNIT}")
    units.append(log_lines(deb12, *wanted[400:]))
    deb12.run(f"touch --date='20 minutes ago' {POSITION}; ! systemctl start {CHECK}")
    query = f'node_systemd_unit_state{{name="{CHECK}",state="failed",node="{deb12.name}"}} == 1'
    wait_for("the alert's metric", lambda: watcher.query(query), 60)
    receiver.start()

    def arrived() -> list[str]:
        said = [line["message"] for unit in units for line in receiver.of(unit) if line["message"].startswith("line ")]
        return list(dict.fromkeys(said))

    wait_for("all lines arrive", lambda: len(arrived()) == len(wanted), 120)
    assert arrived() == wanted
    deb12.run(f"systemctl start {CHECK}")
    wait_for("the alert's end", lambda: not watcher.query(query), 60)


def test_a_second_run_changes_nothing_and_a_wrong_setting_is_refused(receiver: Receiver, deb12: Node) -> None:
    def state() -> str:
        shown = f"systemctl show --property=MainPID,NRestarts {UNIT}"
        return deb12.run(f"sha256sum /etc/inference/logs.conf /etc/systemd/system/inference-logs*; {shown}")

    before = state()
    assert changes(receiver.playbook()) == 0
    wrong: dict[str, Any] = {
        "monitoring_log_units": ["a|b"],
        "monitoring_log_protocol": "tls",
        "monitoring_log_ca": "/etc/none.pem",
    }
    said = receiver.playbook(check=False, **wrong)
    assert "a|b" in said and "/etc/none.pem" in said and "Nothing was changed" in said
    assert state() == before


def test_the_node_keeps_no_second_log(receiver: Receiver, deb12: Node, deb13: Node) -> None:
    for node in (deb12, deb13):
        assert node.run("systemctl is-enabled rsyslog.service", check=False) == "masked"
        assert node.run("ls /var/log/syslog 2>/dev/null", check=False) == ""
        # The service does not run as root.
        assert node.run(f"ps -o user= -p $(systemctl show --value --property=MainPID {UNIT})") != "root"


def test_by_tls_only_the_right_server_gets_lines(receiver: Receiver, deb12: Node, tmp_path: Path) -> None:
    names = ["-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}", "-days", "1"]
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        *names,
        "-keyout",
        "key.pem",
        "-out",
        "cert.pem",
    ]
    subprocess.run(made, cwd=tmp_path, check=True, capture_output=True)
    for node, name in ((receiver.node, "key.pem"), (receiver.node, "cert.pem"), (deb12, "cert.pem")):
        argv = node.argv("sh", "-c", f"mkdir -p /etc/ssl/logs; cat > /etc/ssl/logs/{name}")
        subprocess.run(argv, input=(tmp_path / name).read_bytes(), check=True)
    receiver.start(TLS_PORT, "/etc/ssl/logs/cert.pem", "/etc/ssl/logs/key.pem")
    tls: dict[str, Any] = {
        "monitoring_log_protocol": "tls",
        "monitoring_log_port": TLS_PORT,
        "monitoring_log_ca": "/etc/ssl/logs/cert.pem",
    }
    # The certificate does not have the address of the server.
    receiver.playbook(**tls)
    unit = log_lines(deb12, "only for the right name")
    wait_for(
        "the error is in the journal",
        lambda: deb12.run(f"journalctl --quiet -u {UNIT} -g 'peer name'", check=False),
        60,
    )
    assert receiver.of(unit) == []
    receiver.playbook(**tls, monitoring_log_peer=NAME)
    wait_for("the line arrives", lambda: receiver.of(unit), 60)
    receiver.playbook()
    for node in (receiver.node, deb12):
        node.run("rm -r /etc/ssl/logs")
