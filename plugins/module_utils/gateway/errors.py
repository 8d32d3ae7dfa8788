# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors as OpenAI's API writes them, so that clients' libraries understand the gateway. Private to the collection."""

from __future__ import annotations

import json
from dataclasses import dataclass

RETRY_SECONDS = 10
"""Value of Retry-After if no engine can take the request, in seconds."""


@dataclass(frozen=True)
class ApiError:
    """An error answer. With `computed`, `message` may hold log-format expressions of HAProxy, and `lf-string` writes
    it."""

    status: int
    code: str
    message: str
    type: str = "invalid_request_error"
    headers: tuple[tuple[str, str], ...] = ()
    computed: bool = False

    @property
    def body(self) -> str:
        error = {"message": self.message, "type": self.type, "param": None, "code": self.code}
        return json.dumps({"error": error}, ensure_ascii=False)

    def directive(self) -> str:
        """The part of `http-request return` or `http-error` that describes the answer."""
        headers = "".join(f' hdr {name} "{value}"' for name, value in self.headers)
        kind = "lf-string" if self.computed else "string"
        return f"status {self.status} content-type application/json {kind} {quoted(self.body)}{headers}"


def quoted(text: str) -> str:
    """A quoted word of HAProxy's configuration, in which only `lf-string` evaluates expressions."""
    # A single quote cannot stand within single quotes, so it goes between two quoted words. Source: manual, 2.2.
    return "'" + text.replace("'", "'\"'\"'") + "'"


WAIT = (("Retry-After", str(RETRY_SECONDS)),)

NO_KEY = ApiError(
    401,
    "invalid_api_key",
    "The API key is missing or unknown. Send it as: Authorization: Bearer KEY",
    headers=(("WWW-Authenticate", "Bearer"),),
)
FOREIGN_CLIENT = ApiError(403, "address_not_allowed", "This address may not use the gateway.", "permission_error")
NO_RIGHT = ApiError(403, "model_not_allowed", "This API key may not use that model.", "permission_error")
REFUSED = ApiError(
    403,
    "key_refused",
    "This API key is refused for another %[var(txn.refused_seconds)] seconds: it had requests in flight at several"
    " deaths of engines within an hour. Do not repeat these requests. The operator of the gateway has their ids.",
    "permission_error",
    (("Retry-After", "%[var(txn.refused_seconds)]"),),
    computed=True,
)
NO_PATH = ApiError(404, "unknown_url", "There is nothing at this path.")
NO_MODEL = ApiError(
    400, "model_missing", "The body must be a JSON object with the name of a model under the key model."
)
NO_FORM_MODEL = ApiError(
    400, "model_missing", "The form must have the name of a model in its field model, and at most 64 fields."
)
MODEL_TWICE = ApiError(
    400,
    "model_twice",
    "The request must name its model once. In JSON: one key model, and no key with a backslash. In a form: one field"
    " model, and no part with a backslash or an asterisk in its headers, or with headers of more than 1024 bytes.",
)
WRONG_TASK = ApiError(
    400,
    "wrong_task",
    "The model %[var(txn.model),json(utf8s)] does not answer at this path. %[var(txn.wrong_task)]",
    computed=True,
)
TOO_MANY_AT_ONCE = ApiError(
    429,
    "concurrency_limit_exceeded",
    "This API key has too many requests in flight. Wait for one to end.",
    "rate_limit_error",
    (("Retry-After", "1"),),
)
TOO_MANY = ApiError(
    429,
    "rate_limit_exceeded",
    "This API key has sent too many requests within a minute.",
    "rate_limit_error",
    (("Retry-After", "60"),),
)
NO_SET = ApiError(404, "unknown_set", "This gateway has no such replica set.")
OLD_PROCESS = ApiError(
    503,
    "old_process",
    "A reload has replaced this process, so it no longer checks engines. Repeat the request on another connection.",
    "server_error",
    (("Retry-After", "0"),),
)
BUSY = ApiError(503, "engines_busy", "All engines of this model are busy. Try again.", "overloaded_error", WAIT)

# Answers of HAProxy itself, in place of its HTML pages. Source: manual, "http-error".
BUILT_IN = (
    ApiError(400, "bad_request", "This is not a valid HTTP request."),
    ApiError(408, "request_timeout", "The request did not arrive in time."),
    ApiError(500, "internal_error", "The gateway failed.", "server_error"),
    ApiError(502, "engine_failed", "The engine failed while it worked on this request.", "server_error"),
    ApiError(503, "no_engine", "No engine of this model can take the request. Try again.", "overloaded_error", WAIT),
    ApiError(504, "engine_timeout", "The engine did not answer in time.", "server_error"),
)


def wrong_method(allowed: str) -> ApiError:
    """405, with the allowed method."""
    return ApiError(405, "method_not_allowed", f"Use {allowed} at this path.", headers=(("Allow", allowed),))


def too_large(mebibytes: int, kind: str = "body") -> ApiError:
    """413, with the limit in MiB of this kind of body."""
    return ApiError(413, "request_too_large", f"The {kind} is larger than {mebibytes} MiB.")
