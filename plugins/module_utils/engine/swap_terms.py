# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a swap may do, and what a release must pass. Private to the collection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..core import defaults
from ..core.records import known

FORCE, ALLOW_DOWNTIME = "force", "allow_downtime"
"""The terms that permit what a swap otherwise refuses. Each caller has its own option for each term."""


@dataclass(frozen=True)
class Terms:
    """The terms of a swap. The defaults are those of role `update`; engine/swap_settings.py has those of a node."""

    drain_seconds: int = defaults.SWAP_DRAIN_SECONDS
    """How long requests in flight may take to end."""
    watch_seconds: int = defaults.SWAP_WATCH_SECONDS
    """How long a release is watched before the release counts as proven."""
    speed_bound: float = defaults.SWAP_SPEED_BOUND
    """The least tokens per second of a single request, as a share of the release before; 0: do not judge the speed."""
    watch_speed_bound: float = defaults.SWAP_WATCH_SPEED_BOUND
    """The least speed under the clients' load while the release is watched, as a share of the release before."""
    error_share: float = defaults.SWAP_ERROR_SHARE
    """The share of a watched release's requests that may fail."""
    force: bool = False
    """Whether requests are cut off that do not end within `drain_seconds`. Requests to an engine that hangs are then
    cut off earlier: ILL_SECONDS (node/swap/traffic.py)."""
    allow_downtime: bool = False
    """Whether a replica set may be without any engine during the swap."""
    vouched: bool = False
    """Whether the caller has checked that other engines of the replica set serve. Counts only if no gateway
    answers."""

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Terms:
        """Terms from the form of to_dict(). Keys of another version are left out. Raises TypeError, ValueError."""
        given = known(cls, value)
        default = cls()
        try:
            return cls(**{key: type(getattr(default, key))(each) for key, each in given.items()})
        except OverflowError as error:
            # JSON may have Infinity.
            raise ValueError(str(error)) from error

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
