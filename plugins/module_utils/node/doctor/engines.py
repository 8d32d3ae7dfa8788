# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks the engines, the agent and recovery. Private to the collection."""

from __future__ import annotations

from datetime import UTC, datetime

from ...core import systemd
from ...core.commands import NOT_INSTALLED
from ...core.paths import AGENT_UNIT, RECOVERY_PATH, swap_unit, unit_name
from ...debian import nftables, nftables_engines
from ...engine import bridges, gate, swap_settings
from ...engine.probe import health
from ...engine.state import drains, gangs, probe_state, releases, swaps
from ..recovery import managed, models, settings, state
from ..swap import left_over, request
from .check import FAIL, OK, SYSTEMD, WARN, CannotTell, Check, Finding
from .host import TOOL_TIMEOUT, Host


def verdicts(host: Host) -> Finding:
    """The agent's verdict of each instance allows it to serve."""
    # A follower of a gang has no API: its leader's node has the verdict.
    names = [name for name in releases.names(host.paths) if not gangs.follows(host.paths, name)]
    now = datetime.now(UTC)
    fails, warns = [], []
    for name in names:
        known = probe_state.read(host.paths, name)
        if known is None or probe_state.stale(known, now):
            warns.append(f"{name}: state unknown, the agent has no recent verdict")
        elif known.verdict in health.CONDEMNED:
            fails.append(f"{name}: {known.verdict} since {known.since}: {known.detail}")
        elif known.verdict not in health.SERVING:
            warns.append(f"{name}: {known.verdict}: {known.detail}")
    if fails or warns:
        action = "inferctl status; inferctl recover" if fails else "inferctl status"
        return Finding(FAIL if fails else WARN, "; ".join([*fails, *warns]), action)
    return Finding(OK, f"{len(names)} serve" if names else "no instance on this node")


def agent(host: Host) -> Finding:
    """The agent runs: without it, no verdict can be trusted."""
    if not releases.names(host.paths):
        return Finding(OK, "does not apply: no instance on this node")
    try:
        active = systemd.active_state(AGENT_UNIT)
    except systemd.SystemdError as error:
        raise CannotTell(str(error), SYSTEMD) from error
    if active != "active":
        return Finding(
            FAIL, f"{AGENT_UNIT} is {active}", f"systemctl restart {AGENT_UNIT}; baremetal.inference.site installs it"
        )
    return Finding(OK, "runs")


def recovery(host: Host) -> Finding:
    """The path unit that waits for the agent's requests is active, and recovery has its settings."""
    anew = "run baremetal.inference.recovery, which installs it"
    try:
        found = settings.read(host.paths)
        if found is None:
            return Finding(OK, "does not apply: the role recovery is not installed")
        active = systemd.active_state(RECOVERY_PATH)
    except (OSError, ValueError, TypeError) as error:
        return Finding(FAIL, str(error), anew)
    except systemd.SystemdError as error:
        raise CannotTell(str(error), SYSTEMD) from error
    if active != "active":
        return Finding(FAIL, f"{RECOVERY_PATH} is {active}", f"systemctl restart {RECOVERY_PATH}; {anew}")
    return Finding(OK, "waits" if found.armed else "waits, and is disarmed")


def files(host: Host) -> Finding:
    """Units and environments are those with which the releases proved themselves."""
    wrong = []
    for name in releases.names(host.paths):
        try:
            wrong += [str(one) for one in managed.verify(host.paths, name)]
        except releases.ReleaseError as error:
            wrong.append(str(error))
    # The files that baremetal.inference.site writes in addition to the releases. A bridge has no such file.
    declared = [host.paths.instance(name) for name in bridges.instances(host.paths)]
    for path in (host.paths.registry, *declared) if declared else ():
        try:
            if releases.files.read_json(path) is None:
                wrong.append(f"{path} is missing")
        except (OSError, ValueError) as error:
            wrong.append(str(error))
    if wrong:
        return Finding(
            FAIL, "; ".join(wrong), "run baremetal.inference.site, which writes these files; recovery repairs units"
        )
    return Finding(OK, "unchanged since the releases proved themselves")


def weights(host: Host) -> Finding:
    """Every file of the models has its size. The contents are not compared."""
    wrong = [str(one) for release in host.releases().values() for one in models.find_damage(release)]
    if wrong:
        return Finding(
            FAIL, "; ".join(dict.fromkeys(wrong)), "run baremetal.inference.site, which copies the model; then restart"
        )
    return Finding(OK, "all files have their sizes")


def drained(host: Host) -> Finding:
    """No instance is drained, and no breaker is open. Only an operator closes a breaker."""
    now = datetime.now(UTC)
    warns = []
    for name in releases.names(host.paths):
        if state.read(host.paths, name).breaker is not None:
            warns.append(f"{name}: recovery has given up (inferctl recover {name} --reset)")
        elif drain := drains.read(host.paths, name, now):
            warns.append(f"{name}: {drain}")
    if warns:
        return Finding(WARN, "; ".join(warns), "inferctl recover; inferctl drains")
    return Finding(OK, "none")


def units(host: Host) -> Finding:
    """systemd has read the current units from disk."""
    names = releases.names(host.paths)
    try:
        shown = systemd.show(map(unit_name, names), ["NeedDaemonReload", "LoadState"])
    except systemd.SystemdError as error:
        raise CannotTell(str(error), SYSTEMD) from error
    stale = [unit for unit, found in shown.items() if found.get("NeedDaemonReload") == "yes"]
    if stale:
        return Finding(WARN, f"changed on disk since systemd read them: {', '.join(stale)}", "systemctl daemon-reload")
    return Finding(OK, "systemd has read all units")


def leftover_bridges(host: Host) -> Finding:
    """No update that was cut off has left a bridge."""
    found = bridges.unattended(host.paths, datetime.now(UTC))
    if found:
        # The node does not have the inventory, and baremetal.inference.update_model removes bridges of declared
        # instances alone.
        action = (
            "baremetal.inference.update_model removes bridges of instances that the inventory declares."
            " For other bridges, declare the instance again, or run"
            " ansible NODE -b -m baremetal.inference.engine_service -a 'names=INSTANCE_bridge state=absent'"
        )
        return Finding(WARN, f"left by an update that was cut off: {', '.join(found)}", action)
    return Finding(OK, "none")


def swapping(host: Host) -> Finding:
    """No swap is stuck, was cut off or has left something undone, and no gate is closed without a swap."""
    fails, left, closed, unknown = [], list[str](), set[int](), ""
    for name in releases.names(host.paths):
        found = swaps.read(host.paths, name)
        if found is None:
            left += [f"{name}: {words}" for words in left_over.still(host.paths, name)]
            continue
        closed |= set(found.closed_ports)
        if found.step == swaps.STUCK:
            fails.append(f"{name}: the swap to release {found.target} is stuck: {found.failure}")
        elif found.step == swaps.DAMAGED:
            fails.append(found.failure)
        elif found.step == swaps.LED:
            fails.append(f"{name}: the swap to release {found.target} was cut off")
        elif not _goes_on(name):
            fails.append(f"{name}: {swap_unit(name)} does not run, although the swap is at step {found.step}")
        else:
            closed |= _bridge_port(host, name)
    try:
        open_ = gate.closed() - closed
    except gate.NotInstalled:
        # A node without nftables has no gate. A swap there reports that before it begins.
        open_ = set()
    except gate.GateError as error:
        open_, unknown = set(), str(error)
    if fails:
        return Finding(FAIL, "; ".join(fails), "inferctl status; then inferctl swap NAME --to RELEASE")
    if unknown:
        raise CannotTell(f"whether a gate is closed without a swap is unknown: {unknown}", "nft list ruleset")
    if open_:
        ports = ", ".join(map(str, sorted(open_)))
        return Finding(
            FAIL,
            f"the gate of port {ports} is closed, but no swap is under way",
            f"nft delete element {GATES} {{ {ports} }}",
        )
    if releases.names(host.paths):
        try:
            swap_settings.read(host.paths)
        except swap_settings.NoSettings as error:
            return Finding(WARN, str(error), "run baremetal.inference.site")
    if left:
        return Finding(WARN, "; ".join(left), "inferctl swap NAME --to RELEASE")
    return Finding(OK, "none is stuck")


def _goes_on(name: str) -> bool:
    """Whether the unit that performs a swap is active. Raises CannotTell."""
    try:
        return request.runs(name)
    except systemd.SystemdError as error:
        raise CannotTell(str(error), SYSTEMD) from error


def _bridge_port(host: Host, name: str) -> set[int]:
    """The bridge's port of an instance. A swap closes the gate of this port before it removes the bridge."""
    try:
        port = bridges.declared_port(host.paths, name)
    except (OSError, ValueError):
        return set()
    return set() if port is None else {port}


def confined(host: Host) -> Finding:
    """The rules about connections that engines open are loaded."""
    directory = host.root / nftables.DIRECTORY.lstrip("/") / nftables.ENGINES
    # A file of the operator may have a comment that is not UTF-8: nft accepts it.
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in directory.glob("*.nft")]
    wanted = {user for text in texts if nftables.is_ours(text) for user in nftables_engines.users(text)}
    if not wanted:
        return Finding(OK, "does not apply: no rules about connections that engines open")
    chain = ["nft", "--stateless", "list", "chain", "inet", nftables.TABLE, nftables.CHAIN_OF_ENGINES]
    outcome = host.run(chain, TOOL_TIMEOUT)
    if outcome.failure not in (None, NOT_INSTALLED):
        raise CannotTell(outcome.message, f"run as root: {' '.join(chain)}")
    # Without the program, or without the chain, no rule is loaded.
    free = wanted - nftables_engines.users(outcome.stdout)
    if free:
        users = ", ".join(map(str, sorted(free)))
        return Finding(
            FAIL,
            f"the rules about connections that engines open are not loaded for user {users}",
            "systemctl reload nftables; baremetal.inference.site writes the rules",
        )
    return Finding(OK, "engines open only declared connections")


GATES = f"inet {gate.TABLE} closed"

CHECKS = (
    Check("engine-verdicts", verdicts),
    Check("engine-agent", agent),
    Check("engine-recovery", recovery),
    Check("engine-files", files),
    Check("engine-models", weights),
    Check("engine-drains", drained),
    Check("engine-bridges", leftover_bridges),
    Check("engine-units", units),
    Check("engine-swaps", swapping),
    Check("engine-firewall", confined),
)
