# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A model in a repository of a hub. The hub's client in the engine's image fetches it, in a container that continues
after the waiting process has ended. Private to the collection."""

from __future__ import annotations

import fnmatch
import http
import http.client
import json
import os
import time
import urllib.error
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from .remote import Remote
from .transfer import Progress, TransferError, ask

Run = Callable[[list[str]], tuple[int, str, str]]
"""Runs a command: exit code, output, errors."""

LEFT_OUT = (
    "original/*",
    "metal/*",
    "onnx/*",
    "openvino/*",
    "*.gguf",
    "*.onnx",
    "*.pth",
    "*.pt",
    "*.h5",
    "*.msgpack",
    "*.ot",
)
"""Files for other programs, which contain the same weights as the safetensors."""

PICKLED = "*.bin"
"""Pickled weights, left out if the repository has safetensors."""

TOKEN_IN_CONTAINER = "/run/hub-token"

FETCHER = 65534
"""The user and group of the client's process: Debian's nobody, which owns no files elsewhere. The client reads what a
stranger sends, so it does not run as root."""

CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
"""The certificates that the node trusts, with a site's own authority (Debian, ca-certificates)."""

PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


@dataclass(frozen=True)
class Hub:
    """A hub's address, and the token for requests; without a token, requests are anonymous."""

    endpoint: str
    token: str = ""


def sizes(remote: Remote, hub: Hub) -> dict[str, int]:
    """The wanted files of a repository with their sizes in bytes. Raises TransferError.

    Source: the hub's API, GET /api/models/ID/revision/COMMIT with blobs=true.
    """
    url = f"{hub.endpoint.rstrip('/')}/api/models/{remote.location}/revision/{remote.digest}?blobs=true"
    headers = {"Authorization": f"Bearer {hub.token}"} if hub.token else {}
    try:
        with ask(url, headers) as answer:
            listed = {str(each["rfilename"]): int(each["size"]) for each in json.load(answer)["siblings"]}
    except urllib.error.HTTPError as error:
        raise TransferError(f"{remote.location}: {_refusal(error.code, hub)}") from None
    except (OSError, http.client.HTTPException, KeyError, TypeError, ValueError) as error:
        raise TransferError(f"{remote.location}: the hub {hub.endpoint} does not answer as expected: {error}") from None
    patterns = excluded(listed)
    return {file: size for file, size in listed.items() if not any(fnmatch.fnmatch(file, each) for each in patterns)}


def ask_file(remote: Remote, hub: Hub, file: str, first: int, last: int) -> bytes:
    """The bytes of a file from `first` to before `last`, fewer if the file is shorter. Raises TransferError.

    Source: huggingface_hub, constants.py, HUGGINGFACE_CO_URL_TEMPLATE.
    """
    url = f"{hub.endpoint.rstrip('/')}/{remote.location}/resolve/{remote.digest}/{quote(file)}"
    headers = {"Authorization": f"Bearer {hub.token}"} if hub.token else {}
    try:
        with ask(url, {**headers, "Range": f"bytes={first}-{last - 1}"}) as answer:
            if answer.status != http.HTTPStatus.PARTIAL_CONTENT:
                # The server ignores the range and sends the whole file: skip the bytes before `first`.
                answer.read(first)
            return bytes(answer.read(last - first))
    except urllib.error.HTTPError as error:
        raise TransferError(f"{remote.location}, {file}: {_refusal(error.code, hub)}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        where = f"{remote.location}, {file}"
        raise TransferError(f"{where}: the hub {hub.endpoint} does not answer as expected: {error}") from None


def _refusal(code: int, hub: Hub) -> str:
    if code in (401, 403):
        has = "with the token of model_store_hub_token" if hub.token else "without a token (model_store_hub_token)"
        return f"the hub refuses the request ({code}) {has}: correct name or token, or accept the model's licence"
    if code == 404:
        return f"the hub {hub.endpoint} has no such model or revision (404): correct model or revision"
    return f"the hub {hub.endpoint} answers {code}: try again later"


def excluded(files: Mapping[str, int]) -> list[str]:
    """Patterns of the files that engines do not read."""
    return [*LEFT_OUT, *([PICKLED] if any(file.endswith(".safetensors") for file in files) else [])]


def container(remote: Remote) -> str:
    """The name of the container that fetches a repository."""
    return f"inference-fetch-{remote.key}"


class Download:
    """The client's container for one repository."""

    def __init__(self, run: Run, docker: str, image: str, remote: Remote, endpoint: str, target: Path) -> None:
        self._run = run
        self._docker = docker
        self._image = image
        self._remote = remote
        self._endpoint = endpoint
        self._target = target
        self.token_file: Path | None = None
        """A file of mode 0600."""
        self.name = container(remote)

    def fetch(self, files: Mapping[str, int], seconds: float) -> Progress:
        """Run the client for `seconds` or until all files have arrived. A client that failed is started again.

        Raises TransferError if the client does not start, or fails and no byte arrived.
        """
        started = time.monotonic()
        total, before = sum(files.values()), held(self._target)
        reason, done = "", False
        while time.monotonic() - started < seconds:
            state, code = self._state()
            if state == "running":
                time.sleep(1)
                continue
            if state != "none":
                # A container that did not start stays in the state created.
                done, reason = (state, code) == ("exited", 0), self._last_words()
                self._call("rm", "--force", self.name)
                if done:
                    break
                time.sleep(2)
            self._start(files)
        have = held(self._target)
        if not done and have <= before and reason:
            raise TransferError(
                f"{self._remote.location}: no byte arrived in {seconds:.0f} s: {reason}; run again to go on"
            )
        return Progress(total if done else min(have, total), total, have - before, time.monotonic() - started, done)

    def _state(self) -> tuple[str, int]:
        code, output, _errors = self._call("inspect", "--format", "{{.State.Status}} {{.State.ExitCode}}", self.name)
        if code != 0:
            return "none", 0
        status, _space, exit_code = output.strip().partition(" ")
        return ("running" if status in ("running", "restarting", "paused") else status), int(exit_code or 0)

    def _last_words(self) -> str:
        _code, output, errors = self._call("logs", "--tail", "20", self.name)
        lines = [line.strip() for line in f"{output}\n{errors}".splitlines() if line.strip()]
        shown = [line for line in lines if "rror" in line] or lines
        return shown[-1] if shown else "the client printed no message"

    def _start(self, files: Mapping[str, int]) -> None:
        self._target.mkdir(parents=True, exist_ok=True)
        # Find out before the download whether root can later take the files back from the client's user.
        give(self._target, 0)
        # The directory may have files that a client of an earlier version has fetched as root.
        give(self._target, FETCHER)
        if self.token_file:
            give(self.token_file, FETCHER)
        options = [
            *("run", "--detach", "--name", self.name, "--pull", "never", "--network", "host", "--cap-drop", "ALL"),
            *("--security-opt", "no-new-privileges", "--read-only", "--tmpfs", "/tmp"),
            *("--user", f"{FETCHER}:{FETCHER}", "--env", "HOME=/tmp", "--env", "USER=nobody"),
            *("--env", f"HF_ENDPOINT={self._endpoint}", "--env", "HF_HOME=/tmp/hf", "--env", "HF_HUB_OFFLINE=0"),
            *("--env", "HF_HUB_DISABLE_TELEMETRY=1", "--env", "HF_HUB_DISABLE_PROGRESS_BARS=1", "--env", "NO_COLOR=1"),
            # Without a value, Docker passes this process's variable on.
            *(part for name in PROXIES if name in os.environ for part in ("--env", name)),
            f"--mount=type=bind,source={self._target},target=/model",
        ]
        if self.token_file:
            mount = f"--mount=type=bind,source={self.token_file},target={TOKEN_IN_CONTAINER},readonly"
            options += ["--env", f"HF_TOKEN_PATH={TOKEN_IN_CONTAINER}", mount]
        if CERTIFICATES.is_file():
            mount = f"--mount=type=bind,source={CERTIFICATES},target={CERTIFICATES},readonly"
            options += ["--env", f"SSL_CERT_FILE={CERTIFICATES}", mount]
        # By the module's name, because not every image has the command `hf` in its path.
        client = ["--entrypoint", "python3", self._image, "-m", "huggingface_hub.cli.hf", "download"]
        patterns = [f"--exclude={pattern}" for pattern in excluded(files)]
        asked = [self._remote.location, "--revision", self._remote.digest, "--local-dir", "/model", *patterns]
        code, _output, errors = self._call(*options, *client, *asked)
        if code != 0:
            raise TransferError(f"the hub's client does not start: {errors.strip()}; correct this, then run again")

    def _call(self, *arguments: str) -> tuple[int, str, str]:
        return self._run([self._docker, *arguments])


def give(path: Path, owner: int) -> None:
    """Make a user and its group the owner of a file, or of a directory with all that is in it. Links are not followed.

    Only root can do this: another user, as in tests, changes nothing. Raises TransferError if the file system refuses
    root, and OSError.
    """
    if os.geteuid() != 0:
        return
    try:
        os.lchown(path, owner, owner)
        for directory, subdirectories, names in os.walk(path):
            for name in (*subdirectories, *names):
                os.lchown(os.path.join(directory, name), owner, owner)
    except PermissionError as error:
        raise TransferError(
            f"{path}: root cannot change the owner of a file: {error.strerror}. An NFS server refuses this with the"
            " option root_squash: export the store with no_root_squash, then run again"
        ) from error


def held(target: Path) -> int:
    """Bytes that have arrived, including those of incomplete files."""
    total = 0
    for directory, _subdirectories, names in os.walk(target):
        for name in names:
            try:
                # At most the size of its blocks: the client may create a file at full size before the content arrives.
                total += min((found := os.lstat(os.path.join(directory, name))).st_size, found.st_blocks * 512)
            except FileNotFoundError:
                continue
    return total


def needed(files: Mapping[str, int], target: Path) -> int:
    """Bytes that have not arrived yet."""
    return max(0, sum(files.values()) - held(target))
