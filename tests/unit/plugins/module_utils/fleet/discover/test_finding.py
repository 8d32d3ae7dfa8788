# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables, findings and questions of a proposal."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover.finding import Proposal, Variable


def test_a_question_names_variable_and_file() -> None:
    found = Proposal()
    found.ask("common_disks", "host_vars/gpu-01/main.yml", "which?")
    assert str(found.questions[0]) == "common_disks (host_vars/gpu-01/main.yml): which?"


def test_a_merged_proposal_has_everything_of_the_other_proposal() -> None:
    one, two = Proposal(), Proposal(findings=["a line"])
    two.add("a", 1, "why")
    two.ask("b", "here", "which?")
    one.merge(two)
    assert one == two and one.variables == [Variable("a", 1, "why")]
