# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gateways of which nothing is known, and how to go on. Private to the collection. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def unheard(hosts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A problem for each gateway that may send requests to anybody.

    Each host has `unreachable`, the gateways that could not be asked, and `gateways`, what gateway_facts saw at each
    of the others.
    """
    seen = [gateway for facts in hosts.values() for gateway in facts["gateways"]]
    found = {
        name: "it cannot be reached, and nobody knows whom it sends requests to: bring it back"
        for facts in hosts.values()
        for name in facts["unreachable"]
    }
    found |= {gateway["gateway"]: f"{gateway['silent']}: start it" for gateway in seen if gateway["silent"]}
    living = sorted({gateway["gateway"] for gateway in seen} - set(found))
    left = json.dumps({"vllm_update_gateways": living})
    way = f"If no client can use it meanwhile, leave it out: -e '{left}'"
    return [f"{name}: {words}. {way}" for name, words in sorted(found.items())]
