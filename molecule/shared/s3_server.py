# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An S3 server for the nodes, on this machine. The server is moto: all data is in memory, and every key is valid."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MOTO = "moto[s3,server]==5.2.5"
PORT = 5555
START_SECONDS = 60


@contextmanager
def serve(host: str, bucket: str) -> Iterator[str]:
    """Run the server with an empty bucket, and yield the address of the server."""
    home = Path(os.environ["INFERENCE_CACHE"]) / "moto"
    if not (home / "bin/moto_server").exists():
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        subprocess.run([home / "bin/pip", "install", "--quiet", MOTO], check=True)
    address = f"http://{host}:{PORT}"
    with (home / "log").open("w") as log:
        process = subprocess.Popen(
            [home / "bin/moto_server", "--host", host, "--port", str(PORT)], stdout=log, stderr=log
        )
        try:
            _make(f"{address}/{bucket}")
            yield address
        finally:
            process.terminate()
            process.wait()


def _make(bucket: str) -> None:
    """Make a bucket as soon as the server answers. Raises OSError after START_SECONDS without an answer."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            urllib.request.urlopen(urllib.request.Request(bucket, method="PUT"), timeout=10).close()
            return
        except urllib.error.HTTPError:
            raise
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)
