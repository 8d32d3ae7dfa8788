# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors as OpenAI's API writes them."""

from __future__ import annotations

import json
from pathlib import Path

from ansible_collections.baremetal.inference.plugins.module_utils.gateway import errors
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.errors import BUILT_IN, quoted


def test_a_quote_stays_a_quote() -> None:
    assert quoted('it\'s {"a"}') == "'it'\"'\"'s {\"a\"}'"


def test_haproxys_own_errors_have_the_form_of_the_api() -> None:
    for error in BUILT_IN:
        assert set(json.loads(error.body)["error"]) == {"message", "type", "param", "code"}


def test_an_error_is_written_as_arguments_of_a_haproxy_rule() -> None:
    directive = errors.TOO_MANY.directive()
    assert directive.startswith("status 429 content-type application/json string '{") and directive.endswith(
        ' hdr Retry-After "60"'
    )
    computed = errors.ApiError(404, "gone", "%[var(txn.model)] is gone", computed=True)
    assert " lf-string " in computed.directive()


def test_two_models_are_refused_with_every_cause() -> None:
    for words in ("one key model", "no key with a backslash", "one field model", "an asterisk", "1024 bytes"):
        assert words in errors.MODEL_TWICE.message
    lua = Path(errors.__file__).with_name("gateway.lua").read_text(encoding="utf-8")
    assert "LONGEST_HEADERS = 1024\n" in lua


def test_an_error_names_what_is_allowed() -> None:
    refused = errors.wrong_method("POST")
    assert (refused.status, refused.headers) == (405, (("Allow", "POST"),)) and "Use POST" in refused.body
    assert errors.too_large(8).status == 413 and "The body is larger than 8 MiB." in errors.too_large(8).body
    assert "The request with audio is larger than 25 MiB." in errors.too_large(25, "request with audio").body
