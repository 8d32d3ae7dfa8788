# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module firewall with a fake of nft that has one table: rules are predicted, tried, confirmed and refused."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian import nftables
from ansible_collections.baremetal.inference.plugins.module_utils.debian.ssh_session import Login
from ansible_collections.baremetal.inference.plugins.modules import firewall

from .conftest import RunModule

WEB: dict[str, Any] = {"allow": [{"name": "web", "port": 80}]}
OTHER: dict[str, Any] = {"allow": [{"name": "web", "port": 81}]}
OURS = (f"table inet {nftables.TABLE}", f"delete table inet {nftables.TABLE}")


class Kernel(firewall.Node):
    """A node with fakes of nft, systemctl and systemd-run."""

    table: str | None = None
    service = ("disabled", "inactive")
    others: dict[str, str]
    refused = ""
    """Rules with this text are refused by nft."""
    broken = ""
    """A command with these words fails."""
    timer_first = False
    """Whether the timer ends the trial just before another caller of the rollback script does."""
    calls: list[str]

    def __init__(self) -> None:
        """Takes no arguments: the fixture replaces firewall.Node by a function that returns this node."""

    def run(self, *command: str, text: str | None = None) -> tuple[int, str]:
        words = " ".join(command)
        if self.broken and self.broken in words:
            return 1, "broken"
        if "list table inet" in words and command[0] != "unshare":
            return (1, "No such file or directory") if self.table is None else (0, self.table)
        if command[:2] == ("systemctl", "show"):
            enabled, active = self.service
            units = {firewall.SERVICE: active, **dict.fromkeys(nftables.OTHERS, "inactive"), **self.others}
            blocks = (
                f"Id={name}\nActiveState={state}\nUnitFileState={enabled if name == firewall.SERVICE else 'disabled'}\n"
                for name, state in units.items()
            )
            return 0, "\n".join(blocks)
        if command[0] == "/bin/sh":
            if self.timer_first:
                (firewall.RUN / "trial.json").unlink()
            if not (firewall.RUN / "trial.json").exists():
                return 0, ""
            self.load((firewall.RUN / "old.nft").read_text())
            (firewall.RUN / "trial.json").unlink()
            self.calls.append("roll back")
            return 0, "The new rules were not confirmed: the old firewall is back."
        if "-f" in command or command[0] == "unshare":
            given = text if command[-1] == "-" or text else Path(command[-1]).read_text()
            if self.refused and self.refused in str(given):
                return 1, f"syntax error near {self.refused}"
            if command[0] == "unshare":
                return 0, self.listing_of(str(given)) or ""
            if "--check" not in command:
                self.load(str(given))
            return 0, ""
        self.calls.append(words)
        if command[:2] == ("systemctl", "enable"):
            self.service = ("enabled", self.service[1])
        if command[:2] == ("systemctl", "start"):
            self.service = (self.service[0], "active")
        return 0, ""

    @staticmethod
    def listing_of(text: str) -> str | None:
        return "\n".join(line for line in text.splitlines() if line not in OURS).strip() or None

    def load(self, text: str) -> None:
        self.table = self.listing_of(text)

    def default_main(self) -> bool:
        return False


class Firewall:
    """The module firewall on a node with this kernel."""

    def __init__(self, kernel: Kernel, run_module: RunModule) -> None:
        self.kernel, self.run_module = kernel, run_module

    def __call__(self, check: bool = False, **params: Any) -> dict[str, Any]:
        return self.run_module(firewall, check, **params)

    def armed(self) -> bool:
        """Whether a trial is under way, and a timer will load the old rules."""
        timers = [call for call in self.kernel.calls if firewall.TIMER in call]
        return (firewall.RUN / "trial.json").exists() and timers[-1].startswith("systemd-run")

    @property
    def port(self) -> int:
        """The port of the rules that run; 0 without any."""
        table = self.kernel.table or ""
        return next((port for port in (80, 81) if f"proto-dst {port} accept" in table), 0)


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_module: RunModule) -> Firewall:
    kernel = Kernel()
    kernel.calls, kernel.others = [], {}
    paths = {
        "MAIN": "etc/nftables.conf",
        "PARTS": "etc/nftables.d",
        "DROP_IN": "etc/drop-in.conf",
        "NFT": "usr/sbin/nft",
        "PROC": "proc",
        "INTERFACES": "sys/class/net",
        "UFW": "etc/ufw.conf",
        "RUN": "run/firewall",
    }
    for name, path in paths.items():
        monkeypatch.setattr(firewall, name, tmp_path / path)
    for directory in ("etc/nftables.d", "usr/sbin", "proc/net", "sys/class/net"):
        (tmp_path / directory).mkdir(parents=True)
    firewall.NFT.touch()
    monkeypatch.setattr(firewall, "Node", lambda: kernel)
    # These tests may run in an SSH session.
    monkeypatch.setattr(firewall.ssh_session, "login", lambda: None)
    return Firewall(kernel, run_module)


def test_check_mode_predicts_the_changes_and_the_second_run_changes_nothing(node: Firewall) -> None:
    predicted = node(check=True, **WEB)
    assert (predicted["changed"], node.port, firewall.MAIN.exists()) == (True, 0, False)
    done = node(**WEB)
    assert (done["differs"], done["ssh_ports"], node.port) == (predicted["differs"], [22], 80)
    assert node.kernel.service == ("enabled", "active") and "systemctl daemon-reload" in node.kernel.calls
    assert "flushes every table" in firewall.DROP_IN.read_text()
    again = node(**WEB)
    assert (again["changed"], again["differs"]) == (False, [])


def test_the_address_of_this_runs_session_must_be_let_in(node: Firewall, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = {"ssh_sources": ["192.0.2.0/24"]}
    monkeypatch.setattr(firewall.ssh_session, "login", lambda: Login("admin", "203.0.113.9", 22))
    refused = node(check=True, **elsewhere)
    assert refused["failed"] and "does not have 203.0.113.9" in refused["msg"]
    # A file of the site may let the address in.
    foreign = firewall.PARTS / "70-vpn.nft"
    foreign.write_text("ip saddr 203.0.113.0/24 tcp dport 22 accept\n")
    assert node(check=True, **elsewhere)["changed"]
    foreign.unlink()
    monkeypatch.setattr(firewall.ssh_session, "login", lambda: Login("admin", "UNKNOWN", 65535))
    assert node(check=True, **elsewhere)["changed"]


def test_unloaded_rules_are_loaded_again(node: Firewall) -> None:
    node(**WEB)
    node.kernel.table = None
    assert "is not loaded" in node(**WEB)["differs"][0]
    assert node.port == 80


def test_a_trial_loads_the_rules_and_writes_no_file_before_it_is_confirmed(node: Firewall) -> None:
    node(**WEB)
    before = {path: path.read_text() for path in firewall.PARTS.iterdir()}
    assert node(phase="trial", **OTHER)["changed"]
    assert (node.port, node.armed()) == (81, True)
    assert {path: path.read_text() for path in firewall.PARTS.iterdir()} == before
    for phase in ("confirm", "rollback"):
        assert node(phase=phase, check=True)["changed"] and node.armed() and node.port == 81
    assert node(phase="confirm")["changed"]
    assert (node.port, node.armed(), node(**OTHER)["changed"]) == (81, False, False)
    for phase in ("confirm", "rollback"):
        assert not node(phase=phase, check=True)["changed"]


def test_a_trial_is_rolled_back_and_then_cannot_be_confirmed(node: Firewall) -> None:
    node(**WEB)
    node(phase="trial", **OTHER)
    assert node(phase="rollback")["rolled_back"]
    assert (node.port, node.armed(), node(**WEB)["changed"]) == (80, False, False)
    again = node(phase="rollback")
    assert (again["changed"], again["rolled_back"]) == (False, False)
    late = node(phase="confirm")
    assert late["failed"] and "shows whether this failed" in late["msg"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "7", '{"schema": 1}', '{"text": 1, "files": {}, "foreign_main": true}']
)
def test_a_damaged_record_of_a_trial_confirms_nothing(node: Firewall, text: str) -> None:
    node(**WEB)
    node(phase="trial", **OTHER)
    (firewall.RUN / "trial.json").write_text(text)
    found = node(phase="confirm")
    assert found["failed"] and f"{firewall.RUN}/trial.json is damaged" in found["msg"], found
    assert node.armed(), "the timer loads the old rules"


def test_a_trial_that_the_timer_ends_at_the_same_time_was_not_rolled_back_by_this_call(node: Firewall) -> None:
    node(**WEB)
    node(phase="trial", **OTHER)
    node.kernel.timer_first = True
    late = node(phase="rollback")
    assert (late["changed"], late["rolled_back"]) == (False, False)


@pytest.mark.parametrize(("refused", "code", "loaded"), [("none", 0, ["old.nft"]), ("-f", 1, ["old.nft", "no table"])])
def test_the_script_fails_if_the_old_rules_cannot_be_loaded(
    tmp_path: Path, refused: str, code: int, loaded: list[str]
) -> None:
    nft = tmp_path / "nft"
    nft.write_text(
        f'#!/bin/sh\ncase $1 in -f) echo "$2" ;; *) echo "no table" ;; esac >> nft.log\n[ "$1" != {refused} ]\n'
    )
    nft.chmod(0o755)
    (tmp_path / "trial.json").touch()
    script = firewall.ROLLBACK.format(directory=tmp_path, nft=nft)
    done = subprocess.run(["/bin/sh", "-c", script], check=False, capture_output=True, text=True)
    assert (done.returncode, "THERE IS NO FIREWALL NOW" in done.stderr) == (code, code == 1)
    assert (tmp_path / "nft.log").read_text().splitlines() == loaded
    assert not (tmp_path / "trial.json").exists()


def test_a_trial_that_a_run_left_behind_ends_first(node: Firewall) -> None:
    """A rollback of the next trial loads the rules that were confirmed last."""
    node(**WEB)
    node(phase="trial", **OTHER)
    node(phase="trial", allow=[{"name": "web", "port": 82}])
    node(phase="rollback")
    assert node.port == 80


def test_nothing_is_tried_if_the_old_rules_could_not_be_restored(node: Firewall) -> None:
    """The timer cannot start, or nft does not accept the old rules."""
    node(**WEB)
    node.kernel.broken = "systemd-run"
    assert node(phase="trial", **OTHER)["failed"]
    assert (node.port, (firewall.RUN / "trial.json").exists()) == (80, False)
    node.kernel.broken, node.kernel.refused = "", "proto-dst 80 "
    found = node(phase="trial", **OTHER)
    assert "could not be restored after a trial" in found["msg"]
    assert node.port == 80


def test_rules_that_cannot_be_made_permanent_are_undone(node: Firewall) -> None:
    node(**WEB)
    before = {path: path.read_text() for path in firewall.PARTS.iterdir()}
    node.kernel.broken = "systemctl enable"
    found = node(**OTHER)
    assert "The rules could not be made permanent; the old files are back" in found["msg"]
    assert (node.port, {path: path.read_text() for path in firewall.PARTS.iterdir()}) == (80, before)


def test_old_rules_that_cannot_be_loaded_again_do_not_hide_the_first_error(node: Firewall) -> None:
    node(**WEB)
    node.kernel.broken, node.kernel.refused = "systemctl enable", "proto-dst 80 "
    found = node(**OTHER)
    assert f"the old files are back: systemctl enable --quiet {firewall.SERVICE} failed" in found["msg"]
    assert "The old rules could not be loaded again: " in found["msg"] and "proto-dst 80 " in found["msg"]


def test_old_files_that_cannot_be_restored_do_not_hide_the_first_error(
    node: Firewall, monkeypatch: pytest.MonkeyPatch
) -> None:
    node(**WEB)
    node.kernel.broken = "systemctl enable"
    write, old = firewall.files.write, (firewall.PARTS / "50-inference-site.nft").read_text()

    def full(path: Path, content: str | None, mode: int = 0o644) -> bool:
        if content == old:
            raise OSError(30, "Read-only file system")
        return write(path, content, mode)

    monkeypatch.setattr(firewall.files, "write", full)
    found = node(**OTHER)
    assert f"could not be made permanent: systemctl enable --quiet {firewall.SERVICE} failed" in found["msg"]
    assert "Not all old files could be restored: [Errno 30] Read-only file system" in found["msg"]


def test_rules_refused_by_nft_change_nothing(node: Firewall) -> None:
    node.kernel.refused = "proto-dst 80 "
    assert "nft refuses the rules. Nothing was changed." in node(**WEB)["msg"]
    (firewall.PARTS / "10-others.nft").write_text("nonsense\n")
    node.kernel.refused = "nonsense"
    assert "10-others.nft cannot be loaded" in node(**WEB)["msg"]
    assert node.kernel.table is None and not firewall.MAIN.exists()


def test_another_active_firewall_is_refused(node: Firewall) -> None:
    node.kernel.others = {"firewalld.service": "active"}
    found = node(**WEB)
    assert "systemctl disable --now firewalld" in found["msg"] and node.kernel.table is None


def test_rules_of_other_origin_are_replaced_only_if_the_inventory_says_so(
    node: Firewall, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign = "table inet mine {\n chain x {\n tcp dport 22 accept\n }\n}\n"
    firewall.MAIN.write_text(foreign)
    assert "common_firewall_replace: true" in node(**WEB)["msg"]
    assert firewall.MAIN.read_text() == foreign
    found = node(replace=True, **WEB)
    assert Path(found["backup_file"]).read_text() == foreign
    assert nftables.is_ours(firewall.MAIN.read_text())


def test_without_nftables_check_mode_predicts_and_a_run_is_an_error(node: Firewall) -> None:
    firewall.NFT.unlink()
    predicted = node(check=True, **WEB)
    assert (predicted["changed"], predicted["installed"]) == (True, False)
    assert "install the package nftables first" in node(**WEB)["msg"]


def test_all_mistakes_are_named_at_once(node: Firewall) -> None:
    found = node(allow=[{"name": "web", "port": 70000}, {"name": "x", "port": 80, "sources": ["nowhere"]}])
    assert "70000" in found["msg"] and "nowhere" in found["msg"] and "Nothing was changed" in found["msg"]


def test_ssh_is_open_where_its_server_listens(node: Firewall) -> None:
    """A port that an SSH session forwards does not count."""
    listening = "   0: 00000000:08AE 00000000:0000 0A 0:0 0:0 0 0 0 4711 1\n"
    forwarded = "   1: 00000000:1F90 00000000:0000 0A 0:0 0:0 0 0 0 4712 1\n"
    (firewall.PROC / "net/tcp").write_text(f"  sl  local_address\n{listening}{forwarded}")
    (firewall.PROC / "77/fd").mkdir(parents=True)
    (firewall.PROC / "77/fd/3").symlink_to("socket:[4711]")
    assert node.kernel.ssh_ports({"ssh.service": {"MainPID": "77"}}) == (2222,)


def test_engines_have_a_file_of_their_own_and_root_is_left_out(node: Firewall) -> None:
    path = firewall.PARTS / "engines/50-inference-site.nft"
    (firewall.PROC / firewall.PORT_RANGE).parent.mkdir(parents=True)
    (firewall.PROC / firewall.PORT_RANGE).write_text("20000\t60999\n")
    engines: dict[str, Any] = {"engine_users": ["2000", "2001:7", "root", "nobody-here"]}
    rule = {"name": "hub", "port": 443, "destinations": ["198.51.100.1"]}
    done = node(**WEB, **engines, engine_allow=[rule])
    assert f"{path} differs" in done["differs"]
    assert "meta skuid { 2000, 2001 } reject with" in str(node.kernel.table)
    assert "ip daddr { 198.51.100.1 } tcp dport 443 accept" in path.read_text()
    assert 'oifname "lo" tcp dport 20000-65535 accept' in path.read_text()
    assert not node(**WEB, **engines, engine_allow=[rule])["changed"]
    # A change of another part leaves the file alone. Without users of engines, the module removes the file.
    node(name="other", allow=[{"name": "more", "port": 99}])
    assert path.exists() and "skuid" in str(node.kernel.table)
    assert "hub" not in str(node(**WEB, **engines)) and "hub" not in path.read_text()
    node(**WEB)
    assert not path.exists() and "skuid" not in str(node.kernel.table)


def test_mistakes_of_both_lists_are_named_at_once(node: Firewall) -> None:
    wrong = {"name": "hub", "port": 443, "destinations": ["huggingface.co"]}
    found = node(allow=[{"name": "web", "port": 70000}], engine_users=["2000"], engine_allow=[wrong])
    assert "70000" in found["msg"] and "common_firewall_engine_allow, entry 1 (hub)" in found["msg"]


def test_a_user_of_engines_is_in_one_part_only(node: Firewall) -> None:
    """The refusal at the end of the first part would end all connections that the second part allows."""
    node(**WEB, engine_users=["2000"])
    before = node.kernel.table
    found = node(name="other", engine_users=["2000", "2001"], engine_allow=[{"name": "hub", "port": 443}])
    part = firewall.PARTS / "engines/50-inference-site.nft"
    assert f"{part} already has the rules for connections of user 2000, and" in found["msg"]
    assert "in firewall_engine_allow" in found["msg"] and "Nothing was changed." in found["msg"]
    assert node.kernel.table == before and not (firewall.PARTS / "50-inference-other.nft").exists()
    # Other users, and a file that an operator added, are no conflict.
    (firewall.PARTS / "engines/60-mine.nft").write_text("meta skuid 2001 reject with icmpx admin-prohibited\n")
    assert node(name="other", engine_users=["2001"])["changed"]
    assert not node(**WEB, engine_users=["2000"])["changed"]


def test_allowed_connections_need_the_users_of_engines(node: Firewall) -> None:
    found = node(name="other", **WEB, engine_allow=[{"name": "hub", "port": 443}])
    assert found["msg"].startswith("common_firewall_engine_allow needs common_firewall_engine_users. With ")
    assert node.kernel.table is None
