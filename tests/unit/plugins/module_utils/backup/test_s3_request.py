# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signatures. The first is an example of Amazon S3's API reference; a real server checks them in molecule/backup."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.backup import s3_request

MOMENT = datetime(2013, 5, 24, tzinfo=UTC)
KEY = {
    "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
}


def test_the_signature_of_amazons_example_is_the_published_one() -> None:
    url = "https://examplebucket.s3.amazonaws.com/?lifecycle"
    found = s3_request.headers("GET", url, KEY, "us-east-1", MOMENT)
    assert found["Authorization"] == (
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
        " SignedHeaders=host;x-amz-content-sha256;x-amz-date,"
        " Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
    )
    assert (found["host"], found["x-amz-date"]) == ("examplebucket.s3.amazonaws.com", "20130524T000000Z")


def test_each_part_of_a_request_changes_the_signature() -> None:
    def signature(method: str = "DELETE", url: str = "http://s:9000/b/a", region: str = "eu-1", **more: str) -> str:
        found = s3_request.headers(method, url, {**KEY, **more}, region, MOMENT)
        assert KEY["AWS_SECRET_ACCESS_KEY"] not in str(found)
        return found["Authorization"].rpartition("=")[2]

    others = {
        signature(method="GET"),
        signature(url="http://s:9000/b/c"),
        signature(url="http://s:9001/b/a"),
        signature(url="http://s:9000/b/a?versionId=null"),
        signature(region="eu-2"),
        signature(AWS_SECRET_ACCESS_KEY="another"),
        signature(AWS_SESSION_TOKEN="token"),
    }
    assert len(others) == 7 and signature() not in others
    with pytest.raises(KeyError):
        s3_request.headers("GET", "http://s/b", {}, "eu-1", MOMENT)
