# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter site_default."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.baremetal.inference.plugins.filter.defaults import FilterModule
from ansible_collections.baremetal.inference.plugins.module_utils.core import defaults

site_default = FilterModule().filters()["site_default"]


def test_a_variable_has_the_shared_value() -> None:
    assert site_default("vllm_agent_port") == defaults.AGENT_PORT
    assert {site_default(name) for name in defaults.BY_VARIABLE} == set(defaults.BY_VARIABLE.values())


def test_an_unknown_variable_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        AnsibleFilterError, match=r"'gateway_prot' has no shared default; known: common_user, .*gateway_port"
    ):
        site_default("gateway_prot")
