# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""APT: sources, proxies, packages, holds and unattended upgrades, with a small signed repository on the node."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from node import Node, changed_tasks, changes, playbook

PART = "apt"
SECRET = "proxy-secret-41c7"
PORT = 5098

# Three packages in two versions, a package that depends on one of them, two packages with names of kernels, and
# python3-debian. The key `right` signs the repository.
BUILD = """
set -eu
apt-get -qq update
apt-get -qq install --yes --no-install-recommends gpg gpg-agent apt-utils >/dev/null
rm -rf /srv/repo /srv/build; mkdir -p /srv/repo/pool /srv/build; ln -sfn repo /srv/other; cd /srv/build
package() {
  mkdir -p $1/DEBIAN
  printf '%s: %s\\n' Package $1 Version $2 Architecture all Maintainer test Description test >$1/DEBIAN/control
  [ -z "${3:-}" ] || echo "Depends: $3" >>$1/DEBIAN/control
  dpkg-deb --build $1 /srv/repo/pool/$1_$2_all.deb >/dev/null
}
for version in 1.0-1 2.0-1; do for name in upgraded blocked pinned; do package inference-$name $version; done; done
package inference-needing 1.0-1 inference-upgraded
package linux-image-0.1-inference 1.0-1
package linux-image-inference 2.0-1
(cd /srv/repo/pool && apt-get -qq download python3-debian)
export GNUPGHOME=/srv/build/gnupg; mkdir -pm 700 $GNUPGHOME
for key in right wrong; do
  gpg --batch --quiet --passphrase '' --quick-generate-key $key rsa3072 sign never 2>/dev/null
  gpg --armor --export $key >/srv/build/$key.asc
done
cd /srv/repo; mkdir -p dists/test/main/binary-amd64
apt-ftparchive packages pool >dists/test/main/binary-amd64/Packages
apt-ftparchive -o APT::FTPArchive::Release::Origin=Inference -o APT::FTPArchive::Release::Suite=test \
  -o APT::FTPArchive::Release::Components=main -o APT::FTPArchive::Release::Architectures=amd64 \
  release dists/test >/srv/build/Release
gpg --batch --quiet --local-user right --clearsign --output dists/test/InRelease /srv/build/Release
"""

# The configuration of APT and the selections of packages, which the tests change.
SAVE = "tar -C / -cf /root/apt.tar etc/apt; dpkg --get-selections >/root/selections"
RESTORE = """
apt-get -qq remove --yes --allow-change-held-packages 'inference-*' 'linux-image-*inference' >/dev/null 2>&1
rm -rf /etc/apt; tar -C / -xf /root/apt.tar; dpkg --set-selections </root/selections
"""


def source(**changed: Any) -> dict[str, Any]:
    """The entry of common_apt_sources for the node's repository."""
    return {"name": "test", "uris": ["file:/srv/repo"], "suites": ["test"], "components": ["main"], **changed}


@cache
def keys(node: Node) -> dict[str, str]:
    """Create the repository on a node at the first call. Returns the repository's keys by name."""
    node.run(BUILD)
    return {key: node.run(f"cat /srv/build/{key}.asc") for key in ("right", "wrong")}


@pytest.fixture(autouse=True)
def restored(used: list[Node]) -> Iterator[None]:
    """Restore APT on each node after the test."""
    for node in used:
        keys(node)
        node.run(SAVE)
    yield
    for node in used:
        node.run(RESTORE)


def state(node: Node) -> str:
    """The state of APT that must not change."""
    return node.run(
        "find /etc/apt -type f -exec sha256sum {} + | sort; ls -lR --time-style=+ /etc/apt; apt-mark showhold"
    )


def refused(node: Node, **extra: Any) -> str:
    """Run the role with a mistake. The run must change nothing, and APT must work. Returns its output as one line."""
    before = state(node)
    output = node.baseline(PART, check=False, **extra)
    assert changes(output) == 0, output[-3000:]
    assert state(node) == before
    node.run("apt-get -qq -o APT::Update::Error-Mode=any update")
    return " ".join(output.replace("\\n", " ").split())


def version(node: Node, package: str) -> str:
    return node.run(f"dpkg-query -W -f '${{db:Status-Status}} ${{Version}}' {package}", check=False)


def test_a_source_that_cannot_be_used_is_refused(deb12: Node) -> None:
    bad = [
        source(name="dead", uris=["http://127.0.0.1:9/debian"]),
        source(name="stranger", uris=["file:/srv/other"], key=keys(deb12)["wrong"]),
        source(name="incomplete", uris=["file:///srv/repo"], components=["nonsense"], key=keys(deb12)["right"]),
    ]
    output = refused(deb12, common_apt_sources=bad)
    assert "source dead: E: Failed to fetch http://127.0.0.1:9/debian test InRelease: Could not connect" in output
    assert "is not signed" in output and "source stranger" in output
    assert "source incomplete: W: Skipping acquire of configured file 'nonsense/binary-amd64/Packages'" in output


def test_all_mistakes_are_reported_before_any_change(deb12: Node) -> None:
    bad = [
        source(name="A b"),
        source(suites=["test/"], key="/nowhere.asc"),
        source(name="login", uris=[f"http://u:{SECRET}@127.0.0.1/"]),
    ]
    output = refused(
        deb12, common_apt_sources=bad, common_apt_ca="-----BEGIN CERTIFICATE-----", common_apt_no_proxy=["*.x"]
    )
    for word in ("name: 'A b'", "suites: 'test/'", "auth.conf.d", "no_proxy '*.x'", "ca: must be a bundle"):
        assert word in output
    assert SECRET not in output


# In CI, the scenario `hardware` shows a declared source, whose packages are pinned, installed and held.
@pytest.mark.full
def test_a_source_is_declared_and_its_packages_are_installed_pinned_and_held(deb13: Node, tmp_path: Path) -> None:
    # With common_apt_exclusive, the role disables all other files of sources, also one that makes APT fail.
    deb13.run("echo nonsense >/etc/apt/sources.list.d/broken.list")
    (tmp_path / "key.asc").write_text(keys(deb13)["right"])
    declared: dict[str, Any] = {
        "common_apt_sources": [source(key=f"controller:{tmp_path}/key.asc")],
        "common_packages": ["curl", "inference-pinned=1.*", "inference-upgraded", "linux-image-0.1-inference"],
        "common_packages_held": ["inference-up*"],
    }
    assert "broken.list" in deb13.baseline(PART, check=False, **declared)
    declared["common_apt_exclusive"] = True
    predicted, _output = changed_tasks(deb13, tmp_path, "--check", part=PART, **declared)
    assert version(deb13, "inference-pinned") == ""
    done, _output = changed_tasks(deb13, tmp_path, part=PART, **declared)
    assert done == predicted
    again, _output = changed_tasks(deb13, tmp_path, part=PART, **declared)
    assert not again

    assert deb13.run("apt-get indextargets --format '$(REPO_URI)' | sort -u") == "file:/srv/repo/"
    assert "nonsense" in deb13.run("cat /etc/apt/sources.list.d/broken.list.inference.save")
    held = {"inference-pinned", "inference-upgraded", "linux-image-0.1-inference"}
    assert held <= set(deb13.run("apt-mark showhold").split())
    deb13.run("apt-get -qq --yes upgrade && apt-get -qq --yes install inference-pinned")
    assert version(deb13, "inference-pinned") == "installed 1.0-1"
    # The next run holds a new kernel and a package that lost its hold. It ends holds of packages that left the lists.
    deb13.run("apt-get -qq --yes install linux-image-inference; apt-mark unhold inference-pinned")
    declared["common_packages_held"] = []
    deb13.baseline(PART, **declared)
    holds = deb13.run("apt-mark showhold").split()
    assert {"linux-image-inference", "inference-pinned"} <= set(holds) and "inference-upgraded" not in holds


@pytest.mark.full
def test_a_removal_of_a_declared_package_and_an_unknown_package_are_refused(deb12: Node) -> None:
    deb12.run(f"echo '{keys(deb12)['right']}' >/etc/apt/keyrings/test.asc")
    deb12.run(
        "echo 'deb [signed-by=/etc/apt/keyrings/test.asc] file:/srv/repo test main' >/etc/apt/sources.list.d/t.list"
    )
    deb12.run("apt-get -qq update; apt-get -qq --yes install inference-needing")
    lists: dict[str, Any] = {"common_packages": ["inference-needing"], "common_packages_absent": ["inference-upgraded"]}
    assert "would remove inference-needing, which is declared as present" in refused(deb12, **lists)
    assert "Unable to locate package crul" in refused(deb12, common_packages=["crul"])


def test_upgrades_run_unattended_from_the_declared_origins_alone(deb12: Node) -> None:
    deb12.run("apt-get -qq --yes --allow-downgrades install /srv/repo/pool/inference-*_1.0-1_all.deb")
    options: dict[str, Any] = {
        "common_apt_sources": [source(key=keys(deb12)["right"])],
        "common_packages_held": ["inference-blocked"],
        "common_unattended_upgrades_origins": ["origin=Inference,suite=test"],
    }
    deb12.baseline(PART, **options)
    said = deb12.run("unattended-upgrade --dry-run --debug 2>&1")
    assert "Allowed origins are: origin=Inference,suite=test\n" in said
    chosen = [line for line in said.splitlines() if line.startswith("Packages that will be upgraded:")]
    assert chosen == ["Packages that will be upgraded: inference-pinned inference-upgraded"]
    assert "inference\\-blocked" in said.partition("Initial blacklist:")[2].splitlines()[0]
    # By default, upgrades run daily, and do not reboot the node.
    dump = deb12.run("apt-config dump")
    assert 'Unattended-Upgrade::Automatic-Reboot "false";' in dump and 'Unattended-Upgrade "1";' in dump


@pytest.mark.full
def test_bootstrap_and_role_use_the_proxy_and_show_no_login(deb12: Node, tmp_path: Path) -> None:
    # Python's server takes the whole address as a path: so it works as a proxy for one host.
    deb12.run("mkdir -p /srv/proxy/http:; ln -sfn /srv/repo /srv/proxy/http:/mirror.invalid")
    deb12.run(f"systemd-run --unit=proxy python3 -m http.server --directory /srv/proxy --bind 127.0.0.1 {PORT}")
    deb12.run("rm /etc/apt/sources.list")
    options: dict[str, Any] = {
        "common_apt_sources": [source(uris=["http://mirror.invalid/"], key=keys(deb12)["right"])],
        "common_apt_http_proxy": f"http://somebody:{SECRET}@127.0.0.1:{PORT}",
    }
    play = tmp_path / "bootstrap.json"
    include = {"name": "baremetal.inference.common", "tasks_from": "bootstrap"}
    tasks = [{"name": "Bootstrap", "ansible.builtin.include_role": include}]
    play.write_text(json.dumps([{"hosts": "inference", "gather_facts": False, "become": True, "tasks": tasks}]))
    # A file with all authorities is larger than an argument of a command may be (128 KiB).
    bundle = tmp_path / "authorities.pem"
    bundle.write_text(deb12.run("cat /etc/ssl/certs/ca-certificates.crt"))
    assert bundle.stat().st_size > 2**17
    long: dict[str, Any] = {
        **options,
        "common_apt_http_proxy": f"http://127.0.0.1:{PORT}",
        "common_apt_ca": f"controller:{bundle}",
    }
    try:
        output = ""
        for variables in (long, options):
            deb12.run("dpkg --remove python3-debian")
            output += playbook(deb12.name, "--diff", name=str(play), **variables)
            assert version(deb12, "python3-debian").startswith("installed")
        output += deb12.baseline(PART, "--diff", "-vvv", **options)
        file = deb12.run("grep -rl somebody /etc /run /tmp /var/log 2>/dev/null", check=False)
        assert file == "/etc/apt/apt.conf.d/52-inference-proxy"
        assert deb12.run(f"stat -c %a {file}") == "600"
        # The role refuses a proxy that does not answer.
        assert "Nothing was changed" in deb12.baseline(
            PART, check=False, **{**options, "common_apt_http_proxy": "http://127.0.0.1:9"}
        )
        deb12.run("apt-get -qq -o APT::Update::Error-Mode=any update")
    finally:
        deb12.run("systemctl stop proxy")
    assert SECRET not in output
