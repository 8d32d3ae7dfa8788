# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The certificate of a node that is a gateway, too."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor import gateway
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor.check import OK, WARN, CannotTell

from .conftest import host


def found(root: Path, settings: dict[str, Any], days: float | None = None) -> Any:
    state = root / "var/lib/inference/gateway.json"
    state.parent.mkdir(parents=True, exist_ok=True)
    state.write_text(json.dumps({"schema": 1, "settings": settings}))
    end = datetime.now(UTC) + timedelta(days=days or 0, hours=1)
    text = "nothing" if days is None else f"notBefore=Nov  1 00:00:00 2026 GMT\nnotAfter={end:%b %d %H:%M:%S %Y} GMT\n"
    return gateway.certificate(host(root, {"openssl": Outcome(0, text)}))


def test_a_node_without_a_gateway_is_ok(tmp_path: Path) -> None:
    assert gateway.certificate(host(tmp_path)).status == OK


def test_plain_http_is_pending_until_gateway_tls_is_none(tmp_path: Path) -> None:
    # A gateway of an earlier version recorded no form.
    for settings in ({"tls": False}, {"tls": False, "tls_form": "kept"}):
        result = found(tmp_path, settings)
        assert (
            result.status == WARN
            and result.message.startswith("gateway_tls is pending")
            and "docs/tls.md" in result.action
        )
    assert found(tmp_path, {"tls": False, "tls_form": "none"}).status == OK


@pytest.mark.parametrize(
    ("days", "status", "words"), [(60, OK, "in 60 days"), (9, WARN, "in 9 days"), (-3, WARN, "3 days ago")]
)
def test_a_certificate_that_ends_soon_or_has_ended_is_a_warning(
    tmp_path: Path, days: float, status: str, words: str
) -> None:
    result = found(tmp_path, {"tls": True, "tls_form": "ca"}, days)
    assert (result.status, words in result.message) == (status, True), result


def test_a_certificate_that_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    with pytest.raises(CannotTell, match="notAfter"):
        found(tmp_path, {"tls": True})


@pytest.mark.parametrize("text", ["[]", "{", '{"settings": 7}'])
def test_a_damaged_record_of_the_gateway_is_unknown(tmp_path: Path, text: str) -> None:
    found(tmp_path, {})
    (tmp_path / "var/lib/inference/gateway.json").write_text(text)
    with pytest.raises(CannotTell, match=r"gateway\.json is damaged") as raised:
        gateway.certificate(host(tmp_path))
    assert raised.value.action == "remove this file, and run baremetal.inference.site"
