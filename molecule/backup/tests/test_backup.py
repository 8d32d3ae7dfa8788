# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Backups and restores of nodes, by Debian's restic: to an SFTP server, a directory and a REST server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from node import changed_tasks, changes, recorded_changes, wait_for
from saved import Saved

SECRETS = ("molecule-password-7d1f93c2", "molecule-credential-51ab")

REPOSITORY = "/srv/own"


def test_check_mode_predicted_the_converge() -> None:
    predicted, done = recorded_changes("check"), recorded_changes("converge")
    assert done, "nothing was done"
    # In check mode, restic was not installed yet: the run reported these two tasks by a task "would do".
    announced = {"backup : Install | Install the packages", "backup : Configure | Create the repository"}
    assert {(host, task) for host, task in done if task not in announced} <= predicted
    assert {host for host, task in predicted if "would do" in task} == {host for host, _task in done}


def test_a_backup_has_the_state_of_the_node_and_nothing_else(saved: Saved) -> None:
    before = len(saved.snapshots())
    job = saved.backup()
    assert job["ok"] and len(saved.snapshots()) == before + 1
    listed = saved.node.run("inference-backup restic ls latest --host $(hostname)").splitlines()
    for path in (
        "/etc/inference/env/main.env",
        "/etc/systemd/system/vllm@main.service",
        "/etc/docker/daemon.json",
        "/etc/ssh/ssh_host_ed25519_key.pub",
        "/var/lib/inference/releases/main/active",
        "/mnt/models/tiny-a/0123456789ab/manifest.json",
        "/inference-backup.json",
    ):
        assert path in listed, path
    for part in ("safetensors", "/probe", "inference-backup/password", "ssh_host_ed25519_key\n"):
        assert part not in "\n".join(listed) + "\n", part
    record = json.loads(saved.node.run("inference-backup restic dump latest --host $(hostname) /inference-backup.json"))
    assert record["packages"]["restic"] and record["kernel"] and record["users"]["0"] == "root"
    assert not saved.node.run("ls /run/inference-backup 2>/dev/null", check=False), "the copy was not removed"
    metrics = saved.node.run("cat /var/lib/prometheus/node-exporter/inference-backup.prom")
    assert 'inference_backup_last_run_success{job="backup"} 1' in metrics
    # The backup is younger than the configuration of backups.
    since = next(
        line
        for line in metrics.splitlines()
        if line.startswith('inference_backup_since_timestamp_seconds{job="backup"}')
    )
    assert float(since.split()[1]) <= saved.jobs()["backup"]["began"]
    # The node's systemd parses the schedules: every day, and every Sunday.
    for name, seconds in (("backup", 86400), ("prune", 604800)):
        assert f'inference_backup_interval_seconds{{job="{name}"}} {seconds}\n' in metrics
    assert saved.node.run("inference-backup status").startswith("repository")


def test_a_restore_brings_back_altered_and_deleted_files(saved: Saved) -> None:
    saved.backup()
    before = saved.files()
    saved.node.run(
        "echo broken > /etc/inference/env/main.env; chmod 644 /etc/inference/env/main.env;"
        " rm /var/lib/inference/releases/main/2/release.json; rm -r /var/lib/inference/known-good;"
        " ln -sfn 1 /var/lib/inference/releases/main/active; chown daemon /etc/inference/instances/main.json;"
        " echo new > /etc/inference/instances/new.json"
    )
    predicted = saved.restore("--check", "--diff", snapshot="latest", start=False)
    assert changes(predicted) == 1 and "engine-key" not in predicted
    assert "broken" in saved.node.run("cat /etc/inference/env/main.env"), "a dry run has restored files"
    done = saved.restore(snapshot="latest", start=False)
    assert changes(done) >= 1
    assert saved.node.run("cat /etc/inference/instances/new.json") == "new", "the restore removed an extra file"
    kept = "cat /var/lib/inference-backup/aside/*/etc/inference/env/main.env"
    assert saved.node.run(kept) == "broken", "a replaced file was not kept"
    saved.node.run("rm /etc/inference/instances/new.json")
    assert saved.files() == before
    assert changes(saved.restore(snapshot="latest", start=False)) == 0
    assert not saved.node.run("ls -d /var/lib/inference-backup/scratch-* 2>/dev/null", check=False)
    assert not saved.node.run("cat /var/lib/inference/lock 2>/dev/null", check=False), "the lock is still held"


def test_a_drill_finds_differences_and_changes_nothing(own: Saved) -> None:
    own.backup()
    fine = own.restore(drill=True)
    assert changes(fine) == 0 and "differences: []" in fine.replace('"', ""), fine
    own.node.run("echo '{}' > /etc/docker/daemon.json")
    found = own.restore(drill=True)
    assert changes(found) == 0 and "/etc/docker/daemon.json" in found, found
    assert own.node.run("cat /etc/docker/daemon.json") == "{}"
    # Restore a single file, first to another path, then to its own path.
    own.restore(snapshot="latest", path="/etc/docker/daemon.json", target="/root/old.json")
    assert "live-restore" in own.node.run("cat /root/old.json")
    assert own.node.run("cat /etc/docker/daemon.json") == "{}"
    own.restore(snapshot="latest", path="/etc/docker/daemon.json")
    assert "live-restore" in own.node.run("cat /etc/docker/daemon.json")


def test_the_snapshots_are_listed(remote: Saved) -> None:
    identity = remote.backup()["snapshot"]
    assert identity in remote.restore()
    assert "no snapshot of" in remote.restore(snapshot="ffffffff", path="/etc/docker", check=False)


def test_a_wrong_password_is_refused_before_anything_changes(remote: Saved, tmp_path: Path) -> None:
    said = remote.node.site(check=False, backup_password="not-the-password", backup_keep={"daily": 3})
    assert "does not open with this password" in said and "restic key add" in said
    assert changes(said) == 0
    assert SECRETS[0] == remote.node.run("cat /etc/inference-backup/password")
    said = remote.node.site(check=False, backup_password="", backup_keep={"often": 3}, backup_schedule="soon")
    for words in ("backup_password", "often", "backup_schedule"):
        assert words in said, "the run does not report all mistakes at once"
    assert changed_tasks(remote.node, tmp_path)[0] == set()


def test_no_output_process_log_or_readable_file_has_a_secret(remote: Saved) -> None:
    said = remote.node.site("-vv", run_backup=True)
    assert "snapshot" in said
    watched = remote.node.run(
        "(for i in $(seq 80); do cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '; sleep 0.05; done) > /root/seen &"
        " systemctl start inference-backup.service; wait; cat /root/seen; rm /root/seen"
    )
    assert "restic" in watched, "nothing was watched"
    journal = remote.node.run("journalctl --no-pager --output=cat")
    for secret in SECRETS:
        assert secret not in said and secret not in watched and secret not in journal
        readable = f"find /etc /var /run /usr/local /tmp -xdev -type f -perm -o=r | xargs grep -ls {secret}"
        assert remote.node.run(readable, check=False) == ""


def test_a_killed_prune_blocks_no_backup(own: Saved) -> None:
    """The next backup removes the lock that the prune has left."""
    node = own.node
    # An incomplete lock file of a killed restic locks nothing.
    locks = f"ls {REPOSITORY}/locks | grep -v -- -tmp- || true"

    def killed() -> bool:
        node.run(
            "systemctl start --no-block inference-backup-prune.service;"
            f' for i in $(seq 600); do [ -z "$({locks})" ] || break; sleep 0.02; done;'
            " systemctl kill --signal=KILL inference-backup-prune.service"
        )
        node.run("systemctl reset-failed inference-backup-prune.service", check=False)
        return bool(node.run(locks))

    wait_for("a prune was killed while it held the lock", killed, 60)
    assert own.backup()["seconds"] < 60
    assert node.run(locks) == ""


def test_the_timer_makes_backups_and_a_prune_removes_old_snapshots(own: Saved) -> None:
    own.backup()
    own.node.site(backup_schedule="*:*:0/5", backup_keep={"last": 2})
    before = own.jobs()["backup"]["ended"]
    wait_for("the timer has made a backup", lambda: own.jobs()["backup"]["ended"] > before, 60)
    own.node.run("systemctl stop inference-backup.timer")
    own.backup()
    assert len(own.snapshots()) > 2
    own.node.run("systemctl start inference-backup-prune.service")
    assert own.jobs()["prune"]["ok"] and len(own.snapshots()) == 2
    own.node.site()
    assert own.node.run("systemctl is-active inference-backup.timer") == "active"


def test_a_check_of_the_repository_succeeds(own: Saved) -> None:
    own.node.run("systemctl start inference-backup-check.service")
    assert own.jobs()["check"]["ok"]


@pytest.mark.full
def test_a_server_that_cannot_be_reached_is_refused_before_any_change(remote: Saved) -> None:
    said = remote.node.site(check=False, backup_repository="sftp:root@127.0.0.9:/srv/fleet", backup_sftp_known_hosts=[])
    assert "cannot be reached" in said and changes(said) == 0
    assert remote.backup()["ok"]


@pytest.mark.full
def test_a_rest_server_takes_backups_by_name_and_password(own: Saved) -> None:
    """Debian 13 has such a server."""
    own.node.run("apt-get update && apt-get install --yes --no-install-recommends restic-rest-server openssl")
    own.node.run(
        "mkdir -p /srv/rest;"
        " printf 'rest-user-81:{SHA}%s' $(printf rest-password-81 | openssl dgst -sha1 -binary | base64) > /root/users;"
        " systemd-run --unit=rest restic-rest-server --path /srv/rest"
        " --htpasswd-file /root/users --listen 127.0.0.1:8001"
    )
    given = {"RESTIC_REST_USERNAME": "rest-user-81", "RESTIC_REST_PASSWORD": "rest-password-81"}
    address = "rest:http://127.0.0.1:8001/own/"
    try:
        wrong = {**given, "RESTIC_REST_PASSWORD": "wrong"}
        said = own.node.site(check=False, backup_repository=address, backup_environment=wrong)
        assert "or refuses this node" in said and changes(said) == 0
        own.node.site(backup_repository=address, backup_environment=given, run_backup=True)
        assert own.jobs()["backup"]["ok"] and len(own.snapshots()) == 1
        assert "rest-password-81" not in own.node.run("journalctl --no-pager --output=cat")
    finally:
        own.node.run("systemctl stop rest")
        own.node.site()


@pytest.mark.full
def test_a_killed_backup_leaves_no_copy_and_blocks_no_backup(own: Saved) -> None:
    own.node.run("head -c 200M /dev/urandom > /etc/inference/large")
    try:
        own.node.run(
            "systemctl start --no-block inference-backup.service;"
            " for i in $(seq 600); do pgrep -x restic && break; sleep 0.02; done > /dev/null;"
            " systemctl kill --signal=KILL inference-backup.service"
        )
        wait_for(
            "the backup has ended",
            lambda: own.node.run("systemctl is-active inference-backup", check=False) == "failed",
        )
        assert "was interrupted" in own.node.run("inference-backup status", check=False)
    finally:
        own.node.run("rm /etc/inference/large; systemctl reset-failed inference-backup")
    assert own.backup()["ok"]
    assert not own.node.run("ls /run/inference-backup 2>/dev/null", check=False), "the copy was not removed"


@pytest.mark.full
def test_a_full_disk_is_reported_and_costs_no_older_snapshot(own: Saved) -> None:
    own.node.run("mkdir -p /srv/small && mount -t tmpfs -o size=2m none /srv/small")
    try:
        own.node.site(backup_repository="/srv/small/own", run_backup=True)
        own.node.run("head -c 8M /dev/urandom > /etc/inference/large")
        own.node.run("systemctl start inference-backup.service", check=False)
        job = own.jobs()["backup"]
        assert not job["ok"] and "no space left" in job["error"].lower(), job
        assert len(own.snapshots()) == 1
        own.node.run("rm /etc/inference/large; mount -o remount,size=64m /srv/small")
        assert own.backup()["ok"] and len(own.snapshots()) == 2
    finally:
        own.node.run("rm -f /etc/inference/large; umount /srv/small")
        own.node.site()


@pytest.mark.full
def test_a_backup_with_a_clock_in_the_past_is_the_newest_snapshot(own: Saved) -> None:
    """A snapshot of tomorrow has the same effect as a clock that is a day behind."""
    host = "--host $(hostname) --tag inference-node"
    tomorrow = own.node.run(
        f"inference-backup restic backup --json {host} --time \"$(date -d tomorrow '+%F %T')\" /etc/hostname"
    )
    made = json.loads(tomorrow.splitlines()[-1])["snapshot_id"]
    try:
        job = own.backup()
        assert job["ok"] and 86000 < job["behind"] < 86410
        assert own.snapshots()[-1]["short_id"] == job["snapshot"]
        assert "THE CLOCK IS WRONG" in own.node.run("inference-backup status")
    finally:
        own.node.run(f"inference-backup restic forget {made[:8]} {own.jobs()['backup']['snapshot']}")
    own.backup()
    assert "CLOCK" not in own.node.run("inference-backup status")


@pytest.mark.full
def test_a_missing_repository_is_not_created_again(own: Saved) -> None:
    own.backup()
    own.node.run(f"mv {REPOSITORY} {REPOSITORY}-away")
    try:
        said = own.node.site(check=False)
        assert "was removed or is not mounted" in said and changes(said) == 0
        own.node.run("systemctl start inference-backup.service", check=False)
        assert "there is no repository" in own.jobs()["backup"]["error"]
        metrics = own.node.run("cat /var/lib/prometheus/node-exporter/inference-backup.prom")
        assert 'inference_backup_last_run_success{job="backup"} 0' in metrics
    finally:
        own.node.run(f"rm -rf {REPOSITORY}; mv {REPOSITORY}-away {REPOSITORY}")


@pytest.mark.full
def test_a_damaged_repository_is_found_and_older_snapshots_restore(own: Saved) -> None:
    # A check reads a part of the repository: only a check of the whole repository finds the damage for certain.
    own.node.site(backup_check_subset="100%")
    older = own.backup()["snapshot"]
    own.node.run(f"cp -a {REPOSITORY} {REPOSITORY}-sound; touch /root/since")
    own.node.run("head -c 1M /dev/urandom > /etc/inference/later")
    try:
        later = own.backup()["snapshot"]
        new = own.node.run(f"find {REPOSITORY}/data -type f -newer /root/since").split()
        for pack in new:
            own.node.run(f"printf damaged | dd of={pack} conv=notrunc status=none")
        own.node.run("systemctl start inference-backup-check.service", check=False)
        assert not own.jobs()["check"]["ok"] and own.jobs()["check"]["error"]
        damaged = own.restore(check=False, snapshot=later, path="/etc/inference/later", target="/root/later")
        assert changes(damaged) == 0 and "failed=1" in damaged
        own.restore(snapshot=older, path="/etc/inference/env", target="/root/older")
        assert own.node.run("cd /root/older && find -name main.env | xargs cat") == own.node.run(
            "cat /etc/inference/env/main.env"
        )
    finally:
        own.node.run(f"rm -rf {REPOSITORY} /root/older /root/later /root/since /etc/inference/later")
        own.node.run(f"mv {REPOSITORY}-sound {REPOSITORY}")
        own.node.site()
    own.node.run("systemctl start inference-backup-check.service")
    assert own.jobs()["check"]["ok"]


@pytest.mark.full
def test_a_blank_machine_gets_the_state_of_a_lost_node(own: Saved) -> None:
    """The new machine has no state. Its user and its group `inference` have other IDs."""
    own.backup()
    before = own.files()
    own.node.run(
        "rm -rf /etc/inference /var/lib/inference/releases /var/lib/inference/known-good"
        " /etc/systemd/system/vllm@main.service; usermod --uid 4711 inference; groupmod --gid 4712 inference"
    )
    own.restore(snapshot="latest", start=False)
    assert own.files() == before
    assert own.node.run("stat --format=%u /var/lib/inference/releases/main/2/release.json") == "4711"
