# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module node_cleanup: the prediction of check mode, the removal, and a second run that changes nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import basic

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Beside, Settings, render
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import releases
from ansible_collections.baremetal.inference.plugins.module_utils.maintenance import docker_disk
from ansible_collections.baremetal.inference.plugins.module_utils.node.calls import node_cleanup
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored_model import StoredModel

RunModule = Callable[..., dict[str, Any]]


@pytest.fixture
def journals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A journal with one archived file of 2 MiB."""
    directory = tmp_path / "journal/machine"
    directory.mkdir(parents=True)
    for name, mib in (("system.journal", 1), ("system@1.journal", 2)):
        (directory / name).write_bytes(b"x" * (mib << 20))
    monkeypatch.setattr(node_cleanup, "JOURNALS", (tmp_path / "journal",))
    monkeypatch.setattr(node_cleanup, "LOGROTATE", tmp_path / "logrotate.conf")
    monkeypatch.setattr(node_cleanup, "LOGROTATE_STATUS", tmp_path / "status")
    return directory


def test_the_journal_is_cut_once(journals: Path, run_module: RunModule, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def run(_module: object, argv: list[str], **_more: Any) -> tuple[int, str, str]:
        asked.append(argv)
        (journals / "system@1.journal").unlink()
        return 0, "", "Vacuuming done, freed 1.0M of archived journals from /var/log/journal/machine.\n"

    monkeypatch.setattr(basic.AnsibleModule, "run_command", run)
    foreseen = run_module(node_cleanup, check=True, images=False, journal_max_mib=1)
    assert foreseen["changed"] and foreseen["freed_bytes"] == 2 << 20 and asked == []
    found = run_module(node_cleanup, images=False, journal_max_mib=1, journal_max_days=3)
    assert found["lines"] == ["1 file of the journal: 1.0 MiB"]
    assert asked == [["journalctl", "--vacuum-size=1048576", "--vacuum-time=259200s"]]
    assert run_module(node_cleanup, images=False, journal_max_mib=1)["changed"] is False
    assert len(asked) == 1


def test_a_file_that_journald_removes_meanwhile_is_no_error(journals: Path, run_module: RunModule) -> None:
    # A link without a target is listed, but cannot be read, like a file that journald removes in between.
    (journals / "system@2.journal").symlink_to("/nonexistent")
    found = run_module(node_cleanup, check=True, images=False, journal_max_mib=1)
    assert found["lines"] == ["1 file of the journal: 2.0 MiB"]


def test_the_age_of_a_journal_is_that_of_its_first_entry(journals: Path, run_module: RunModule) -> None:
    first = int((time.time() - 5 * 86400) * 1e6)
    (journals / "system@1.journal").rename(journals / f"system@{'a' * 32}-{1:016x}-{first:016x}.journal")
    assert run_module(node_cleanup, check=True, images=False, journal_max_days=6)["changed"] is False
    assert run_module(node_cleanup, check=True, images=False, journal_max_days=4)["changed"] is True


def test_logs_are_rotated(journals: Path, run_module: RunModule, monkeypatch: pytest.MonkeyPatch) -> None:
    node_cleanup.LOGROTATE.write_text("")
    node_cleanup.LOGROTATE_STATUS.write_text('"/var/log/a.log" 2026-11-1-0:0:0\n')

    def run(_module: object, argv: list[str], **_more: Any) -> tuple[int, str, str]:
        if "--debug" in argv:
            return 0, "", "considering log /var/log/a.log\n  log needs rotating\n"
        node_cleanup.LOGROTATE_STATUS.write_text('"/var/log/a.log" 2026-11-21-0:0:0\n')
        return 0, "", ""

    monkeypatch.setattr(basic.AnsibleModule, "run_command", run)
    monkeypatch.setattr(basic.AnsibleModule, "get_bin_path", lambda *_given: "/usr/sbin/logrotate")
    assert run_module(node_cleanup, check=True, images=False)["lines"] == ["rotate /var/log/a.log"]
    assert run_module(node_cleanup, images=False)["lines"] == ["rotate /var/log/a.log"]
    assert run_module(node_cleanup, images=False)["changed"] is False


def test_a_failed_program_is_an_error_with_its_output(
    journals: Path, run_module: RunModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(basic.AnsibleModule, "run_command", lambda *_given, **_more: (1, "", "no space"))
    found = run_module(node_cleanup, images=False, journal_max_mib=1)
    assert found["failed"] and "no space" in found["msg"]


def test_the_inventorys_image_is_kept(run_module: RunModule, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[docker_disk.Disk] = []

    def clean(disk: docker_disk.Disk, *, caches: bool, check: bool) -> list[docker_disk.Item]:
        seen.append(disk)
        assert caches and check
        return [docker_disk.Item("image", "vllm@sha256:old", 3 << 30)]

    monkeypatch.setattr(docker_disk.Disk, "clean", clean)
    (tmp_path / "docker.sock").touch()
    monkeypatch.setattr(node_cleanup, "Docker", lambda: docker_disk.Docker(tmp_path / "docker.sock"))
    found = run_module(node_cleanup, check=True, logs=False, keep=["vllm@sha256:new"])
    assert found["freed_gib"] == 3.0 and found["lines"] == ["image vllm@sha256:old: 3.0 GiB"]
    assert seen[0].keep == {"vllm@sha256:new"} and seen[0].repositories == {"vllm"}


def test_superseded_releases_are_removed_with_their_images(
    run_module: RunModule, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[docker_disk.Disk] = []
    paths = Paths(tmp_path)
    for number in (1, 2, 3):
        settings = Settings()
        instance = Instance(name="main", model="tiny-a", port=5005, accelerator="cpu")
        made = render(instance, [], StoredModel("/m/a", "r"), f"vllm-{number}@sha256:0", settings, number=number)
        files.write(paths.release("main", number) / "release.json", made.release.to_json())
    # A damaged superseded release does not keep the others.
    files.write(paths.release("main", 2) / "release.json", "")
    files.write_json(paths.instance("main"), {"release": 3})

    def clean(disk: docker_disk.Disk, *, caches: bool, check: bool) -> list[docker_disk.Item]:
        seen.append(disk)
        return []

    monkeypatch.setattr(docker_disk.Disk, "clean", clean)
    monkeypatch.setattr(node_cleanup, "Paths", lambda: paths)
    (tmp_path / "docker.sock").touch()
    monkeypatch.setattr(node_cleanup, "Docker", lambda: docker_disk.Docker(tmp_path / "docker.sock"))
    predicted = run_module(node_cleanup, check=True, logs=False, keep_releases=1)
    assert releases.numbers(paths, "main") == [1, 2, 3]
    done = run_module(node_cleanup, logs=False, keep_releases=1)
    assert done["lines"] == predicted["lines"] == ["release 1 of main", "release 2 of main"]
    assert releases.numbers(paths, "main") == [3]
    # Check mode and run keep only the image of release 3, and clean the repositories of removed releases.
    for disk in seen:
        assert disk.repositories == {"vllm-1"} and disk.without == {("main", 1), ("main", 2)}
        assert docker_disk.kept_images(paths, disk.without) == {"vllm-3@sha256:0"}
    assert not run_module(node_cleanup, logs=False, keep_releases=1)["changed"]


def test_copied_files_named_by_no_release_are_removed(
    run_module: RunModule, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    paths = Paths(tmp_path)
    instance = Instance(name="main", model="tiny-a", port=5005, accelerator="cpu")
    for number, digest in ((1, "a" * 64), (2, "b" * 64)):
        beside = Beside(mounts=[str(Paths().flag_file(digest))])
        made = render(instance, [], StoredModel("/m/a", "r"), "vllm@sha256:0", Settings(), beside=beside, number=number)
        files.write(paths.release("main", number) / "release.json", made.release.to_json())
        files.write(paths.flag_file(digest) / "t.jinja", "x")
    files.write(paths.flag_file("c" * 64) / "t.jinja", "x")
    files.write_json(paths.instance("main"), {"release": 2})
    monkeypatch.setattr(node_cleanup, "Paths", lambda: paths)
    given = {"logs": False, "images": False, "keep_releases": 1}
    predicted = run_module(node_cleanup, check=True, **given)
    assert len(list(paths.flag_files.iterdir())) == 3
    done = run_module(node_cleanup, **given)
    assert done["lines"][0] == predicted["lines"][0] == "release 1 of main"
    assert [path.name for path in paths.flag_files.iterdir()] == ["b" * 16]
    # A damaged release may name any copied file.
    files.write(paths.release("main", 2) / "release.json", "")
    files.write(paths.flag_file("c" * 64) / "t.jinja", "x")
    run_module(node_cleanup, **given)
    assert len(list(paths.flag_files.iterdir())) == 2


def test_a_cleaning_of_logs_alone_removes_no_copied_files(
    run_module: RunModule, journals: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    paths = Paths(tmp_path)
    copied = paths.flag_file("c" * 64) / "t.jinja"
    files.write(copied, "x")
    monkeypatch.setattr(node_cleanup, "Paths", lambda: paths)
    assert journals.is_dir() and run_module(node_cleanup, images=False)["changed"] is False and copied.exists()
    assert run_module(node_cleanup, logs=False)["changed"] and not copied.exists()
