# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Updates that stop before any engine is touched. Both nodes serve."""

from __future__ import annotations

from fleet import Fleet, instances, unharmed


def test_an_image_that_does_not_exist_stops_the_update_before_any_swap(fleet: Fleet) -> None:
    fleet.wait_up()
    pids = [node.engine_pid() for node in fleet.nodes]
    image = f"inference-registry:5000/vllm-cpu@sha256:{'0' * 64}"
    said: list[str] = []
    unharmed(fleet.load().during(lambda: said.append(fleet.update(check=False, engine_image=image))), at_least=5)
    assert "0" * 64 in said[0]
    assert [node.engine_pid() for node in fleet.nodes] == pids
    assert all(instance["lock"] is None for instance in fleet.releases().values())


def test_an_unknown_instance_is_refused_with_a_known_name(fleet: Fleet) -> None:
    output = fleet.update(check=False, instances=instances("tiny-b"), instance="mian")
    assert "did you mean 'main'" in output


def test_arguments_that_the_engine_refuses_stop_the_update_before_any_swap(fleet: Fleet) -> None:
    pids = [node.engine_pid() for node in fleet.nodes]
    # The flag is valid. Only the engine itself finds that it has no parser of this name.
    entry = {"model": "controller:{{ demo_cache }}/models/tiny-a", "dtype": "float32", "max-model-len": 512}
    models = {"refused": {**entry, "enable-auto-tool-choice": True, "tool-call-parser": "none-of-all"}}
    output = fleet.update(check=False, models=models, instances=instances("refused"))
    assert "none-of-all" in output
    assert [node.engine_pid() for node in fleet.nodes] == pids
