# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service whose files a test declares, on a machine below a temporary root."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import systemd
from ansible_collections.baremetal.inference.plugins.module_utils.debian import service_files
from ansible_collections.baremetal.inference.plugins.module_utils.debian.service_files import (
    Link,
    Part,
    ServiceError,
    ServiceFiles,
    remove,
)

UNIT = "some.service"


class Machine:
    """systemd, dpkg and the journal."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.active, self.enabled, self.up = True, True, True
        self.fails: set[str] = set()
        self.conffiles = ""
        self.journal = "noise\nit broke\n"
        self.calls: list[str] = []

    def run_command(self, argv: list[str], **_options: Any) -> tuple[int, str, str]:
        if argv[0] == "dpkg-query":
            return 0, self.conffiles, ""
        if argv[0] == "journalctl":
            assert f"--unit={UNIT}" in argv
            return 0, self.journal, ""
        if argv[0] == "check":
            text = Path(argv[1]).read_text()
            return (0, "", "") if "good" in text else (3, "", f"{argv[1]}: line 1 is bad" if text else "")
        verb = argv[1]
        if verb in ("is-active", "is-enabled"):
            return int(not (self.active if verb == "is-active" else self.enabled)), "", ""
        self.calls.append(" ".join(argv[1:]).removesuffix(f" {UNIT}"))
        return (1, "", f"no {verb}") if verb in self.fails else (0, "", "")


class Service(ServiceFiles):
    """A service with a configuration, a drop-in, a link and a secret."""

    units = (UNIT,)

    def __init__(self, machine: Machine, texts: dict[str, str], action: str, **params: Any) -> None:
        module: Any = SimpleNamespace(
            params={"replace": False, **params}, check_mode=params.get("check", False), run_command=machine.run_command
        )
        super().__init__(module)
        self.machine, self.texts, self.action = machine, texts, action
        self.directory = machine.root / "etc"
        self.drop_ins = frozenset({self.directory / "drop-in"})
        self.links = frozenset({self.directory / "link"})
        self.recorded = False

    def inspect(self) -> None:
        wanted = {self.directory / name: Link(text) if name == "link" else text for name, text in self.texts.items()}
        self.compare(wanted, written=[self.directory / name for name in ("old", "link")])
        self.refuse_foreign({self.directory / "config": "some"}, "# ours", "Set replace.")
        self.read_units()
        with self.staged(self.directory) as stage:
            if why := self.refusal(["check", str(stage / "config")], stage, self.directory):
                raise ServiceError(why)

    def mode(self, path: Path) -> int:
        return 0o600 if path.name == "secret" else 0o644

    def is_noise(self, line: str) -> bool:
        return line == "noise"

    def decide(self) -> dict[str, Any]:
        self.actions = {UNIT: self.action}
        return {"changed": self.changes, "diff": self.diff()}

    def why_not_up(self, unit: str, action: str, began: float) -> str:
        return "" if self.machine.up else "it hangs"

    def record(self, result: dict[str, Any]) -> None:
        self.recorded = True


TEXTS = {"config": "# ours: good", "drop-in": "[Service]", "link": "/srv/cert", "secret": "x"}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(service_files, "POLL_SECONDS", 0.0)
    return Machine(tmp_path)


def run(machine: Machine, action: str = "none", texts: dict[str, str] | None = None, **params: Any) -> dict[str, Any]:
    machine.calls.clear()
    return Service(machine, TEXTS if texts is None else texts, action, **params).run()


def files_of(machine: Machine) -> dict[str, str]:
    found = sorted((machine.root / "etc").iterdir())
    return {path.name: str(path.readlink()) if path.is_symlink() else path.read_text() for path in found}


def test_files_are_written_and_the_service_loads_them(machine: Machine) -> None:
    machine.active = machine.enabled = False
    assert run(machine, "start", check=True)["changed"] and not (machine.root / "etc").exists()
    result = run(machine, "start")
    assert files_of(machine) == TEXTS
    assert machine.calls == ["daemon-reload", "reset-failed", "start", "enable"]
    assert (machine.root / "etc/secret").stat().st_mode & 0o777 == 0o600
    assert {entry["after"] for entry in result["diff"]} == set(TEXTS.values())
    machine.active = machine.enabled = True
    assert run(machine) == {"changed": False, "diff": []} and machine.calls == []


def test_a_file_that_is_no_longer_wanted_is_removed(machine: Machine) -> None:
    run(machine)
    (machine.root / "etc/old").write_text("from an earlier run")
    (machine.root / "etc/own").write_text("of somebody")
    assert run(machine, "reload", {"config": TEXTS["config"]})["changed"]
    assert set(files_of(machine)) == {"config", "drop-in", "own", "secret"}
    assert machine.calls == ["reset-failed", "reload"]


def test_another_mode_is_a_change(machine: Machine) -> None:
    run(machine)
    (machine.root / "etc/secret").chmod(0o644)
    assert run(machine)["changed"]
    assert (machine.root / "etc/secret").stat().st_mode & 0o777 == 0o600


def test_a_refused_configuration_changes_nothing(machine: Machine) -> None:
    run(machine)
    for text, why in (("# ours: poor", f"{machine.root}/etc/config: line 1 is bad"), ("", "exit code 3")):
        with pytest.raises(ServiceError) as caught:
            run(machine, "reload", {**TEXTS, "config": text})
        assert str(caught.value) == why
    assert files_of(machine) == TEXTS and machine.calls == []


@pytest.mark.parametrize("action", ["reload", "restart"])
def test_a_service_that_does_not_load_its_files_gets_the_old_files(machine: Machine, action: str) -> None:
    run(machine)
    machine.up = False
    wanted = {**TEXTS, "config": "# ours: also good", "link": "/srv/other"}
    with pytest.raises(ServiceError) as caught:
        run(machine, action, wanted)
    assert str(caught.value).splitlines() == [
        f"{UNIT} did not {action}. Its last log lines:",
        "it broke",
        f"The old files are back in place, and {UNIT} runs with them.",
    ]
    assert files_of(machine) == TEXTS and machine.calls == ["reset-failed", action] * 2


def test_a_service_that_does_not_load_the_old_files_either_is_reported(machine: Machine) -> None:
    run(machine)
    machine.fails, machine.journal = {"restart"}, ""
    with pytest.raises(ServiceError, match=f"(?s)did not restart.*no restart.*but {UNIT} does not run: see journalctl"):
        run(machine, "restart", {**TEXTS, "drop-in": "[Service]\nA=1"})
    assert files_of(machine) == TEXTS and machine.calls[-3:] == ["daemon-reload", "reset-failed", "restart"]


def test_an_error_while_old_files_are_restored_does_not_hide_the_first_error(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(machine)
    machine.up = False
    put = Service.put

    def full(self: Service, texts: Any) -> None:
        if texts is self.before:
            raise OSError(28, "No space left on device")
        put(self, texts)

    monkeypatch.setattr(Service, "put", full)
    with pytest.raises(ServiceError) as caught:
        run(machine, "reload", {**TEXTS, "config": "# ours: also good"})
    assert str(caught.value).splitlines() == [
        f"{UNIT} did not reload. Its last log lines:",
        "it broke",
        "Not all old files could be restored: [Errno 28] No space left on device.",
    ]
    assert machine.calls == ["reset-failed", "reload"]


def test_a_service_that_did_not_run_before_is_stopped(machine: Machine) -> None:
    run(machine)
    machine.active = machine.up = False
    with pytest.raises(ServiceError, match=r"did not start(.|\n)*not changed in this run"):
        run(machine, "start")
    assert machine.calls == ["reset-failed", "start", "stop"]


def test_the_error_of_a_failed_systemctl_is_quoted(machine: Machine) -> None:
    machine.enabled, machine.fails = False, {"enable"}
    with pytest.raises(ServiceError, match=f"systemctl enable {UNIT} failed: no enable"):
        run(machine)
    assert files_of(machine) == TEXTS


def test_a_configuration_of_other_origin_is_refused_without_replace(machine: Machine) -> None:
    path = machine.root / "etc/config"
    path.parent.mkdir()
    path.write_text("# theirs")
    with pytest.raises(ServiceError, match=f"did not write {path}. Set replace. Nothing was changed"):
        run(machine)
    digest = hashlib.md5(b"# theirs", usedforsecurity=False).hexdigest()
    machine.conffiles = f" {path} {digest}\n"
    assert run(machine)["changed"], "the package's own file is replaced"
    path.write_text("# theirs again")
    assert run(machine, replace=True)["changed"]


def test_waiting_ends_with_an_answer_or_at_the_time_limit(machine: Machine) -> None:
    service = Service(machine, TEXTS, "none")
    answers: list[bool | None] = [None, None, True, False]
    assert service.wait(lambda: answers.pop(0), 5) and answers == [False]
    assert not service.wait(lambda: answers.pop(0), 5) and answers == []
    assert not service.wait(lambda: None, 0.01)


def test_the_state_is_recorded_outside_of_check_mode(machine: Machine) -> None:
    for check in (True, False):
        service = Service(machine, TEXTS, "none", check=check)
        service.run()
        assert service.recorded is not check


# --- remove

Services = Callable[[Iterable[str]], Any]


class Fake(AnsibleModule):
    """A module that fails by an exception."""

    def __init__(self, check_mode: bool = False) -> None:
        self.check_mode = check_mode

    def fail_json(self, msg: str, **_more: Any) -> Any:
        raise RuntimeError(msg)


class Systemd:
    """A service that runs."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.state = {"LoadState": "loaded", "ActiveState": "active", "UnitFileState": "enabled"}

    def show(self, units: Iterable[str], properties: Iterable[str]) -> dict[str, dict[str, str]]:
        return {unit: {name: self.state[name] for name in properties} for unit in units}

    def systemctl(self, *words: str) -> str:
        self.calls.append(" ".join(words))
        if words[0] == "stop":
            self.state["ActiveState"] = "inactive"
        if words[0] == "disable":
            self.state["UnitFileState"] = "disabled"
        return ""


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Systemd:
    found = Systemd()
    monkeypatch.setattr(systemd, "show", found.show)
    monkeypatch.setattr(systemd, "systemctl", found.systemctl)
    return found


@pytest.fixture
def part(tmp_path: Path) -> Part:
    found = Part(
        [UNIT],
        configs=[tmp_path / "config"],
        header="# ours",
        others=[tmp_path / "some.d/drop-in", tmp_path / "link", tmp_path / "never"],
        roots=[tmp_path],
    )
    (tmp_path / "some.d").mkdir()
    for path in (found.configs[0], found.others[0]):
        path.write_text("# ours\n")
    found.others[1].symlink_to(tmp_path / "gone")
    return found


def test_a_part_is_removed_with_its_service_and_its_empty_directory(fake: Systemd, part: Part, tmp_path: Path) -> None:
    predicted = remove(Fake(check_mode=True), lambda: [part])
    assert fake.calls == [] and part.configs[0].exists()
    done = remove(Fake(), lambda: [part])
    assert done == predicted
    assert done["removed"] == [str(path) for path in (*part.others[:2], *part.configs)]
    assert done["diff"]["before"].splitlines() == done["removed"]
    assert fake.calls == [f"stop {UNIT}", f"disable {UNIT}", "daemon-reload"]
    assert list(tmp_path.iterdir()) == []
    again = remove(Fake(), lambda: [part])
    assert (again["changed"], again["stopped"], len(fake.calls)) == (False, [], 3)


def test_a_removal_that_was_cut_off_before_systemd_read_its_units_again_is_continued(
    fake: Systemd, part: Part, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(*words: str) -> str:
        if words[0] == "daemon-reload":
            raise systemd.SystemdError("systemctl was killed")
        return fake.systemctl(*words)

    with monkeypatch.context() as broken:
        broken.setattr(systemd, "systemctl", cut)
        with pytest.raises(RuntimeError, match="was killed"):
            remove(Fake(), lambda: [part])
    assert not part.others[0].exists()
    again = remove(Fake(), lambda: [part])
    assert again["removed"] == [str(part.configs[0])] and fake.calls[-1] == "daemon-reload"


def test_a_directory_with_files_of_other_origin_stays(fake: Systemd, part: Part, tmp_path: Path) -> None:
    (tmp_path / "some.d/own").write_text("x")
    remove(Fake(), lambda: [part])
    assert [path.name for path in (tmp_path / "some.d").iterdir()] == ["own"]


def test_a_part_with_a_configuration_of_other_origin_stays(fake: Systemd, part: Part) -> None:
    part.configs[0].write_text("# theirs\n")
    done = remove(Fake(), lambda: [part])
    assert (done["changed"], done["foreign"], done["removed"]) == (False, [str(part.configs[0])], [])
    assert fake.calls == [] and part.others[0].exists()


def test_a_service_that_is_not_installed_is_not_stopped(fake: Systemd, part: Part) -> None:
    fake.state.update(LoadState="not-found", ActiveState="inactive", UnitFileState="")
    assert remove(Fake(), lambda: [part])["stopped"] == [] and fake.calls == ["daemon-reload"]


def test_the_error_of_a_failed_removal_says_to_run_again(
    fake: Systemd, part: Part, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_words: str) -> str:
        raise systemd.SystemdError("stop: timed out")

    monkeypatch.setattr(systemd, "systemctl", fail)
    with pytest.raises(RuntimeError, match=r"stop: timed out\. Correct the cause, and run again"):
        remove(Fake(), lambda: [part])
    assert part.configs[0].exists()
