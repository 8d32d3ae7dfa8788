# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands `inferctl rdma apply`, `check`, `show` and `judge`. Private to the collection."""

# pylint: disable=ansible-bad-function  # a command, which prints
from __future__ import annotations

import argparse
import errno
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...core import commands, files
from ...core.commands import Outcome
from ...core.paths import Paths
from ...engine.state import drains
from ...hardware.rdma import nccl_tests, perftest
from ...hardware.rdma_settings import boot, machine, rails, units
from ...hardware.rdma_settings.desired import Desired
from ...hardware.rdma_settings.variables import ETHERNET, packet_size
from .command import FAILED, OK, UNCLEAR, UsageError, fail, wait_seconds

SCHEMA = 1

TOOL_TIMEOUT = 30.0
"""Limit for each program, in seconds: ifup of a rail may wait for the link."""


def add(parsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command `rdma` with its own commands."""
    command = parsers.add_parser(
        "rdma",
        help="apply, check or show the settings of the RDMA rails",
        description="The settings of the RDMA rails that baremetal.inference.site has recorded.",
    )
    inner = command.add_subparsers(dest="rdma_command", metavar="COMMAND", required=True)
    one = inner.add_parser(
        "apply",
        help="(called at boot) make all settings that differ; 1 if one fails, or a device is missing; 4 if one cannot "
        "be set on this machine",
    )
    one.add_argument(
        "--wait", type=wait_seconds, default=0.0, metavar="S", help="wait for missing devices, in seconds (default: 0)"
    )
    one.add_argument(
        "--force", action="store_true", help="also make settings that stop the traffic of a rail that engines use"
    )
    _json(one)
    one.set_defaults(run=_apply)
    one = inner.add_parser(
        "check", help="compare the settings with the rails; 1 if one differs, or a device is missing"
    )
    _json(one)
    one.set_defaults(run=_check)
    one = inner.add_parser("show", help="show the ports, and which of them are rails")
    _json(one)
    one.set_defaults(run=_show)
    one = inner.add_parser("judge", help="what a result of perftest or nccl-tests means; 1 if it is bad, 4 if unknown")
    one.add_argument(
        "file",
        type=Path,
        help="the file of ib_write_bw or ib_write_lat with --out_json --report_gbits, or the output of these programs, "
        "or of nccl-tests such as all_reduce_perf",
    )
    one.set_defaults(run=_judge)


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(command: Sequence[str]) -> Outcome:
    """Run a program within the limit."""
    return commands.run(command, TOOL_TIMEOUT)


def _recorded(paths: Paths) -> Desired:
    try:
        wanted = boot.read(paths)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if wanted is None:
        raise UsageError(
            "no rails are recorded on this node: set the variables of the role rdma, and run baremetal.inference.site"
        )
    return wanted


def _apply(options: argparse.Namespace, paths: Paths) -> int:
    wanted = _recorded(paths)
    facts = boot.wait_for_devices(paths.root, wanted, run, options.wait)
    with boot.alone(paths) as stale:
        if stale:
            facts = boot.gather(paths.root, run)
        now = datetime.now(UTC)
        busy = [] if options.force else machine.serving(run, lambda name: drains.is_drained(paths, name, now))
        report = boot.settle(paths.root, wanted, facts, run, bool(busy))
        boot.record_waiting(paths, report)
    if options.json:
        print(json.dumps({"schema": SCHEMA, **report.as_dict(), "serving": busy}, indent=2))
    else:
        for change in report.changes:
            print(change)
        for change in report.pending:
            print(f"waits until {', '.join(busy)} is drained: {change}")
        _print_rest(wanted, report)
    for failure in report.failures:
        fail(failure, FAILED)
    if report.failures or report.missing:
        return FAILED
    return units.CANNOT_BE_SET if report.unknown else OK


def _check(options: argparse.Namespace, paths: Paths) -> int:
    wanted = _recorded(paths)
    facts = boot.gather(paths.root, run)
    report = boot.settle(paths.root, wanted, facts, run, busy=False, check=True)
    if options.json:
        print(json.dumps({"schema": SCHEMA, **report.as_dict()}, indent=2))
    else:
        for change in report.changes:
            print(change)
        _print_rest(wanted, report)
        if not (report.changes or report.missing or report.unknown):
            print(f"rails with all recorded settings: {len(wanted.rails)}")
    return FAILED if report.changes or report.missing else OK


def _print_rest(wanted: Desired, report: boot.Report) -> None:
    for line in boot.absent(wanted, report):
        print(line)
    for line in report.unknown:
        print(f"cannot be set: {line}")


def _show(options: argparse.Namespace, paths: Paths) -> int:
    try:
        wanted = boot.read(paths)
    except ValueError as error:
        raise UsageError(str(error)) from error
    facts = boot.gather(paths.root, run)
    numbers = {rail.key: number for number, rail in enumerate(wanted.rails if wanted else ())}
    ports = [_port(port, numbers.get(port.key)) for port in rails.ports(facts)]
    if options.json:
        recorded = [asdict(rail) for rail in wanted.rails] if wanted else []
        print(json.dumps({"schema": SCHEMA, "ports": ports, "recorded": recorded}, indent=2))
    elif not ports:
        print("no RDMA device on this node")
    else:
        for port in ports:
            rail = f"rail {port['rail']}" if port["rail"] is not None else "no rail"
            addresses = ", ".join(port["addresses"]) or "no address"
            gid = "" if port["gid_index"] is None else f", GID index {port['gid_index']}"
            print(
                f"{port['name']}: {rail}; {port['link_layer'] or 'unknown'}, {port['state'] or 'unknown'}, "
                f"{port['rate'] or 'unknown rate'}; {port['netdev'] or 'no network device'}, MTU "
                f"{port['mtu'] or 'unknown'}, packets of {port['mtu_active'] or 'unknown'} bytes; {addresses}{gid}; "
                f"nearest GPUs {', '.join(port['gpus']) or 'unknown'} ({port['distance'] or 'unknown'})"
            )
    return OK


def _judge(options: argparse.Namespace, paths: Paths) -> int:
    try:
        text = files.text(options.file)
        if text is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        report = _read(text)
    except ValueError as error:
        raise UsageError(f"{options.file}: {error}") from error
    except OSError as error:
        raise UsageError(f"{options.file}: {error.strerror}") from error
    found = rails.ports(boot.gather(paths.root, run))
    verdict: perftest.Verdict | nccl_tests.Verdict
    if isinstance(report, nccl_tests.Report):
        what = report.test or "nccl-tests"
        verdict = nccl_tests.judge(report, *_together(paths, found))
    else:
        what = report.device or "unknown device"
        limits = [limit for port in found if port.device == report.device and (limit := _possible(port, report.mtu))]
        # The file does not name the port of a device with several ports.
        verdict = perftest.judge(report, max(limits, default=None))
    words = {True: "good", False: "bad", None: "unknown"}[verdict.good]
    print(f"{what}: {words}: {verdict.message}")
    return {True: OK, False: FAILED, None: UNCLEAR}[verdict.good]


def _read(text: str) -> perftest.Report | nccl_tests.Report:
    """The report in a text of either program. Raises ValueError."""
    try:
        return perftest.read(text)
    except ValueError as error:
        try:
            return nccl_tests.read(text)
        except ValueError:
            message = f"{error}. Results of nccl-tests are also read; this file has none"
            raise ValueError(message) from None


def _together(paths: Paths, found: Sequence[rails.Port]) -> tuple[float | None, int]:
    """What all rails can carry together, in GB/s, None if unknown; and how many GPUs use the rails. Without recorded
    rails, all active ports count."""
    try:
        wanted = boot.read(paths)
    except ValueError as error:
        raise UsageError(str(error)) from error
    keys = {rail.key for rail in wanted.rails} if wanted else {port.key for port in found if port.active}
    chosen = [port for port in found if port.key in keys]
    limits = [_possible(port, None) for port in chosen]
    known = [limit for limit in limits if limit is not None]
    # A GPU uses the rails that are nearest.
    near = {gpu for port in chosen for gpu in port.device_facts["nearest_gpus"] or ()}
    gpus = min(len(near), len(chosen)) or 1
    return (sum(known) / 8 if known and len(known) == len(limits) == len(keys) else None), gpus


def _possible(port: rails.Port, mtu: int | None) -> float | None:
    """What a port can carry, in Gb/s; None if unknown. `mtu`: the size of a test's packets, None if unknown."""
    rate, layer, size = port.facts["rate_gbps"], port.facts["link_layer"], mtu or port.facts["mtu_active"]
    if not size and port.layer == ETHERNET and port.facts["netdev_mtu"]:
        size = packet_size(port.facts["netdev_mtu"])
    if not rate or not size or layer not in perftest.HEADERS:
        return None
    return perftest.possible(rate, size, layer, port.device_facts.get("pcie"))


def _port(port: rails.Port, rail: int | None) -> dict[str, Any]:
    """The data of a port, as `show` prints it."""
    facts, device = port.facts, port.device_facts
    return {
        "name": port.name,
        "key": port.key,
        "rail": rail,
        "link_layer": port.layer,
        "state": facts["state"],
        "rate": facts["rate_text"],
        "netdev": port.netdev,
        "mtu": facts["netdev_mtu"],
        "mtu_active": facts["mtu_active"],
        "addresses": list(facts["netdev_addresses"] or ()),
        "gid_index": facts["recommended_gid_index"],
        "gpus": list(device["nearest_gpus"] or ()),
        "distance": device["nearest_gpu_distance"],
        "pcie": device["pcie"],
        "dma_buf": device["dma_buf"],
    }
