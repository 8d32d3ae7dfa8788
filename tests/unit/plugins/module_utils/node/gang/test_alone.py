# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An instance on one node asks no gang. test_supervisor.py has such instances."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.module_utils.node.events import Events
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang.alone import Alone
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang.orders import RUN


def test_nothing_is_waited_for() -> None:
    with Events() as events, Alone().over(events) as alone:
        assert alone.gather()
        alone.engine_ready()
        alone.stop()
        alone.empty(60.0)
        alone.engine_ended("by itself")
        assert alone.order().engine == RUN and alone.poll is None
