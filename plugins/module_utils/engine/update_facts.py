# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The release that an instance runs, the release that it must run, and what the node lacks. Private to the
collection."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from ..core import commands
from ..core.docker_api import Docker, DockerError, DockerUnavailable
from ..core.paths import Paths
from . import argument_check, bridge_place, bridges, endpoints, environment, load_time, prepare
from .instance_facts import BridgeFacts, UpdateFacts
from .inventory import bridge_name
from .state import drains, gangs, history, install_state, pins, releases, swaps


class Facts:
    """Compares the releases that instances run with those that they must run."""

    def __init__(self, paths: Paths, docker: Docker, given: dict[str, Any], now: datetime, check_mode: bool) -> None:
        self.check_mode = check_mode
        self.paths = paths
        self.docker = docker
        self.given = given
        self.now = now

    def of(self, name: str) -> UpdateFacts:
        """The facts of one instance. Raises ReleaseError, SystemdError, OSError, and ValueError where its state is
        damaged."""
        active = releases.active_number(self.paths, name)
        if self.given["rollback"] and gangs.follows(self.paths, name):
            return self.following(name, active)
        swap = swaps.read(self.paths, name)
        origin = swap.origin if swap else active
        target = self.target(name, active)
        drain = drains.read(self.paths, name, self.now)
        # An update that was cut off before the swap has left only its drain.
        interrupted = swap is not None or (drain is not None and drain.owner == drains.UPDATE)
        model, runs, problems = self.check(name, target)
        known = history.last(self.paths, name, target) if target else None
        due = target is not None and (active != target or interrupted)
        # In check mode, a target that is not on the node has no files, so the image is not asked.
        if self.given["ask_engine"] and due and target and not problems and not known and runs:
            problems = self.refused(name, target)
        return UpdateFacts(
            name=name,
            model=model,
            runs=runs,
            origin=origin,
            target=target,
            due=due,
            interrupted=interrupted,
            serving=install_state.serving(self.paths, name, self.now),
            load_seconds=(known and known.load_seconds) or self.load_seconds(name, active, target),
            drained_by=drain.owner if drain else "",
            drained_until=(drain.until or "") if drain else "",
            bridge=self.bridge(name, origin, target if due and not problems else None),
            problems=tuple(problems),
            coming=None if gangs.follows(self.paths, name) else self.coming(name, origin, target if due else None),
            gang=self.gang(name, target, active),
        )

    def following(self, name: str, active: int | None) -> UpdateFacts:
        """The facts of a follower before a rollback. The leader's facts have the target. Raises SystemdError."""
        serving = install_state.serving(self.paths, name, self.now)
        none = BridgeFacts(name=bridge_name(name), port=None, problem="it spans several nodes")
        facts = UpdateFacts(name, "", "", active, active, False, False, serving, None, "", "", none, ())
        return replace(facts, gang=self.gang(name, active))

    def gang(self, name: str, *numbers: int | None) -> tuple[str, ...]:
        """The members of the gang, by the first of these releases that can be read; empty if there is no gang."""
        for number in numbers:
            with contextlib.suppress(releases.ReleaseError):
                if number is not None:
                    return releases.load(self.paths, name, number).nodes
        return ()

    def bridge(self, name: str, origin: int | None, target: int | None) -> BridgeFacts:
        """The bridge of an instance. Whether the bridge fits is checked only for a swap that is due.

        Raises OSError, and ValueError where the instance's state is damaged.
        """
        port, left = bridges.declared_port(self.paths, name), bridges.left(self.paths, name)
        place = bridge_place.Place(problem=bridges.NO_PORT if port is None else "it is not due")
        staged = target in releases.numbers(self.paths, name)
        if origin is not None and target is not None and staged:
            try:
                place = bridges.place(self.paths, name, origin, target, port)
            except releases.ReleaseError as error:
                place = bridge_place.Place(problem=str(error))
        elif port is not None and origin is not None and target is not None:
            # In check mode, the release is not on the node, and its bridge may fit.
            place = bridge_place.Place()
        return BridgeFacts(
            name=bridge_name(name),
            port=port,
            gpus=place.gpus,
            left=left,
            certain=staged,
            problem=place.problem,
        )

    def target(self, name: str, active: int | None) -> int | None:
        if self.given["rollback"]:
            desired = releases.desired_number(self.paths, name)
            return self.given["release"] or history.back_target(self.paths, name, active, desired)
        number = self.given["targets"].get(name)
        return int(number) if number is not None else pins.wanted_number(self.paths, name)

    def check(self, name: str, target: int | None) -> tuple[str, str, list[str]]:
        """The target's model, the words of `runs` (model, revision, image), and why the target cannot run."""
        if target is None:
            rollback = "there is no earlier release to go back to: inferctl releases shows those that are kept"
            return "", "", [f"{name}: {rollback}"] if self.given["rollback"] else []
        if self.check_mode and target not in releases.numbers(self.paths, name):
            # The real run stages this release first.
            return self.unstaged(name).get("model", ""), "", []
        try:
            release = releases.load(self.paths, name, target)
            releases.verify(self.paths, name, target)
            missing = prepare.missing(release, self.docker)
        except (releases.ReleaseError, DockerError, DockerUnavailable) as error:
            return "", "", [f"{name}: {error}"]
        runs = f"{release.model} {release.revision} {release.image}"
        return release.model, runs, [f"{name}: {problem}" for problem in missing]

    def coming(self, name: str, origin: int | None, target: int | None) -> endpoints.Endpoint | None:
        """The target's endpoint, if it differs from the endpoint of the release that runs; else None.

        None also if the target is not on the node yet, as in check mode. Raises OSError.
        """
        runs, comes = (endpoints.of(self.paths, name, [number]) for number in (origin, target))
        return comes[0] if comes and comes != runs else None

    def unstaged(self, name: str) -> dict[str, Any]:
        """The facts that check mode has of a target that is not on the node."""
        return {item["name"]: item for item in self.given["unstaged"]}.get(name, {})

    def load_seconds(self, name: str, active: int | None, target: int | None) -> float | None:
        """How many seconds a target that has not served yet may load; None where unknown. Raises SystemdError."""
        seconds = load_time.seconds(name)
        if seconds is None or active is None or target is None:
            return seconds
        try:
            before = releases.load(self.paths, name, active).model_path
            if target in releases.numbers(self.paths, name):
                after = releases.load(self.paths, name, target).model_path
            else:
                after = self.unstaged(name).get("model_path", before)
        except releases.ReleaseError:
            return None
        # In check mode, the model may not be fetched yet: expect the same size.
        if self.check_mode and not Path(after).exists():
            return seconds
        return load_time.of_another(seconds, Path(before), Path(after))

    def refused(self, name: str, target: int) -> list[str]:
        """Why the engine refuses the target's arguments. Raises ReleaseError and OSError."""
        file = self.paths.release(name, target) / releases.ENV_FILE
        release = releases.load(self.paths, name, target)
        check = release.adapter.argument_check
        outcome = commands.run(argument_check.argv("docker", release, str(file)), check.seconds + 30)
        if outcome.code is None:
            return []
        reason = argument_check.refusal(check, outcome.code, outcome.stdout + outcome.stderr)
        shown = environment.mask(reason, environment.secrets(environment.read_file(file)))
        return [f"{name}: the engine refuses the arguments of release {target}: {shown}"] if reason else []
