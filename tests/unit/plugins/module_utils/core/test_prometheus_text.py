# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of metrics are summed over labels. Labels may have any characters."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.prometheus_text import samples


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("made 5", {"made": 5.0}),
        ('made{name="a b} c",engine="0"} 5.0', {"made": 5.0}),
        ('made{engine="0"} 2\nmade{engine="1"} 3\nread 1 1767225600000', {"made": 5.0, "read": 1.0}),
        ("# made 7\nmade NaN\nmade five\nother 3", {}),
    ],
)
def test_wanted_samples_are_found(text: str, found: dict[str, float]) -> None:
    assert samples(text, {"made", "read"}) == found
