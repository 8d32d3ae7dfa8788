# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the ladder stands on: files and their repair, the lock, evidence, alerts, requests, and what is remembered."""

from __future__ import annotations

import http.server
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instances import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Rendered, render
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Settings as ReleaseSettings
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import releases
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.drains import format_time
from ansible_collections.baremetal.inference.plugins.module_utils.models.manifest import File, Manifest
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery import (
    actions,
    alerts,
    evidence,
    gpus,
    managed,
    models,
    requests,
    settings,
    state,
)
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.settings import Settings
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.state import Breaker, State, Step
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored import StoredModel

NOW = datetime(2026, 5, 4, 3, 0, tzinfo=UTC)

KEY = "s3cret-key-of-the-engine"


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """A node with one proven instance, whose environment holds a key."""
    paths = Paths(tmp_path)
    model = tmp_path / "models/tiny-a"
    model.mkdir(parents=True)
    instance = Instance(name="main", model="tiny-a", port=5005, accelerator="cpu")
    given = ReleaseSettings(environment={"VLLM_API_KEY": KEY})

    def rendered(number: int) -> Rendered:
        return render(instance, [], StoredModel(str(model), "r"), "image", given, number=number)

    releases.stage(paths, "main", rendered(0).release.id, rendered, pytest.fail)
    releases.activate(paths, "main", 1)
    releases.commit(paths, "main", 1)
    return paths


# --- managed files


def test_an_intact_instance_has_nothing_wrong(paths: Paths) -> None:
    assert managed.verify(paths, "main") == []
    assert managed.verify(paths, "nobody") == []


def change(path: Path) -> None:
    path.write_text("[Service]\nExecStart=/bin/false\n")


def empty(path: Path) -> None:
    path.write_text("")


def open_up(path: Path) -> None:
    path.chmod(0o666)


@pytest.mark.parametrize("which", ["unit", "env"])
@pytest.mark.parametrize("hurt", [change, empty, Path.unlink, open_up])
def test_an_installed_file_is_repaired_and_the_wrong_one_kept(
    paths: Paths, which: str, hurt: Callable[[Path], None]
) -> None:
    path = getattr(paths, which)("main")
    good, mode = path.read_bytes(), path.stat().st_mode
    hurt(path)
    wrong = managed.verify(paths, "main")
    assert [one.path for one in wrong] == [path]
    found = path.read_bytes() if path.exists() else None
    told = managed.repair(paths, "main", wrong, NOW)
    assert len(told) == 1 and str(path) in told[0]
    assert path.read_bytes() == good and path.stat().st_mode == mode
    assert managed.verify(paths, "main") == []
    if found is not None:
        (aside,) = paths.aside("main").iterdir()
        assert aside.read_bytes() == found and aside.stat().st_mode & 0o777 == 0o600


def test_a_release_is_repaired_from_what_is_installed(paths: Paths) -> None:
    copy = paths.release("main", 1) / releases.ENV_FILE
    good = copy.read_bytes()
    copy.write_text("VLLM_API_KEY=other\n")
    wrong = managed.verify(paths, "main")
    assert [one.path for one in wrong] == [copy]
    managed.repair(paths, "main", wrong, NOW)
    assert copy.read_bytes() == good


def test_what_has_no_sound_copy_is_said_to_be_beyond_repair(paths: Paths) -> None:
    (paths.release("main", 1) / releases.ENV_FILE).write_text("X=1\n")
    paths.env("main").write_text("Y=1\n")
    wrong = managed.verify(paths, "main")
    assert wrong and all(one.source is None for one in wrong)
    assert managed.repair(paths, "main", wrong, NOW) == []
    assert paths.env("main").read_text() == "Y=1\n"


def test_without_checksums_the_releases_own_copy_counts(paths: Paths) -> None:
    paths.known_good("main").write_text("{")
    assert managed.verify(paths, "main") == []
    change(paths.unit("main"))
    assert [one.path for one in managed.verify(paths, "main")] == [paths.unit("main")]


def test_a_damaged_release_is_named(paths: Paths) -> None:
    (paths.release("main", 1) / releases.RELEASE_FILE).write_text("{}")
    (wrong,) = managed.verify(paths, "main")
    assert "release.json" in str(wrong) and wrong.source is None


def test_a_link_that_leads_nowhere_is_set_again(paths: Paths) -> None:
    paths.active("main").unlink()
    managed.repair(paths, "main", managed.verify(paths, "main"), NOW)
    assert releases.active_number(paths, "main") == 1


# --- the model


def test_a_truncated_model_file_is_named(paths: Paths) -> None:
    release = releases.load(paths, "main", 1)
    root = Path(release.model_path)
    assert models.damage(release) == []
    (root / "model.safetensors").write_bytes(b"12345678")
    (root / "manifest.json").write_text(json.dumps(Manifest({"model.safetensors": File(8, "ab")}, 4).to_dict()))
    assert models.damage(release) == []
    os.truncate(root / "model.safetensors", 5)
    (found,) = models.damage(release)
    assert str(found) == f"{root}/model.safetensors has 5 bytes instead of 8"
    (root / "model.safetensors").unlink()
    assert "cannot be read" in str(models.damage(release)[0])


# --- evidence


def test_evidence_is_without_secrets_and_prompts_and_rotated(paths: Paths) -> None:
    said = {
        "-t": f"INFO got key {KEY}\nINFO Received request cmpl-1: prompt: 'my medical history', params: x\nlast words",
        "-u": "unit words",
    }

    def run(command: Sequence[str], _timeout: float) -> Outcome:
        if command[0] == "journalctl":
            return Outcome(0, said[command[-2]])
        if command[0] == "nvidia-smi":
            return Outcome(None, failure="not_installed", message="nvidia-smi is not installed")
        return Outcome(0, f"Environment={KEY}")

    for minute in range(4):
        where = evidence.capture(paths, "main", NOW + timedelta(minutes=minute), None, 2, run, paths.root)
    kept = sorted(paths.evidence("main").iterdir())
    assert len(kept) == 2 and kept[-1] == where
    assert sorted(path.name for path in where.iterdir()) == ["engine.log", "probe.json", "unit.log", "unit.txt"]
    everything = "".join(path.read_text() for path in where.iterdir())
    assert KEY not in everything and "medical" not in everything
    assert "last words" in everything
    assert {path.stat().st_mode & 0o777 for path in where.iterdir()} == {0o600}


def test_the_processes_of_a_container_are_told_with_their_states() -> None:
    text = evidence.processes(os.getpid())
    assert any(line.split()[0] == str(os.getpid()) for line in text.splitlines()[1:])
    assert evidence.processes(None) == ""


# --- alerts


class Receiver(http.server.BaseHTTPRequestHandler):
    got: list[tuple[str, Any]]
    status = 200

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        type(self).got.append((self.path, json.loads(body)))
        self.send_response(type(self).status)
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def receiver() -> Iterator[type[Receiver]]:
    handler = type("OneReceiver", (Receiver,), {"got": [], "status": 200})
    server = http.server.HTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    handler.url = f"http://127.0.0.1:{server.server_port}"  # type: ignore[attr-defined]
    yield handler
    server.shutdown()
    server.server_close()


ALERT = alerts.Alert("gpu7", "main", "hung", "3 faults", "2026-05-04T03:00:00Z", ["one step"], "/var/x")


def test_every_channel_gets_an_alert_once(receiver: Any, tmp_path: Path) -> None:
    mails = []

    def run(command: Sequence[str], _timeout: float, *, stdin: str = "") -> Outcome:
        mails.append((command, stdin))
        return Outcome(0)

    given = Settings(webhook=f"{receiver.url}/hook?key=hidden", mail_to="ops@example.org", alertmanager=receiver.url)
    sent = alerts.send(given, ALERT, {}, NOW, run)
    assert sent == {"webhook": "sent", "mail": "sent", "alertmanager": "sent"}
    assert alerts.send(given, ALERT, sent, NOW, run) == sent
    assert [path for path, _body in receiver.got] == ["/hook?key=hidden", "/api/v2/alerts"]
    hook, manager = (body for _path, body in receiver.got)
    assert (hook["instance"], hook["verdict"], hook["event"]) == ("main", "hung", "recovery-gave-up")
    assert manager[0]["labels"]["alertname"] == "InferenceRecoveryGaveUp"
    assert manager[0]["labels"]["scope"] == "fleet" and manager[0]["labels"]["instance_name"] == "main"
    # Nobody sends it again: it must not end by itself after minutes.
    assert manager[0]["startsAt"] == ALERT.since and manager[0]["endsAt"] == "2026-06-03T03:00:00Z"
    ((command, mail),) = mails
    # A unit of its own: what delivers outlives the step.
    assert command[:2] == ["systemd-run", "--quiet"] and "--property=KillMode=process" in command
    assert command[-3:] == ["sendmail", "-t", "-i"] and "To: ops@example.org" in mail and "--reset" in mail


def test_a_channel_that_fails_is_tried_again_and_tells_no_secret(receiver: Any) -> None:
    receiver.status = 500
    given = Settings(webhook=f"{receiver.url}/hook?key=hidden", mail_to="ops@example.org")

    def run(command: Sequence[str], _timeout: float, *, stdin: str = "") -> Outcome:
        return Outcome(None, failure="not_installed", message="sendmail is not installed")

    sent = alerts.send(given, ALERT, {}, NOW, run)
    assert sent["webhook"] == "failed: HTTP 500" and "not installed" in sent["mail"]
    receiver.status = 200
    assert alerts.send(given, ALERT, sent, NOW, run)["webhook"] == "sent"
    wrong = alerts.send(Settings(webhook="file:///etc/passwd"), ALERT, {}, NOW, run)
    assert wrong["webhook"].startswith("failed: only http")


@pytest.mark.parametrize(
    "address",
    [
        "http://ops:s3cret@127.0.0.1/hook",
        "http://s3cret@127.0.0.1/hook",
        "http://127.0.0.1:s3cret/hook",
        "http://127.0.0.1/hook s3cret",
        "http://[s3cret/hook",
        "s3cret",
    ],
)
def test_an_address_that_cannot_be_used_is_never_repeated(address: str) -> None:
    """A user and password would end in the journal: urllib takes them for a port."""
    assert not alerts.usable(address)
    sent = alerts.send(Settings(webhook=address, alertmanager=address), ALERT, {}, NOW)
    assert set(sent.values()) == {f"failed: {alerts.NO_ADDRESS}"}


def test_what_is_no_http_server_ends_no_step() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            connection, _address = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

        threading.Thread(target=greet, daemon=True).start()
        sent = alerts.send(Settings(webhook=f"http://127.0.0.1:{server.getsockname()[1]}/"), ALERT, {}, NOW)
    assert sent["webhook"].startswith("failed: ")


def test_an_alert_is_taken_back_from_alertmanager(receiver: Any) -> None:
    given = Settings(alertmanager=receiver.url)
    alerts.send(given, ALERT, {}, NOW)
    assert alerts.resolve(given, ALERT.host, ALERT.instance, ALERT.since, NOW + timedelta(hours=2)) == "sent"
    fired, resolved = (body[0] for _path, body in receiver.got)
    assert (fired["labels"], fired["startsAt"]) == (resolved["labels"], resolved["startsAt"])
    assert resolved["endsAt"] == "2026-05-04T05:00:00Z"


def test_nobody_is_told_where_no_channel_is_set() -> None:
    assert alerts.send(Settings(), ALERT, {}, NOW) == {}


# --- requests


def test_the_agent_asks_not_too_often_and_only_where_recovery_is(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    asks = requests.Requests(paths)
    asks.ask("main")
    assert not paths.recovery_requests.exists()
    files.write_json(paths.recovery_settings, Settings().to_json())
    asks.ask("main")
    asked = paths.recovery_requests / "main"
    asked.unlink()
    asks.ask("main")
    assert not asked.exists()
    asks.settled("main")
    asks.ask("main")
    (paths.recovery_requests / "gone").write_text("")
    started = []
    monkeypatch.setattr(systemd, "systemctl", lambda *arguments: started.append(arguments))
    assert requests.dispatch(paths) == ["main"]
    assert started == [("start", "--no-block", "inference-recovery@main.service")]
    assert list(paths.recovery_requests.iterdir()) == []


# --- memory


def test_a_state_survives_its_file_and_a_damaged_one_is_none(paths: Paths) -> None:
    known = State("main", breaker=Breaker("x", "y", {"mail": "sent"}), steps=(Step("t", "restart", "hung", "r", "o"),))
    state.write(paths, known)
    assert state.read(paths, "main") == known
    for text in ("{", "[]", '{"schema": 1, "steps": [{"oops": 1}]}', '{"schema": 1, "breaker": 7}'):
        paths.recovered("main").write_text(text)
        assert state.read(paths, "main") == State("main")


def test_a_full_disk_makes_nothing_forget(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    known = State("main", steps=(Step("t", "restart", "hung", "r", "o"),), total=1)
    real = files.write

    def full(path: Path, *arguments: Any) -> bool:
        if paths.state in path.parents:
            raise OSError(28, "No space left on device")
        return real(path, *arguments)

    monkeypatch.setattr(files, "write", full)
    state.write(paths, known)
    assert state.read(paths, "main") == known
    monkeypatch.setattr(files, "write", real)
    state.write(paths, State("main", total=2))
    assert state.read(paths, "main") == State("main", total=2)


def test_deaths_count_for_an_hour(paths: Paths) -> None:
    for minutes in (70, 50, 10):
        state.died(paths, "main", format_time(NOW - timedelta(minutes=minutes)))
    assert state.deaths(paths, "main", NOW) == 2
    paths.deaths("main").write_text("7")
    assert state.deaths(paths, "main", NOW) == 0


def test_settings_survive_their_file(paths: Paths) -> None:
    assert settings.read(paths) is None
    wanted = Settings(budget=5, webhook="https://example.org/x")
    files.write_json(paths.recovery_settings, wanted.to_json())
    assert settings.read(paths) == wanted


# --- GPUs


LOG = """\
[  10.0] NVRM: Xid (PCI:0000:1b:00): 95, pid=1, uncontained
[  20.0] NVRM: Xid (PCI:0000:9d:00): 79, pid=1, GPU has fallen off the bus.
[  30.0] NVRM: Xid (PCI:0000:1b:00): 31, pid=2
"""


def test_xids_count_for_the_gpus_of_the_instance_since_their_reset() -> None:
    assert gpus.asked_for(LOG, {"0000:1b:00.0"}, 0)[0] == "reset"
    assert gpus.asked_for(LOG, {"0000:1b:00.0"}, 15)[0] == "application"
    assert gpus.asked_for(LOG, {"0000:9d:00.0"}, 0) == (
        "reboot",
        "XID 79 of GPU 0000:9d:00.0: the GPU has fallen off the bus",
    )
    assert gpus.asked_for("", {"0000:1b:00.0"}, 0) == ("none", "")


def test_clients_of_a_gpu_are_stopped_for_its_reset_and_come_back_whatever_happens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[tuple[str, ...]] = []
    monkeypatch.setattr(systemd, "systemctl", lambda *arguments: calls.append(arguments))
    monkeypatch.setattr(systemd, "active_state", lambda unit: "active" if "persistenced" in unit else "inactive")

    def run(command: Sequence[str], _timeout: float) -> Outcome:
        calls.append(tuple(command))
        return Outcome(1, "GPU 00000000:1B:00.0 is currently in use by another process.")

    with pytest.raises(actions.ActError, match="in use"):
        actions.reset_gpus([{"pci_bus_id": "0000:1b:00.0"}], run)
    assert [call[0] for call in calls] == ["stop", "nvidia-smi", "start"]
    assert "--id=0000:1b:00.0" in calls[1]
