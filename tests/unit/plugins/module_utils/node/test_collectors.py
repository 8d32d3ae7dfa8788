# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metrics that `inferctl metrics` gathers: what tools and files tell, and what is told where one fails."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.core.exposition import Samples
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import METRICS_TIMERS, Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instances import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Rendered, Settings, render
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import history, releases
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.drains import format_time
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.history import Served
from ansible_collections.baremetal.inference.plugins.module_utils.engine.units import metrics_units
from ansible_collections.baremetal.inference.plugins.module_utils.node.cli import inferctl
from ansible_collections.baremetal.inference.plugins.module_utils.node.collectors import catalogue, gpus, state
from ansible_collections.baremetal.inference.plugins.module_utils.node.collectors.catalogue import COLLECTORS, Collector
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor.host import Host
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery import state as recovery_state
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.state import Step
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored import StoredModel

REPORT = (Path(__file__).parents[1] / "hardware/gpu/data/report-580.xml").read_text()

MISSING = Outcome(None, failure="not_installed", message="nvidia-smi is not installed")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def plug(root: Path, *addresses: str) -> None:
    """GPUs on the bus."""
    for address in addresses:
        for name, text in {"vendor": "0x10de", "device": "0x2330", "class": "0x030200"}.items():
            write(root / f"sys/bus/pci/devices/{address}/{name}", text)


def release(paths: Paths, accelerator: str = "nvidia", wanted: tuple[str, ...] = ("0",)) -> None:
    """An instance whose release 1 is installed, proven and wanted."""
    instance = Instance(name="main", model="tiny-a", port=5005, accelerator=accelerator, gpus=wanted)

    def rendered(number: int) -> Rendered:
        stored = StoredModel("/mnt/models/tiny-a/ab12cd34ef56ab12", "ab12cd34ef56ab12")
        image = "registry.example.org/vllm@sha256:0123456789abcdef"
        return render(instance, ["--dtype", "float32"], stored, image, Settings(), number=number)

    releases.stage(paths, "main", rendered(0).release.id, rendered, pytest.fail)
    releases.activate(paths, "main", 1)
    releases.commit(paths, "main", 1)
    write(paths.instance("main"), json.dumps({"schema": 1, "release": 1}))


def collect(name: str, paths: Paths, answer: Outcome = MISSING) -> str:
    def run(command: Sequence[str], _timeout: float) -> Outcome:
        return answer if command[0] == "nvidia-smi" else MISSING

    page = catalogue.collect(COLLECTORS[name], Host(paths, run), now=lambda: 1777636800.0)
    assert not page.problem
    return page.text


def test_gpus_in_base_units(tmp_path: Path) -> None:
    """Two synthetic GPUs: one hot with a pending remap and half of its lanes, the other asks for a reset."""
    plug(tmp_path, "0000:1b:00.0", "0000:9d:00.0")
    release(Paths(tmp_path))
    text = collect("gpus", Paths(tmp_path), Outcome(0, REPORT))
    for line in (
        "inference_gpus_present 2",
        "inference_gpus_reported 2",
        'inference_gpu_throttled{gpu="0",reason="hw_thermal_slowdown"} 1',
        'inference_gpu_repair_pending{gpu="0"} 1',
        'inference_gpu_pcie_lanes{gpu="0"} 8',
        'inference_gpu_pcie_lanes_max{gpu="0"} 16',
        'inference_gpu_reset_wanted{gpu="1"} 1',
        'inference_instance_gpu{name="main",gpu="0"} 1',
        'inference_collector_success{collector="gpus"} 1',
        'inference_collector_timestamp_seconds{collector="gpus"} 1777636800',
    ):
        assert f"{line}\n" in text, line
    total = re.search(r'inference_gpu_memory_total_bytes\{gpu="0"\} (\d+)\n', text)
    assert total and int(total[1]) > 70 << 30 and int(total[1]) % gpus.MIB == 0
    assert "# TYPE inference_gpu_ecc_uncorrected_errors_total counter\n" in text


def test_a_gpu_that_the_driver_does_not_list(tmp_path: Path) -> None:
    """It has a name all the same, and nothing is told that nobody knows."""
    plug(tmp_path, "0000:1b:00.0")
    lost = Outcome(9, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.")
    text = collect("gpus", Paths(tmp_path), lost)
    assert "inference_gpus_present 1\n" in text and "inference_gpus_reported 0\n" in text
    assert 'inference_gpu_driver_error{kind="driver_not_loaded"} 1\n' in text
    assert 'inference_gpu_reported{gpu="0000:1b:00.0"} 0\n' in text
    assert "inference_gpu_temperature" not in text


def test_a_node_without_gpus_says_nothing_of_a_driver(tmp_path: Path) -> None:
    text = collect("gpus", Paths(tmp_path))
    assert "inference_gpus_present 0\n" in text and "inference_gpu_driver" not in text


def test_ports_of_rdma(tmp_path: Path) -> None:
    port = tmp_path / "sys/class/infiniband/mlx5_0/ports/1"
    for name, value in {"state": "4: ACTIVE", "rate": "400 Gb/sec (4X NDR)", "link_layer": "InfiniBand"}.items():
        write(port / name, value)
    write(port / "counters/link_downed", "3")
    write(port / "hw_counters/lifespan", "12")
    text = collect("rdma", Paths(tmp_path))
    assert "inference_rdma_ports 1\n" in text
    assert 'inference_rdma_port_active{device="mlx5_0",port="1"} 1\n' in text
    assert 'inference_rdma_port_rate_bytes_per_second{device="mlx5_0",port="1"} 50000000000\n' in text
    assert 'inference_rdma_port_errors_total{device="mlx5_0",port="1",counter="link_downed"} 3\n' in text
    assert "lifespan" not in text


def test_releases_and_a_reboot_that_is_due(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    release(paths)
    history.add(paths, "main", Served(1, "2026-05-01T12:00:00Z"))
    text = collect("state", paths)
    for line in (
        "inference_reboot_required 0",
        'inference_release_number{name="main"} 1',
        'inference_release_pending{name="main"} 0',
        'inference_release_proven{name="main"} 1',
        'inference_release_pinned{name="main"} 0',
        'inference_instance_declared{name="main"} 1',
        'inference_instance_gpus{name="main"} 1',
        'inference_release_since_timestamp_seconds{name="main"} 1777636800',
        'inference_release_info{name="main",release="1",model="tiny-a",revision="ab12cd34ef56",'
        'image="vllm@0123456789ab",accelerator="nvidia"} 1',
    ):
        assert f"{line}\n" in text, line
    write(paths.instance("main"), json.dumps({"schema": 1, "release": 2}))
    write(tmp_path / "run/reboot-required", "")
    text = collect("state", paths)
    assert 'inference_release_pending{name="main"} 1\n' in text and "inference_reboot_required 1\n" in text
    # A damaged file costs this instance its lines, and nobody else theirs.
    write(paths.instance("main"), "{")
    assert 'name="main"' not in collect("state", paths) and "inference_reboot_required 1" in collect("state", paths)


@pytest.mark.parametrize(
    ("image", "shown"),
    [
        ("vllm/vllm-openai:v0.32.0", "vllm-openai:v0.32.0"),
        ("127.0.0.1:5000/vllm@sha256:" + "ab" * 32, "vllm@" + "ab" * 6),
    ],
)
def test_an_image_is_short(image: str, shown: str) -> None:
    assert state.image_label(image) == shown


def test_recovery_as_time_goes_by(tmp_path: Path) -> None:
    """A step of the last hour costs budget, and an older one none. Where the role is not, nothing is told."""
    paths = Paths(tmp_path)
    release(paths)
    assert "inference_recovery" not in collect("recovery", paths)
    write(paths.recovery_settings, json.dumps({"schema": 1, "budget": 3}))
    now = datetime.now(UTC)
    for minutes, left in ((5, 2), (90, 3)):
        step = Step(format_time(now - timedelta(minutes=minutes)), "restart", "hung", "no answer")
        recovery_state.write(paths, recovery_state.State("main", steps=(step,), total=1))
        text = collect("recovery", paths)
        assert f'inference_recovery_budget_left{{name="main"}} {left}\n' in text
        assert 'inference_recovery_steps_total{name="main"} 1\n' in text
        assert 'inference_recovery_breaker_open{name="main"} 0\n' in text
    write(paths.recovery_settings, json.dumps({"schema": 1, "armed": False}))
    assert 'inference_recovery_armed{name="main"} 0\n' in collect("recovery", paths)


def test_the_doctor(tmp_path: Path) -> None:
    write(
        tmp_path / "etc/inference/doctor.json", '{"schema": 1, "off": ["driver", "rdma", "system", "docker", "engine"]}'
    )
    text = collect("doctor", Paths(tmp_path))
    assert 'inference_doctor_check_status{check="gpu-count"} 0\n' in text and "docker" not in text
    assert len(re.findall(r"^inference_doctor_verdict\{", text, re.MULTILINE)) == 4


def test_a_collector_that_breaks_or_hangs_tells_only_that(tmp_path: Path) -> None:
    hangs = threading.Event()

    def break_(_host: Host, samples: Samples) -> None:
        samples.add("inference_half", 1)
        raise RuntimeError("no such luck")

    def hang(_host: Host, samples: Samples) -> None:
        samples.add("inference_half", 1)
        hangs.wait(10)

    try:
        for gather, words in ((break_, "no such luck"), (hang, "no answer within 0.05 s")):
            one = Collector("gpus", {"inference_half": "Half."}, gather)
            page = catalogue.collect(one, Host(Paths(tmp_path)), limit=0.05)
            assert page.problem == words and "inference_half" not in page.text
            assert 'inference_collector_success{collector="gpus"} 0\n' in page.text
    finally:
        hangs.set()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = Paths(tmp_path)
    paths.textfiles.mkdir(parents=True)
    assert inferctl.main(["metrics", "--publish", "node"], paths) == 0
    assert sorted(path.name for path in paths.textfiles.iterdir()) == [
        "inference-gpus.prom",
        "inference-rdma.prom",
        "inference-recovery.prom",
        "inference-state.prom",
    ]
    assert capsys.readouterr().out == ""
    assert inferctl.main(["metrics", "rdma"], paths) == 0
    assert "inference_rdma_ports 0\n" in capsys.readouterr().out
    assert inferctl.main(["metrics", "gpu"], paths) == 2
    assert "gpus" in capsys.readouterr().err
    assert inferctl.main(["metrics", "--json", "state"], paths) == 0
    assert json.loads(capsys.readouterr().out)["collectors"][0]["problem"] == ""


def test_every_timer_asks_for_a_group_that_exists() -> None:
    units = metrics_units.render()
    assert {name.partition("@")[2].removesuffix(".timer") for name in METRICS_TIMERS} == set(catalogue.GROUPS)
    assert all(f"OnUnitInactiveSec={metrics_units.INTERVALS[name]}\n" in units[name] for name in METRICS_TIMERS)
    assert {one for group in catalogue.GROUPS.values() for one in group} == set(COLLECTORS)
