# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine's power, by its baseboard management controller (BMC): Redfish or IPMI. Private to the collection.

Runs on the controller. The password is never part of a command line, nor of an error's text.
"""

from __future__ import annotations

import base64
import json
import ssl
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Any, Protocol

POLL_SECONDS = 2.0
"""Between two looks at the power while it changes."""

STEADY = ("on", "off")

RESET_TYPES = {"on": ("On", "ForceOn"), "off": ("ForceOff",), "reset": ("ForceRestart", "PowerCycle")}
"""Our orders and Redfish's, the preferred one first. Source: DMTF, Resource schema, ResetType."""


class BmcError(Exception):
    """The BMC cannot be reached, refuses, or does not do what it was told; the text is for the operator."""


class Bmc(Protocol):
    """What a protocol can do."""

    def state(self) -> str:
        """`on`, `off`, or the BMC's own word for what lies between. Raises BmcError."""

    def offers(self, what: str) -> None:
        """Raises BmcError where the BMC says that it cannot do this."""

    def order(self, what: str) -> None:
        """`on`, `off` (hard, at once) or `reset` (hard). Raises BmcError."""


class Redfish:
    """DMTF's Redfish (DSP0266) over HTTPS, with basic authentication: there is no session to be closed."""

    def __init__(
        self, address: str, user: str, password: str, context: ssl.SSLContext, system: str = "", timeout: float = 30
    ) -> None:
        self.base = f"https://{address}"
        self.system = system
        self.timeout = timeout
        token = base64.b64encode(f"{user}:{password}".encode()).decode()
        self.headers = {"Authorization": f"Basic {token}", "Accept": "application/json", "OData-Version": "4.0"}
        # Neither a proxy of the controller's environment nor a redirect gets to see the password.
        self.opener = urllib.request.OpenerDirector()
        self.opener.add_handler(urllib.request.HTTPSHandler(context=context))

    def call(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """A request's decoded answer. Raises BmcError."""
        data = None if body is None else json.dumps(body).encode()
        headers = {**self.headers, **({"Content-Type": "application/json"} if data else {})}
        request = urllib.request.Request(self.base + path, data=data, headers=headers)
        try:
            with self.opener.open(request, timeout=self.timeout) as answer:
                status, text = answer.status, answer.read().decode(errors="replace")
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            hint = ""
            if isinstance(reason, ssl.SSLCertVerificationError):
                hint = ": give the authority of the BMC's certificate (bmc_ca), or set bmc_validate_certs to false"
            raise BmcError(f"{self.base}{path} cannot be reached: {reason}{hint}") from error
        if status in (401, 403):
            raise BmcError(f"{self.base} refuses the user or the password ({status})")
        if not 200 <= status < 300:
            raise BmcError(f"{self.base}{path} answers {status}: {self.words(text)}")
        try:
            return json.loads(text) if text.strip() else {}
        except ValueError as error:
            raise BmcError(f"{self.base}{path} does not answer in JSON: is this a BMC?") from error

    @staticmethod
    def words(text: str) -> str:
        """What a Redfish error says, for people."""
        try:
            error = json.loads(text)["error"]
            told = [item["Message"] for item in error.get("@Message.ExtendedInfo", []) if item.get("Message")]
            return "; ".join(told) or str(error["message"])
        except (ValueError, KeyError, TypeError):
            return text[:200] or "nothing"

    def resource(self) -> dict[str, Any]:
        """The machine, of those that the BMC looks after. Raises BmcError."""
        members = [str(item["@odata.id"]) for item in self.call("/redfish/v1/Systems").get("Members", [])]
        chosen = [path for path in members if not self.system or path.rstrip("/").rpartition("/")[2] == self.system]
        if len(chosen) != 1:
            names = ", ".join(path.rstrip("/").rpartition("/")[2] for path in members) or "none"
            wanted = f"none is called {self.system!r}" if self.system else "say which one with bmc_system"
            raise BmcError(f"{self.base} has these systems: {names}; {wanted}")
        return self.call(chosen[0])

    def state(self) -> str:
        """See Bmc."""
        return str(self.resource().get("PowerState", "unknown")).lower()

    def reset_action(self, what: str) -> tuple[str, str]:
        """The path of an order, and Redfish's word for it. Raises BmcError."""
        action = self.resource().get("Actions", {}).get("#ComputerSystem.Reset", {})
        allowed = action.get("ResetType@Redfish.AllowableValues") or list(RESET_TYPES[what])
        kinds = [kind for kind in RESET_TYPES[what] if kind in allowed]
        if "target" not in action or not kinds:
            raise BmcError(f"{self.base} cannot do {RESET_TYPES[what][0]}: it offers {', '.join(allowed)}")
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
        where = urllib.parse.urlsplit(f"//{address}")
        self.address = address
        self.password = password
        self.run = run
        self.command = ["ipmitool", "-I", "lanplus", "-H", where.hostname or address, "-p", str(where.port or 623)]
        # The least that may change power; four tries, two seconds each.
        self.command += ["-L", "OPERATOR", "-U", user, "-f", "/dev/stdin", "-N", "2", "-R", "3"]

    def call(self, *words: str) -> str:
        """What ipmitool prints. Raises BmcError."""
        try:
            code, output, error = self.run([*self.command, *words], data=self.password, handle_exceptions=False)
        except FileNotFoundError as missing:
            raise BmcError("ipmitool is not installed on the controller") from missing
        if code:
            raise BmcError(f"{self.address}: ipmitool {' '.join(words)} failed ({code}): {(error or output).strip()}")
        return output

    def state(self) -> str:
        """See Bmc."""
        return self.call("chassis", "power", "status").strip().lower().rpartition(" ")[2]

    def offers(self, what: str) -> None:
        """See Bmc: IPMI does not say."""

    def order(self, what: str) -> None:
        """See Bmc."""
        self.call("chassis", "power", what)


class Clock:
    """Time, so that a test need not wait for it."""

    def now(self) -> float:
        """Seconds that only ever grow."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


def wait_for(bmc: Bmc, state: str, seconds: float, clock: Clock) -> None:
    """Wait until the power has the wanted state. A busy BMC may leave a question unanswered. Raises BmcError."""
    deadline = clock.now() + seconds
    while True:
        try:
            found = bmc.state()
        except BmcError as error:
            found = f"unknown: {error}"
        if found == state:
            return
        if clock.now() >= deadline:
            raise BmcError(f"the power is {found!r} after {seconds:.0f} s, and should be {state!r}")
        clock.sleep(POLL_SECONDS)


def cycle(bmc: Bmc, action: str, pause: float, seconds: float, clock: Clock) -> str:
    """Power-cycle (`cycle`) or reset (`reset`) a machine. Returns the state that it was in before. Raises BmcError.

    A cycle takes the power away for `pause` seconds: a GPU that has fallen off its bus needs that, a reset leaves it
    where it is. A machine that is off is switched on, in either case.
    """
    before = bmc.state()
    if before not in STEADY:
        raise BmcError(f"the power is {before!r}: nothing was done. Look at the BMC's own page")
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
