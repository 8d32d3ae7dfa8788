# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rooted node cannot delete its backups: Debian's REST server, and an S3 server with the policy of docs/backup.md."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import s3_server
from node import PROJECT, Node, changes, playbook
from saved import Saved

OLD = "2020-01-01 00:00:00"
AHEAD = "2031-01-01 00:00:00"

S3_PORT = 5556


@dataclass(frozen=True)
class Server:
    """The variables of the role backup for a server where the node may only add, and `admin` may prune."""

    node: dict[str, Any]
    admin: dict[str, Any]
    owner: dict[str, str] = field(default_factory=dict)
    """A key that may do everything."""

    @property
    def secret(self) -> str:
        """The secret of the credentials that may delete."""
        return str(list(self.admin["backup_prune_environment"].values())[-1])


def guide() -> str:
    """The section of the guide about append-only repositories."""
    text = (PROJECT / "docs/backup.md").read_text(encoding="utf-8")
    return text.partition("## A rooted node cannot delete backups")[2].partition("## Restore at 3 a.m.")[0]


def blocks(language: str) -> list[str]:
    """The code blocks of this section in a language."""
    return [textwrap.dedent(text) for text in re.findall(rf"```{language}\n(.*?) *```", guide(), re.DOTALL)]


def htpasswd(user: str, password: str) -> str:
    return f"{user}:{{SHA}}{base64.b64encode(hashlib.sha1(password.encode()).digest()).decode()}"


@contextmanager
def rest_server(machine: Saved, other: Node) -> Iterator[Server]:
    """Debian 13's REST server on the machine, by the guide's commands: one service for the node, one for pruning."""
    node = machine.node
    node.run("apt-get update && apt-get install --yes --no-install-recommends restic-rest-server openssl curl")
    node.run(
        "install -d -o restic-rest-server -g restic-rest-server -m 0700 /srv/restic; cd /etc/restic-rest-server;"
        " openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=backup"
        f" -addext subjectAltName=IP:{node.address} -keyout key.pem -out cert.pem 2> /dev/null;"
        f" echo '{htpasswd(node.name, 'rest-password-71')}' > users.htpasswd;"
        f" echo '{htpasswd('admin', 'molecule-admin-0b6f12')}' > admins.htpasswd"
    )
    (settings,) = blocks("ini")
    users, admin, *_prune = blocks("console")
    node.run(users.splitlines()[-1].removeprefix("$ "))
    commands = " && ".join(line.removeprefix("$ ") for line in admin.splitlines())
    try:
        node.run(f"cat > /etc/default/restic-rest-server <<'END'\n{settings}END\n{commands}")
        other.run(f"cat > /root/backup-ca.pem <<'END'\n{node.run('cat /etc/restic-rest-server/cert.pem')}\nEND")
        yield Server(
            {
                "backup_repository": f"rest:https://{node.address}:8000/{node.name}",
                "backup_environment": {"RESTIC_REST_USERNAME": node.name, "RESTIC_REST_PASSWORD": "rest-password-71"},
                "backup_ca_file": "/etc/restic-rest-server/cert.pem",
            },
            {
                "backup_prune_repository": f"rest:https://{node.address}:8001/{node.name}",
                "backup_prune_environment": {
                    "RESTIC_REST_USERNAME": "admin",
                    "RESTIC_REST_PASSWORD": "molecule-admin-0b6f12",
                },
                "backup_prune_ca_file": "/root/backup-ca.pem",
            },
        )
    finally:
        node.run("systemctl disable --now restic-rest-server restic-rest-admin")


def policies(name: str) -> dict[str, Any]:
    """Policies for keys: that of the guide for the node, one for pruning, and one that allows everything."""
    (policy,) = blocks("json")
    adds = json.loads(policy.replace("gpu1", name))
    bucket = adds["Statement"][0]
    # moto has a separate permission for HEAD of a bucket.
    bucket["Action"].append("s3:HeadBucket")
    objects = {"Action": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], "Resource": "arn:aws:s3:::fleet/*"}
    prunes = {**adds, "Statement": [bucket, {"Effect": "Allow", **objects}]}
    owner = {**adds, "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
    return {"adds": adds, "prunes": prunes, "owner": owner}


@contextmanager
def s3_bucket(machine: Saved) -> Iterator[Server]:
    """A bucket with Object Lock, and keys: for the node, for pruning, and with all rights."""
    node = machine.node
    gateway = node.run("ip route | awk '/^default/ {print $3}'")
    with s3_server.serve_policies(gateway, S3_PORT, "fleet", policies(node.name)) as (address, keys):
        yield Server(
            {"backup_repository": f"s3:{address}/fleet/{node.name}", "backup_environment": keys["adds"]},
            {"backup_prune_environment": keys["prunes"]},
            keys["owner"],
        )


def prune(machine: Saved, other: str, server: Server, *options: str, check: bool = True, **extra: Any) -> str:
    """Prune the machine's repository from the other node."""
    given = {**server.node, **server.admin, "backup_append_only": True, "backup_prune_host": other, **extra}
    return playbook(machine.node.name, *options, check=check, name="baremetal.inference.backup_prune", **given)


def check_append_only(
    machine: Saved, other: str, server: Server, attack: Callable[[], None], *, pruned: bool = True
) -> None:
    """Check that the role refuses credentials that may delete, and that backups survive `attack`. `pruned`: also prune.

    `attack` tries to delete and replace files of the repository with all that root finds on the node.
    """
    node = machine.node
    loose = {**server.node, "backup_environment": server.admin["backup_prune_environment"], "backup_append_only": True}
    loose["backup_repository"] = server.admin.get("backup_prune_repository", server.node["backup_repository"])
    said = node.site(check=False, **loose)
    assert "lets this node delete backups (data, index, keys, snapshots)" in said and changes(said) == 0
    try:
        node.site(**server.node, backup_append_only=True, run_backup=True)
        assert machine.jobs()["backup"]["ok"]
        assert node.run("systemctl is-enabled inference-backup-prune.timer", check=False) != "enabled"
        add = "inference-backup restic backup --quiet --host $(hostname) --tag inference-node /etc/hostname --time"
        node.run(f"{add} '{OLD}'; {add} '{AHEAD}'")
        before = {one["id"] for one in machine.snapshots()}
        assert len(before) == 3
        # The attacker is root on the node.
        attack()
        assert {one["id"] for one in machine.snapshots()} == before
        assert "run baremetal.inference.backup_prune" in node.run("inference-backup prune 2>&1", check=False)
        # The check of the repository also asks the server again whether the node may delete. No job leaves a lock.
        node.run("systemctl start inference-backup-check.service")
        assert machine.jobs()["check"]["ok"] and node.run("inference-backup restic list locks --no-lock") == ""
        if pruned:
            check_pruning(machine, other, server)
    finally:
        node.site()


def check_pruning(machine: Saved, other: str, server: Server) -> None:
    """Check that root cannot prune with restic. Another node prunes with credentials that this node never gets."""
    node, before = machine.node, machine.snapshots()
    # restic 0.14 repeats a refused request for 45 s, and leaves its lock when it is stopped.
    forget = "timeout 8 inference-backup restic forget --keep-last 1 --prune"
    node.run(f"{forget}; inference-backup restic unlock", check=False)
    assert machine.snapshots() == before
    assert "1 snapshot would be removed, 2 kept" in prune(machine, other, server, "--check")
    assert machine.snapshots() == before
    said = prune(machine, other, server)
    assert "1 snapshot removed, 2 kept. LOOK AT THIS HOST: snapshots dated in the future" in said, said
    assert server.secret not in said
    assert changes(prune(machine, other, server)) == 0
    assert not any(one["time"].startswith("2020") for one in machine.snapshots())
    assert node.run(f"grep -rls {server.secret} /etc/inference-backup /var/lib/inference-backup", check=False) == ""
    assert machine.backup()["ok"]


# In CI, the test of the bucket takes the same steps up to the prune.
@pytest.mark.full
def test_a_rest_server_keeps_the_backups_of_a_rooted_node(own: Saved) -> None:
    other = Node("deb12")
    with rest_server(own, other) as server:
        url = server.node["backup_repository"].removeprefix("rest:")
        curl = f"curl --silent --output /dev/null --write-out '%{{http_code}}' --user {own.node.name}:rest-password-71"
        curl += " --cacert /etc/restic-rest-server/cert.pem"

        def attack() -> None:
            for kind in ("snapshots", "keys", "index", "data"):
                name = own.node.run(f"find /srv/restic/{own.node.name}/{kind} -type f -printf '%f\\n' | head -n 1")
                assert name, kind
                for request in ("-X DELETE", "--data-binary x"):
                    assert own.node.run(f"{curl} {request} {url}/{kind}/{name}") == "403", (kind, request)
            foreign = url.replace(own.node.name, "another")
            assert own.node.run(f"{curl} {foreign}/snapshots/") == "401", "a node can read another node's repository"

        check_append_only(own, other.name, server, attack)


@pytest.mark.parametrize("pruned", [False, pytest.param(True, marks=pytest.mark.full)])
def test_an_s3_bucket_keeps_the_backups_of_a_rooted_node(remote: Saved, pruned: bool) -> None:
    name = remote.node.name
    with s3_bucket(remote) as server:
        address = server.node["backup_repository"].removeprefix("s3:").removesuffix(f"/fleet/{name}")
        listed = f"names = [one['Key'] for one in s3.list_objects_v2(Bucket='fleet', Prefix='{name}/')['Contents']]\n"

        def attack() -> None:
            deletes = """
for name in names:
    for version in ({}, {"VersionId": "null"}):
        try:
            s3.delete_object(Bucket="fleet", Key=name, **version)
        except botocore.exceptions.ClientError as error:
            assert error.response["Error"]["Code"] == "AccessDenied", error
        else:
            raise SystemExit(f"{name} was deleted")
print(len(names))
"""
            node = server.node["backup_environment"]
            assert int(s3_server.boto(address, node, listed + deletes)) >= 5
            # The node can hide a snapshot by another object with its name. The bucket keeps the first version, and
            # Object Lock protects this version also from a key that may do everything.
            hides = "name = next(one for one in names if '/snapshots/' in one)\n"
            s3_server.boto(address, node, listed + hides + "s3.put_object(Bucket='fleet', Key=name, Body=b'x')")
            restores = """
first = s3.list_object_versions(Bucket="fleet", Prefix=name)["Versions"][-1]["VersionId"]
try:
    s3.delete_object(Bucket="fleet", Key=name, VersionId=first)
except botocore.exceptions.ClientError as error:
    print(error.response["Error"]["Code"])
body = s3.get_object(Bucket="fleet", Key=name, VersionId=first)["Body"].read()
s3.put_object(Bucket="fleet", Key=name, Body=body)
"""
            assert s3_server.boto(address, server.owner, listed + hides + restores) == "AccessDenied"

        check_append_only(remote, "deb13", server, attack, pruned=pruned)
