# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports the death of an engine to all gateways, and reads which requests were in flight. Private to the collection.

A gateway answers at /deaths on its metrics port (gateway/deaths.lua). No answer has a prompt or an API key,
only the names of keys.
"""

from __future__ import annotations

import http.client
import json
import urllib.parse
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ...engine.swap_settings import Gateway
from .deaths import Request, Seen

ANSWER_SECONDS = 2.0
"""Limit for a gateway's answer. The next start of the engine waits for the answers, of 16 gateways at a time."""

LONGEST_ANSWER = 1 << 20
"""Most bytes of an answer. The gateway limits deaths and requests to about half of it."""


def report(gateways: Sequence[Gateway], name: str, node: str, age: float) -> tuple[list[Seen], dict[str, str]]:
    """Report that the instance `name` of this node died `age` seconds ago. Returns the deaths that the gateways know,
    and why a gateway did not answer. Raises nothing."""
    if not gateways:
        return [], {}
    found: list[Seen] = []
    silent: dict[str, str] = {}
    with ThreadPoolExecutor(min(16, len(gateways))) as pool:
        for gateway, asked in [(one, pool.submit(_ask, one, name, node, age)) for one in gateways]:
            try:
                found += asked.result()
            except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError) as error:
                silent[gateway.name] = str(error) or repr(error)
    return found, silent


def _ask(gateway: Gateway, name: str, node: str, age: float) -> list[Seen]:
    """Raises OSError, HTTPException, ValueError, KeyError, TypeError."""
    connection = http.client.HTTPConnection(gateway.address, gateway.port, timeout=ANSWER_SECONDS)
    try:
        where = f"set={name}&node={urllib.parse.quote(node, safe=':')}&age={age:.3f}"
        connection.request("POST", f"/deaths?{where}", headers={"Connection": "close"})
        response = connection.getresponse()
        body = response.read(LONGEST_ANSWER)
        if response.status != http.HTTPStatus.OK:
            raise ValueError(f"HTTP {response.status}: run baremetal.inference.site there")
        return [parse(each) for each in json.loads(body)["deaths"]]
    finally:
        connection.close()


def parse(value: Mapping[str, Any]) -> Seen:
    """A death in an answer. Raises KeyError, TypeError, ValueError."""
    requests = tuple(
        Request(
            str(one["id"]), str(one["key"]), str(one["path"]), None if one["status"] is None else int(one["status"])
        )
        for one in value["requests"]
    )
    keys = tuple(map(str, value["keys"]))
    return Seen(str(value["set"]), str(value["node"]), float(value["age"]), keys, requests)
