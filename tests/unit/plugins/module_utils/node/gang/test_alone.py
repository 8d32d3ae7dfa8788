# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The supervisor of an instance on one node waits for no gang. test_supervisor.py tests such supervisors."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.module_utils.node.events import Events
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang.alone import Alone
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang.orders import RUN


def test_an_instance_on_one_node_waits_for_nothing() -> None:
    with Events() as events, Alone().over(events) as alone:
        assert alone.gather()
        alone.engine_ready()
        alone.stop()
        alone.empty(60.0)
        alone.engine_ended("by itself")
        assert alone.order().engine == RUN and alone.poll is None
