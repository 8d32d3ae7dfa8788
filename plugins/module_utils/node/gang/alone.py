# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes the place of a gang for the supervisor of an instance on one node. Private to the collection.

The supervisor of each instance imports this file. Only the supervisors of gangs import the channel.
"""

from __future__ import annotations

from types import TracebackType

from ..events import Events
from .orders import RUN, Order


class Alone:
    """An instance on one node: no other node decides about its engine. Use as a context manager."""

    poll: float | None = None
    """Seconds after which the order must be read again while nothing happens; None: never."""

    def over(self, events: Events) -> Alone:
        """The context in which the gang's events wake the supervisor."""
        return self

    def __enter__(self) -> Alone:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass

    def gather(self) -> bool:
        """Wait for all members. False if a stop came first."""
        return True

    def order(self) -> Order:
        """The present order for the engine."""
        return Order(RUN)

    def engine_ready(self) -> None:
        """The engine answers requests."""

    def engine_ended(self, detail: str) -> None:
        """The engine has ended."""

    def stop(self) -> None:
        """The unit is being stopped."""

    def empty(self, limit: float) -> None:
        """Keep new requests away and wait until the engine has none, for `limit` seconds at most."""
