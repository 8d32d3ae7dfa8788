# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measures the cost of the gateway, compared with the engine alone and with LiteLLM's proxy, by turns in the same run.

Throughput is also measured with a paced engine, which does not compute on the cores of gateway and clients. Then
affinity is compared with least connections (bench_affinity.py), and the cost of a swap with the load of the engine
alone. The engine is on one node, the gateway on another node. Clients, LiteLLM and paced engines are on this machine.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import bench_affinity
from nodes import ROOT, NodeError, Site

sys.path.insert(0, str(ROOT / "molecule/shared"))

from load import Connection, Load, Shape
from swap_costs import SWAPPED

KEY = "bench-key-not-secret"
PORT = 4010
"""The port of LiteLLM."""
PACED_PORT = 4011
"""The port of the paced engine, which takes the place of an engine with a GPU."""
LITELLM = "litellm[proxy]==1.100.0"
REQUESTS = 300
"""Requests to each address by turns, one at a time."""
CLIENTS, SECONDS, ROUNDS = 8, 15.0, 2
"""For the measurement of throughput: clients, seconds of a round, and rounds."""
HEADERS = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}

Play = Callable[..., str]
Add = Callable[[str, float, float | None], None]


def bench(site: Site, node: str, gateway: str, play: Play, add: Add) -> None:
    """Measure, and call `add` with each row: name, seconds, ratio. `play` runs a playbook with extra variables."""
    keys = [{"name": "bench", "key": KEY}]
    settings = {
        "gateway_keys": keys,
        "gateway_tls": "none",
        # The gateway is a container, too, and is not in the group of the nodes.
        "common_sysctl_enabled": False,
        "common_time_enabled": False,
        # The minute of the watch does not count: clients are served during the watch.
        "update_watch_seconds": 0,
        "gateway_slow_start_seconds": 0,
    }
    with paced(site.addresses[gateway]) as (host, engine), bench_affinity.engines(host) as cached:
        replica = {"host": node, "address": host, "name": "main", "model": "tiny-a", "port": PACED_PORT}
        play("playbooks/site.yml", gateway_replicas=[replica, *cached], gateway_agent_port=0, **settings)
        ways = {"engine alone": engine, "gateway": f"http://{site.addresses[gateway]}:8000"}
        compare(f"{CLIENTS} clients, 20 tokens of 10 ms", ways, add)
        bench_affinity.bench(f"{site.addresses[gateway]}:8000", HEADERS, add)
    play("playbooks/site.yml", **settings)
    engine = f"http://{site.addresses[node]}:5005"
    ways = {"engine alone": engine, "gateway": f"http://{site.addresses[gateway]}:8000"}
    with litellm(engine) as proxy:
        if proxy:
            ways["LiteLLM's proxy"] = proxy
        latencies = asyncio.run(one_at_a_time(ways))
        for share in (50, 99):
            base = quantile(latencies["engine alone"], share)
            for name, times in latencies.items():
                seconds = quantile(times, share)
                add(f"one request of 1 token, p{share}: {name}", seconds, None if seconds == base else seconds / base)
        compare(f"{CLIENTS} clients, 20 tokens, on shared cores", ways, add)
    stop, load = restart(site, node)
    add("the engine's bare load", load, None)
    add("the engine's bare stop", stop, None)
    said = play("playbooks/update_model.yml", allow_downtime=True, set={"main": "tiny-b"}, **settings)
    found = SWAPPED.search(" ".join(said.split()))
    if not found:
        raise NodeError(f"The output of update_model.yml has no time of a swap:\n{said[-2000:]}")
    drained, loaded = float(found[2]), float(found[3])
    add("swap: drained, stopped, loaded, probed, admitted", drained, drained / load)
    add("  of it, the load", loaded, loaded / load)
    add("  of it, the rest", drained - loaded, None)


def quantile(times: list[float], share: int) -> float:
    return statistics.quantiles(times, n=100)[share - 1]


async def one_at_a_time(ways: dict[str, str]) -> dict[str, list[float]]:
    """Seconds of each request. Requests go to all addresses by turns, so other work affects all alike.

    Raises NodeError if a request failed.
    """
    connections = {}
    for name, url in ways.items():
        host, _colon, port = url.removeprefix("http://").partition(":")
        connections[name] = Connection(host, int(port))
    body = json.dumps({"model": "main", "messages": [{"role": "user", "content": "Who are you?"}], "max_tokens": 1})
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(REQUESTS + 20):
        for name, connection in connections.items():
            began = time.perf_counter()
            status, answer = await connection.post("/v1/chat/completions", HEADERS, body.encode())
            said = await answer.whole()
            if not answer.keep:
                connection.close()
            if status != 200:
                raise NodeError(f"{name} answered {status}: {said[:300]!r}")
            # The first requests only warm up.
            if number >= 20:
                times[name].append(time.perf_counter() - began)
    for connection in connections.values():
        connection.close()
    return times


def compare(what: str, ways: dict[str, str], add: Add) -> None:
    """Add a row with the seconds of a request for each address, measured by turns."""
    rates = dict.fromkeys(ways, 0.0)
    for _round in range(ROUNDS):
        for name, url in ways.items():
            rates[name] += throughput(url) / ROUNDS
    for name, rate in rates.items():
        ratio = None if name == "engine alone" else rates["engine alone"] / rate
        add(f"{what}: {name}", 1 / rate, ratio)


def throughput(url: str) -> float:
    """Requests per second. Raises NodeError if a request failed."""
    load = Load(url, clients=CLIENTS, key=KEY, shapes=(Shape(True, 20), Shape(False, 20)))
    began = time.monotonic()
    load.start()
    time.sleep(SECONDS)
    report = load.stop()
    if report.failures:
        raise NodeError(f"{url}: {report}")
    return report.succeeded / (time.monotonic() - began)


def restart(site: Site, node: str) -> tuple[float, float]:
    """Seconds of the idle engine's stop, and of its start until systemd counts the engine as ready."""
    command = ["ssh", *site.ssh_options(), f"root@{site.addresses[node]}"]
    began = time.monotonic()
    subprocess.run([*command, "systemctl stop vllm@main"], check=True)
    stopped = time.monotonic()
    subprocess.run([*command, "systemctl reset-failed vllm@main; systemctl start vllm@main"], check=True)
    return stopped - began, time.monotonic() - stopped


@contextmanager
def paced(client: str) -> Iterator[tuple[str, str]]:
    """A paced engine: the address at which `client` reaches this machine, and the engine's URL."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
        way.connect((client, 9))
        host = way.getsockname()[0]
    process = subprocess.Popen([sys.executable, Path(__file__).with_name("paced_engine.py"), str(PACED_PORT)])
    try:
        yield host, _wait(process, PACED_PORT, "the paced engine")
    finally:
        process.terminate()
        process.wait()


@contextmanager
def litellm(engine: str) -> Iterator[str]:
    """LiteLLM's proxy in front of the engine. The address is empty if LiteLLM cannot be installed."""
    home = Path(os.environ["INFERENCE_CACHE"]) / "litellm"
    if not (home / "bin/litellm").exists():
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        installed = subprocess.run([home / "bin/pip", "install", "--quiet", LITELLM], check=False)
        if installed.returncode != 0:
            print("NOTE: LiteLLM cannot be installed here, and is not measured", file=sys.stderr)
            yield ""
            return
    config = home / "config.yaml"
    parameters = {"model": "openai/main", "api_base": f"{engine}/v1", "api_key": "none"}
    # JSON is YAML.
    config.write_text(json.dumps({"model_list": [{"model_name": "main", "litellm_params": parameters}]}))
    with (home / "log").open("w") as log:
        process = subprocess.Popen(
            [home / "bin/litellm", "--config", config, "--host", "127.0.0.1", "--port", str(PORT)],
            stdout=log,
            stderr=log,
            env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "NO_PROXY": "*"},
        )
        try:
            yield _wait(process, PORT, f"LiteLLM ({home}/log)")
        finally:
            process.terminate()
            process.wait()


def _wait(process: subprocess.Popen[bytes], port: int, what: str) -> str:
    """The URL of a program on this machine, as soon as its port accepts connections. Raises NodeError."""
    for _ in range(120):
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return f"http://127.0.0.1:{port}"
        except OSError:
            if process.poll() is not None:
                break
            time.sleep(1)
    raise NodeError(f"{what} does not start")
