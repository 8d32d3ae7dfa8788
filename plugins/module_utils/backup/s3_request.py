# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signs requests to an S3 server by AWS Signature Version 4. Private to the collection; pure.

Nodes have no library for S3. Source of the form: Amazon S3's API reference, "Authenticating Requests (AWS Signature
Version 4)".
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from urllib.parse import parse_qsl, quote, urlsplit

KEY, SECRET, TOKEN = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"
"""Variables with the credentials."""

_NOTHING = hashlib.sha256(b"").hexdigest()


def headers(method: str, url: str, credentials: Mapping[str, str], region: str, moment: datetime) -> dict[str, str]:
    """The headers of a request without a body. The URL's path is percent-encoded. `moment` is in UTC.

    Raises KeyError without credentials.
    """
    parts = urlsplit(url)
    day, stamp = moment.strftime("%Y%m%d"), moment.strftime("%Y%m%dT%H%M%SZ")
    signed = {"host": parts.netloc, "x-amz-content-sha256": _NOTHING, "x-amz-date": stamp}
    if credentials.get(TOKEN):
        signed["x-amz-security-token"] = credentials[TOKEN]
    names = ";".join(sorted(signed))
    query = "&".join(
        f"{quote(name, safe='')}={quote(value, safe='')}"
        for name, value in sorted(parse_qsl(parts.query, keep_blank_values=True))
    )
    lines = [f"{name}:{signed[name]}" for name in sorted(signed)]
    request = "\n".join([method, parts.path or "/", query, *lines, "", names, _NOTHING])
    scope = f"{day}/{region}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(request.encode()).hexdigest()])
    key = f"AWS4{credentials[SECRET]}".encode()
    for word in (day, region, "s3", "aws4_request"):
        key = hmac.new(key, word.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    authorization = (
        f"AWS4-HMAC-SHA256 Credential={credentials[KEY]}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return {**signed, "Authorization": authorization}
