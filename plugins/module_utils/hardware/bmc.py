# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads and changes a machine's power by its baseboard management controller (BMC). Private to the collection.

Protocols: Redfish and IPMI. Runs on the controller. The password is never in a command line or an error's text.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Any, Protocol

from ..core.addresses import in_url

POLL_SECONDS = 2.0
"""Seconds between two queries of the power state."""

STEADY = ("on", "off")

RESET_TYPES = {"on": ("On", "ForceOn"), "off": ("ForceOff",), "reset": ("ForceRestart", "PowerCycle")}
"""Redfish's names for our orders; the preferred name is first. Source: DMTF, Resource schema, ResetType."""


class BmcError(Exception):
    """A query or an order failed; the text is for the operator."""


class Bmc(Protocol):
    """The operations of a protocol."""

    def state(self) -> str:
        """`on`, `off`, or another word of the BMC; `unknown` if the BMC has none. Raises BmcError."""

    def offers(self, what: str) -> None:
        """Raises BmcError if the BMC reports that it does not support this order."""

    def order(self, what: str) -> None:
        """Send an order: `on`, `off` (hard, at once) or `reset` (hard). Raises BmcError."""


class Redfish:
    """DMTF's Redfish (DSP0266) over HTTPS, with basic authentication, which needs no session."""

    def __init__(
        self, address: str, user: str, password: str, context: ssl.SSLContext, system: str = "", timeout: float = 30
    ) -> None:
        self.base = f"https://{_bracketed(address)}"
        self.system = system
        self.timeout = timeout
        token = base64.b64encode(f"{user}:{password}".encode()).decode()
        self.headers = {"Authorization": f"Basic {token}", "Accept": "application/json", "OData-Version": "4.0"}
        # No proxies and no redirects, because the password would reach them.
        self.opener = urllib.request.OpenerDirector()
        self.opener.add_handler(urllib.request.HTTPSHandler(context=context))

    def call(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """A request's decoded answer. Raises BmcError."""
        data = None if body is None else json.dumps(body).encode()
        headers = {**self.headers, **({"Content-Type": "application/json"} if data else {})}
        try:
            request = urllib.request.Request(self.base + path, data=data, headers=headers)
            with self.opener.open(request, timeout=self.timeout) as answer:
                status, text = answer.status, answer.read().decode(errors="replace")
        except (OSError, ValueError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            hint = ""
            if isinstance(reason, ssl.SSLCertVerificationError):
                hint = ": set bmc_ca to the authority of the BMC's certificate, or bmc_validate_certs to false"
            raise BmcError(f"{self.base}{path} cannot be reached: {reason}{hint}") from error
        if status in (401, 403):
            raise BmcError(f"{self.base} refuses the user or the password ({status}): correct them")
        if not 200 <= status < 300:
            raise BmcError(f"{self.base}{path} answers {status}: {self.words(text)}")
        try:
            found = json.loads(text) if text.strip() else {}
        except ValueError as error:
            raise BmcError(f"{self.base}{path} does not answer in JSON: check that it is a BMC's address") from error
        if not isinstance(found, dict):
            raise BmcError(f"{self.base}{path} does not answer with an object: check that it is a BMC's address")
        return found

    @staticmethod
    def words(text: str) -> str:
        """The messages of a Redfish error."""
        try:
            error = json.loads(text)["error"]
            messages = [item["Message"] for item in error.get("@Message.ExtendedInfo", []) if item.get("Message")]
            return "; ".join(messages) or str(error["message"])
        except (ValueError, KeyError, TypeError, AttributeError):
            return text[:200] or "nothing"

    def resource(self) -> dict[str, Any]:
        """The machine's resource among all systems of the BMC. Raises BmcError."""
        listed = self.call("/redfish/v1/Systems").get("Members")
        found = [_object(item).get("@odata.id") for item in listed] if isinstance(listed, list) else []
        members = [path for path in found if isinstance(path, str)]
        chosen = [path for path in members if not self.system or path.rstrip("/").rpartition("/")[2] == self.system]
        if len(chosen) != 1:
            names = ", ".join(path.rstrip("/").rpartition("/")[2] for path in members) or "none"
            action = f"none has the name {self.system!r}" if self.system else "set bmc_system to one of them"
            if not members:
                action = "check the user's rights at the BMC"
            raise BmcError(f"{self.base} has these systems: {names}; {action}")
        return self.call(chosen[0])

    def state(self) -> str:
        """See Bmc."""
        return str(self.resource().get("PowerState", "unknown")).lower()

    def reset_action(self, what: str) -> tuple[str, str]:
        """The path of an order, and its Redfish name. Raises BmcError."""
        action = _object(_object(self.resource().get("Actions")).get("#ComputerSystem.Reset"))
        listed = action.get("ResetType@Redfish.AllowableValues") or RESET_TYPES[what]
        allowed = [str(kind) for kind in listed] if isinstance(listed, (list, tuple)) else []
        kinds = [kind for kind in RESET_TYPES[what] if kind in allowed]
        if "target" not in action:
            raise BmcError(f"{self.base} offers this user no change of the power: check the user's rights at the BMC")
        if not kinds:
            raise BmcError(
                f"{self.base} does not support {RESET_TYPES[what][0]}: it supports {', '.join(allowed) or 'nothing'}"
            )
        return str(action["target"]), kinds[0]

    def offers(self, what: str) -> None:
        """See Bmc."""
        self.reset_action(what)

    def order(self, what: str) -> None:
        """See Bmc."""
        path, kind = self.reset_action(what)
        self.call(path, {"ResetType": kind})


class Ipmi:
    """IPMI 2.0 over the network by `ipmitool`, which reads the password from its standard input."""

    def __init__(self, address: str, user: str, password: str, run: Callable[..., tuple[int, str, str]]) -> None:
        where = urllib.parse.urlsplit(f"//{_bracketed(address)}")
        self.address = address
        self.password = password
        self.run = run
        self.command = ["ipmitool", "-I", "lanplus", "-H", where.hostname or address, "-p", str(where.port or 623)]
        # The lowest privilege level that may change power. ipmitool sends a command up to three times. It waits two
        # seconds for the first answer, and one second longer for each further answer (lanplus.c).
        self.command += ["-L", "OPERATOR", "-U", user, "-f", "/dev/stdin", "-N", "2", "-R", "3"]

    def call(self, *words: str) -> str:
        """The output of ipmitool. Raises BmcError."""
        try:
            code, output, error = self.run([*self.command, *words], data=self.password, handle_exceptions=False)
        except FileNotFoundError as missing:
            raise BmcError("ipmitool is not installed on the controller: run apt-get install ipmitool") from missing
        except OSError as refused:
            raise BmcError(f"ipmitool cannot be started on the controller: {refused}") from refused
        if code:
            raise BmcError(f"{self.address}: ipmitool {' '.join(words)} failed ({code}): {(error or output).strip()}")
        return output

    def state(self) -> str:
        """See Bmc."""
        return self.call("chassis", "power", "status").strip().lower().rpartition(" ")[2]

    def offers(self, what: str) -> None:
        """See Bmc. IPMI does not report which orders it supports."""

    def order(self, what: str) -> None:
        """See Bmc."""
        self.call("chassis", "power", what)


def _object(value: Any) -> dict[str, Any]:
    """The value, if it is an object of JSON; otherwise an empty one."""
    return value if isinstance(value, dict) else {}


def _bracketed(address: str) -> str:
    """The address, with brackets around an IPv6 address that has none: a port may follow only after brackets.

    Raises BmcError if the text is not an address.
    """
    text = in_url(address) if address.count(":") > 1 and "[" not in address else address
    try:
        parts = urllib.parse.urlsplit(f"//{text}")
        valid = bool(parts.hostname) and parts.port != 0 and parts.netloc == text and "@" not in text
    except ValueError:
        valid = False
    if not valid:
        raise BmcError(f"bmc_address {address!r} is not an address, or an address with a port: correct it")
    return text


class Clock:
    """The clock. Tests replace it, so that they need not wait."""

    def now(self) -> float:
        """Monotonic time in seconds."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


def wait_for(bmc: Bmc, state: str, seconds: float, clock: Clock) -> None:
    """Wait until the power has this state. Ignores failed queries, because a BMC may be busy. Raises BmcError."""
    deadline = clock.now() + seconds
    while True:
        try:
            found = bmc.state()
        except BmcError as error:
            found = f"unknown: {error}"
        if found == state:
            return
        if clock.now() >= deadline:
            raise BmcError(f"the power is {found!r} after {seconds:.0f} s, and should be {state!r}: check the BMC")
        clock.sleep(POLL_SECONDS)


def cycle(bmc: Bmc, action: str, pause: float, seconds: float, clock: Clock) -> str:
    """Power-cycle (`cycle`) or reset (`reset`) a machine, and wait up to `seconds` for each power state. Returns the
    state from before. Raises BmcError.

    A cycle switches the power off for `pause` seconds. A GPU that has fallen off its bus needs this; a reset does not
    help. A machine that is off is switched on in both cases.
    """
    before = bmc.state()
    if before not in STEADY:
        raise BmcError(f"the power is {before!r}, neither on nor off: nothing was changed. Check the BMC's page")
    for order in ("on",) if before == "off" else ("reset",) if action == "reset" else ("off", "on"):
        bmc.offers(order)
    if before == "on" and action == "reset":
        bmc.order("reset")
    elif before == "on":
        bmc.order("off")
        wait_for(bmc, "off", seconds, clock)
        clock.sleep(pause)
    if before == "off" or action == "cycle":
        bmc.order("on")
    wait_for(bmc, "on", seconds, clock)
    return before
