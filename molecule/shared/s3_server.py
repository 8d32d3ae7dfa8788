# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An S3 server for the nodes, on the controller. The server is moto: all data is in memory, and every key is valid.

With policies, only their keys are valid, and moto applies the policies. The bucket then has versions and Object Lock.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MOTO = "5.2.5"
"""The version of moto."""
PORT = 5555
START_SECONDS = 60


_KEYS = """
import json, sys, boto3
asked = json.load(sys.stdin)
known = dict(endpoint_url=asked["address"], region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
s3, iam = boto3.client("s3", **known), boto3.client("iam", **known)
s3.create_bucket(Bucket=asked["bucket"], ObjectLockEnabledForBucket=True)
s3.put_bucket_versioning(Bucket=asked["bucket"], VersioningConfiguration={"Status": "Enabled"})
rule = {"DefaultRetention": {"Mode": "COMPLIANCE", "Days": 30}}
lock = {"ObjectLockEnabled": "Enabled", "Rule": rule}
s3.put_object_lock_configuration(Bucket=asked["bucket"], ObjectLockConfiguration=lock)
made = {}
for user, policy in asked["policies"].items():
    iam.create_user(UserName=user)
    iam.put_user_policy(UserName=user, PolicyName="backup", PolicyDocument=json.dumps(policy))
    made[user] = iam.create_access_key(UserName=user)["AccessKey"]
print(json.dumps({user: [key["AccessKeyId"], key["SecretAccessKey"]] for user, key in made.items()}))
"""
"""Runs with boto3 of moto's environment: makes the bucket, and a key for each policy."""


@contextmanager
def serve(host: str, bucket: str) -> Iterator[str]:
    """Run the server with an empty bucket, and yield the address of the server."""
    with _run(host, PORT) as address:
        _ask(f"{address}/{bucket}", "PUT")
        yield address


@contextmanager
def serve_policies(
    host: str, port: int, bucket: str, policies: dict[str, Any]
) -> Iterator[tuple[str, dict[str, dict[str, str]]]]:
    """Run the server with a bucket that has versions and Object Lock, and a user for each policy.

    Yields the address, and for each user the variables with the key.
    """
    with _run(host, port) as address:
        _ask(address, "GET")
        asked = json.dumps({"address": address, "bucket": bucket, "policies": policies})
        python = [str(_home() / "bin/python"), "-c", _KEYS]
        keys = json.loads(subprocess.run(python, input=asked, capture_output=True, text=True, check=True).stdout)
        # From now on, moto checks the key and the policy of every request.
        _ask(f"{address}/moto-api/reset-auth", "POST", b"0")
        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
        yield address, {user: dict(zip(names, key, strict=True)) for user, key in keys.items()}


def boto(address: str, key: dict[str, str], code: str) -> str:
    """Run Python code with boto3's client `s3` for this key; return what the code prints."""
    client = f"boto3.client('s3', endpoint_url={address!r}, region_name='us-east-1')"
    script = f"import boto3, botocore.exceptions\ns3 = {client}\n{code}"
    command = [str(_home() / "bin/python"), "-c", script]
    done = subprocess.run(command, env={**os.environ, **key}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def _home() -> Path:
    """The virtual environment of the server."""
    return Path(os.environ["INFERENCE_CACHE"]) / "moto"


@contextmanager
def _run(host: str, port: int) -> Iterator[str]:
    """Run the server; yield its address."""
    home = _home()
    # pip installs moto after its dependencies, so an installation that was cut off lacks this directory.
    if not any(home.glob(f"lib/python*/site-packages/moto-{MOTO}.dist-info")):
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        subprocess.run([home / "bin/pip", "install", "--quiet", f"moto[s3,server]=={MOTO}"], check=True)
    with (home / f"log-{port}").open("w") as log:
        process = subprocess.Popen(
            [home / "bin/moto_server", "--host", host, "--port", str(port)], stdout=log, stderr=log
        )
        try:
            yield f"http://{host}:{port}"
        finally:
            process.terminate()
            process.wait()


def _ask(url: str, method: str, body: bytes | None = None) -> None:
    """Send a request as soon as the server answers. Raises HTTPError for an error status, and OSError after
    START_SECONDS without an answer."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            request = urllib.request.Request(url, body, {"Content-Type": "text/plain"}, method=method)
            urllib.request.urlopen(request, timeout=10).close()
            return
        except urllib.error.HTTPError:
            raise
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)
