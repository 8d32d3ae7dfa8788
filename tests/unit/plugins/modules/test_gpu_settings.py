# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module gpu_settings and the command that runs at boot, with a script in the place of nvidia-smi."""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu_settings import boot
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu_settings.settings import Settings
from ansible_collections.baremetal.inference.plugins.module_utils.node.cli import inferctl
from ansible_collections.baremetal.inference.plugins.modules import gpu_settings as module

FAKE = Path(__file__).parents[1] / "module_utils/hardware/gpu_settings/fake_nvidia_smi.py"
PARTS = runpy.run_path(str(FAKE))

RunModule = Callable[..., dict[str, Any]]


def plug(root: Path, count: int = 2) -> None:
    (root / "gpus.json").write_text(json.dumps({"gpus": [PARTS["gpu"](number) for number in range(count)]}))


def limits(root: Path) -> list[float]:
    return [gpu["limit"] for gpu in json.loads((root / "gpus.json").read_text())["gpus"]]


@pytest.fixture
def run_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_module: RunModule) -> RunModule:
    """Call the module on a machine below tmp_path, which has two GPUs, and a nvidia-smi that is a program."""
    # -I and -S: without the packages of this Python, a program starts in half the time.
    (tmp_path / "nvidia-smi").write_text(f"#!{sys.executable} -IS\n{FAKE.read_text()}")
    (tmp_path / "nvidia-smi").chmod(0o755)
    plug(tmp_path)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    return partial(run_module, module, nvidia_smi=str(tmp_path / "nvidia-smi"))


@pytest.fixture
def run(run_program: RunModule, monkeypatch: pytest.MonkeyPatch) -> RunModule:
    """Does the same as run_program. The script runs in this process, because processes take longer."""

    def runner(program: str, _timeout: float) -> Callable[[list[str]], Outcome]:
        def call(arguments: list[str]) -> Outcome:
            code, said = PARTS["call"](Path(program).parent, arguments)
            return Outcome(code, f"{said}\n")

        return call

    monkeypatch.setattr(boot, "runner", runner)
    return run_program


def test_settings_are_applied_recorded_and_applied_again_at_boot(
    run_program: RunModule, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_program
    wanted = {
        "settings": {"power_limit_w": 500},
        "overrides": [{"gpu": 1, "power_limit_w": 300, "gpu_clocks_mhz": [9]}],
    }
    predicted = run(check=True, **wanted)
    assert not (tmp_path / "etc").exists() and limits(tmp_path) == [700, 700]
    done = run(**wanted)
    assert done["changed"] is predicted["changed"] is True
    assert done["changes"] == predicted["changes"] and done["diff"] == predicted["diff"]
    assert "GPU 1 (0000:1c:00.0): power_limit_w = 300" in done["diff"][0]["after"]
    assert run(**wanted)["changed"] is False and run(check=True, **wanted)["changed"] is False
    plug(tmp_path)
    assert inferctl.main(["gpu-settings"], Paths(tmp_path)) == 0
    assert limits(tmp_path) == [500, 300]
    assert "GPU 1 (0000:1c:00.0): gpu_clocks_mhz: not known -> 9" in capsys.readouterr().out
    assert inferctl.main(["gpu-settings", "--json"], Paths(tmp_path)) == 0
    # At each boot, a setting that cannot be read is set again.
    assert [change["setting"] for change in json.loads(capsys.readouterr().out)["changes"]] == ["gpu_clocks_mhz"]
    # A setting that is no longer declared is not set at the next boot.
    assert run()["changed"] is True
    assert not Paths(tmp_path).gpu_settings.exists()
    assert run()["changed"] is False
    assert inferctl.main(["gpu-settings"], Paths(tmp_path)) == 0


def test_mistakes_change_nothing(run: RunModule, tmp_path: Path) -> None:
    for check in (True, False):
        result = run(check, settings={"power_limit_w": 9000, "ecc": False}, overrides=[{"gpu": 5, "ecc": True}])
        assert result["failed"] is True
        assert result["msg"].startswith("gpu_settings: nothing was changed.\n- GPU 5: there is no such GPU")
        assert "9000.0: the card allows 200 to 700 W" in result["msg"]
    assert not (tmp_path / "etc").exists() and not (tmp_path / "calls.log").exists()


def test_a_driver_that_does_not_answer_is_an_error_outside_check_mode(
    run: RunModule, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gpus.json").write_text(json.dumps({"gpus": [], "broken": "No devices were found"}))
    assert "no_devices" in run(settings={"ecc": True})["msg"]
    predicted = run(check=True, settings={"ecc": True})
    assert predicted["changed"] is True and "no_devices" in predicted["unanswered"]
    # Mistakes that can be found without a GPU are still errors.
    assert run(check=True, settings={"mig_devices": ["3g.40gb"]})["failed"] is True
    # With apply=False, the settings are recorded for a driver that works only after the next boot.
    assert run(apply=False, settings={"ecc": False})["changed"] is True
    assert json.loads(Paths(tmp_path).gpu_settings.read_text())["settings"] == {"ecc": False}
    assert inferctl.main(["gpu-settings"], Paths(tmp_path)) == 1
    assert "no_devices" in capsys.readouterr().err
    plug(tmp_path)
    assert inferctl.main(["gpu-settings"], Paths(tmp_path)) == 0
    capsys.readouterr()
    result = run(settings={"ecc": False})
    assert (result["changed"], result["reboot_required"]) == (False, True)
    assert "ecc is on, and becomes off at the next reset" in result["reboot_reason"]


def test_a_gpu_that_fails_is_an_error_with_the_changes_that_were_made(run: RunModule, tmp_path: Path) -> None:
    gpus = [PARTS["gpu"](0, failing=["-pl"]), PARTS["gpu"](1)]
    (tmp_path / "gpus.json").write_text(json.dumps({"gpus": gpus}))
    result = run(settings={"power_limit_w": 500})
    assert result["failed"] is True and "Insufficient Permissions" in result["msg"]
    assert [change["index"] for change in result["changes"]] == [1]


@pytest.mark.parametrize("text", ["{}", "nonsense", '{"schema": 1}', '{"schema": 1, "settings": {"a": 1}}'])
def test_a_damaged_file_is_an_error_at_boot(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    file = Paths(tmp_path).gpu_settings
    file.parent.mkdir(parents=True)
    file.write_text(text)
    assert inferctl.main(["gpu-settings"], Paths(tmp_path)) == 1
    assert str(file) in capsys.readouterr().err


def test_an_invalid_time_limit_is_refused(run: RunModule) -> None:
    assert "timeout" in run(timeout=0)["msg"]


def test_every_setting_and_every_result_is_documented(run: RunModule) -> None:
    names = [field.name for field in fields(Settings)]
    options = yaml.safe_load(module.DOCUMENTATION)["options"]
    assert list(module.SETTINGS) == list(options["settings"]["suboptions"]) == names
    assert set(options["overrides"]["suboptions"]) == {"gpu", *names}
    returned = yaml.safe_load(module.RETURN)
    result = run(settings={"ecc": False})
    assert set(returned) == set(result) - {"changed", "diff", "invocation", "failed"}
    for part in ("changes", "pending"):
        assert set(returned[part]["contains"]) == set(result[part][0])


def test_the_role_documents_the_same_settings() -> None:
    role = Path(__file__).parents[4] / "roles/nvidia_driver/meta/argument_specs.yml"
    specified = yaml.safe_load(role.read_text())["argument_specs"]["main"]["options"]

    def kinds(options: dict[str, Any]) -> dict[str, Any]:
        return {name: {key: item[key] for key in item if key != "description"} for name, item in options.items()}

    assert kinds(specified["nvidia_driver_gpu_settings"]["options"]) == module.SETTINGS
    assert kinds(specified["nvidia_driver_gpu_overrides"]["options"]) == module.ARGUMENTS["overrides"]["options"]
