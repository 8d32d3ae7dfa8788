# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules for instances, each mistake with its message."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instances import (
    MAX_GPUS,
    load_instances,
    needed_entries,
)
from ansible_collections.baremetal.inference.plugins.module_utils.engine.inventory import with_models
from ansible_collections.baremetal.inference.plugins.module_utils.engine.served import served_models
from ansible_collections.baremetal.inference.plugins.module_utils.models.flags.catalogue import choose
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry import entries

MODELS: dict[str, Any] = {
    "tiny-a": {"model": "/models/tiny-a", "dtype": "float32"},
    "big": {"model": "/models/big", "tensor-parallel-size": 4, "pipeline-parallel-size": 2},
    "wide": {"model": "/models/wide", "data-parallel-size": "2"},
    "pair": {"model": "/models/pair", "tensor-parallel-size": 2},
}


GANG: dict[str, Any] = {"nodes": ["n1", "n2"], "gang_port": 5110, "rendezvous_port": 29510}


def instance(**changes: Any) -> dict[str, Any]:
    return {"name": "main", "model": "tiny-a", "port": 5005, **changes}


def load(instances: Any, models: Any = None) -> list[Instance]:
    return load_instances(instances, entries.read(MODELS if models is None else models, choose("0.32.0")))


def messages(instances: list[Any], models: dict[str, Any] | None = None) -> str:
    with pytest.raises(InputError) as caught:
        load(instances, models)
    return str(caught.value)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"model": "tiny-aa"}, "did you mean 'tiny-a'? known: big, pair, tiny-a, wide"),
        ({"name": "Main"}, "lower-case letters"),
        ({"name": "a" * 41}, "1 to 40"),
        ({"name": "../x"}, "lower-case letters"),
        ({"name": "main\n"}, "lower-case letters"),
        ({"port": "5005"}, "from 1024 to 65535"),
        ({"port": 80}, "from 1024 to 65535"),
        ({"port": True}, "from 1024 to 65535"),
        ({"accelerator": "amd"}, "one of nvidia, cpu"),
        ({"state": "gone"}, "one of present, absent"),
        ({"gpus": "0"}, "a number from 0 to 64, or a list"),
        ({"gpus": -1}, "a number from 0 to 64, or a list"),
        ({"modle": "x"}, "did you mean 'model'?"),
        ({"max-model-len": 4096}, "belongs to the model: write 'max-model-len' in its entry of the model registry"),
        ({"model": None}, "model: is required: an entry of the model registry, known: "),
        ({"name": "big"}, "the name of another model"),
        ({"port": 9100}, "belongs to node_exporter"),
        ({"bridge_port": 80}, "from 1024 to 65535"),
        ({"bridge_port": 8000}, "belongs to the gateway"),
        ({"bridge_port": 5005}, "is used twice: instances[0] (main) has it already"),
        ({"model": "big", "gpus": 4}, "needs 8"),
        ({"model": "big", "gpus": [0]}, "needs 8"),
        ({"gpus": 0}, "needs 1"),
        ({"gpus": MAX_GPUS + 1}, f"from 0 to {MAX_GPUS}"),
        ({"model": ["tiny-a"]}, "is not in the model registry"),
        ({"gang_port": 5110}, "belongs to an instance over several nodes: add nodes"),
        ({**GANG, "model": "pair", "gang_port": 9100}, "gang_port: 9100: belongs to node_exporter"),
        ({**GANG, "model": "pair", "rendezvous_port": 5110}, "rendezvous_port: 5110: is used twice"),
        ({**GANG, "model": "pair", "gang_port": 5005}, "gang_port: 5005: is used twice"),
        ({**GANG, "model": "pair", "gpus": 2}, "must be 1, the GPUs on each of 2 nodes"),
        ({"executor": "ray"}, "belongs to an instance over several nodes: add nodes"),
        ({**GANG, "model": "pair", "executor": "slurm"}, "executor: 'slurm': must be one of mp, ray"),
        ({**GANG, "model": "pair", "executor": "ray", "gang_port": 29511}, "29511 is gang_port of instances[0] (main)"),
    ],
)
def test_each_mistake_of_an_instance_is_named(changes: dict[str, Any], text: str) -> None:
    assert text in messages([instance(**changes)])


def test_an_executor_takes_no_port_of_another_instance() -> None:
    ray = instance(**GANG, model="pair", executor="ray")
    others = [instance(name="a", port=29600), instance(name="b", port=5006, bridge_port=29601)]
    text = messages([ray, *others])
    assert "29600 is port of instances[1] (a)" in text and "29601 is bridge_port of instances[2] (b)" in text
    assert len(load([{**ray, "executor": "mp"}, *others])) == 3


def test_an_executor_takes_no_port_of_the_collection() -> None:
    ray = instance(**{**GANG, "rendezvous_port": 9000}, model="pair", executor="ray")
    where = "instances[0] (main): rendezvous_port: 9000"
    begin = f"{where}: is the first of the ports to 9127 that executor ray needs: port "
    owners = ("9090 belongs to Prometheus", "9093 belongs to Alertmanager", "9100 belongs to node_exporter")
    assert messages([ray]).splitlines() == [f"{begin}{owner}: take another rendezvous_port" for owner in owners]
    assert len(load([{**ray, "executor": "mp"}])) == len(load([{**ray, "state": "absent"}])) == 1
    # The first port is rendezvous_port itself: only the check of this key reports it.
    assert messages([{**ray, "rendezvous_port": 9100}]).count("9100") == 1


def test_every_mistake_is_reported_at_once() -> None:
    text = messages([instance(model="nope", port=1), instance(name="main")], {**MODELS, "bad": {}})
    for part in ("models.bad", "'nope'", "from 1024", "is used twice"):
        assert part in text


def test_a_name_and_a_port_are_used_once() -> None:
    text = messages([instance(), instance(name="other"), instance(port=5006)])
    assert "instances[1] (other): port: 5005: is used twice: instances[0] (main)" in text
    assert "instances[2] (main): name: 'main': is used twice: instances[0] (main)" in text


def test_gpus_are_assigned() -> None:
    loaded = load(
        [
            instance(name="a", gpus=["0", 2]),
            instance(name="b", port=5006, gpus=2),
            instance(name="c", port=5007, model="big"),
            instance(name="d", port=5008, accelerator="cpu"),
            instance(name="e", port=5009, state="absent", model="gone"),
            instance(name="f", port=5010, model="wide"),
        ]
    )
    assert [item.gpus for item in loaded] == [
        ("0", "2"),
        ("1", "3"),
        tuple(str(index) for index in range(4, 12)),
        (),
        (),
        ("12", "13"),
    ]


def test_a_gang_takes_its_share_of_the_gpus_of_a_node() -> None:
    loaded = load([instance(model="big", **GANG), instance(name="next", port=5006)])
    assert [item.gpus for item in loaded] == [("0", "1", "2", "3"), ("4",)]
    assert (loaded[0].nodes, loaded[0].gang_port, loaded[0].rendezvous_port) == (("n1", "n2"), 5110, 29510)
    assert (loaded[1].nodes, loaded[1].gang_port) == ((), None)
    # The entry leaves the division open: the plan proposes one.
    assert [item.gpus for item in load([instance(**GANG, gpus=8)])] == [tuple(map(str, range(8)))]


def test_a_gpu_serves_one_instance() -> None:
    text = messages([instance(name="a", gpus=[0, 1]), instance(name="b", port=5006, gpus=[1])])
    assert "gpus: '1': is given to a already" in text


def test_an_absent_instance_needs_no_model() -> None:
    instances = [instance(), instance(name="old", model="big", state="absent"), "a mistake"]
    assert served_models(MODELS, instances) == {"tiny-a": MODELS["tiny-a"]}


def test_an_absent_instance_may_have_the_name_of_a_model() -> None:
    """No engine serves under the name of an absent instance, so no client gets another model by this name."""
    absent = {"name": "big", "port": 5006, "state": "absent"}
    assert [item.state for item in load([instance(), absent])] == ["present", "absent"]
    assert "the name of another model" in messages([instance(), {**absent, "state": "present", "model": "wide"}])


def test_a_replaced_model_takes_no_gpu_of_other_instances() -> None:
    instances: list[Any] = [instance(), instance(name="next", port=5006), "odd"]
    other = [instances[0], {**instances[1], "model": "wide"}, "odd"]
    assert with_models(instances, {"next": "wide", "gone": "big"}) == other
    assert [one.gpus for one in load(other[:2])] == [("0",), ("1", "2")]


VARIANTS: dict[str, Any] = {
    **MODELS,
    "short": {"base": "tiny-a", "max-model-len": 128},
    "shorter": {"base": "short", "max-model-len": 64},
    "lost": {"base": "nowhere"},
    "round": {"base": "about"},
    "about": {"base": "round"},
}


def test_a_node_needs_the_entries_of_its_instances_and_their_bases() -> None:
    models = {name: VARIANTS[name] for name in ("tiny-a", "big", "short", "shorter")}
    loaded = load([instance(model="shorter"), instance(name="old", port=5006, model="big", state="absent")], models)
    assert sorted(needed_entries(models, loaded)) == ["short", "shorter", "tiny-a"]


def test_a_draft_is_needed_with_its_base() -> None:
    models = {
        **MODELS,
        "drafted": {"base": "tiny-a", "speculative-config": {"model": "small", "num_speculative_tokens": 2}},
        "small": {"base": "wide"},
    }
    loaded = load([instance(model="drafted")], models)
    assert sorted(needed_entries(models, loaded)) == ["drafted", "small", "tiny-a", "wide"]


def test_a_variant_gets_gpus_by_its_own_flags_and_those_of_its_base() -> None:
    models = {**MODELS, "alike": {"base": "big"}, "narrow": {"base": "big", "pipeline-parallel-size": 1}}
    loaded = load([instance(model="alike"), instance(name="b", port=5006, model="narrow")], models)
    assert [len(item.gpus) for item in loaded] == [8, 4]


def test_more_gpus_than_any_machine_has_are_refused() -> None:
    models = {"huge": {"model": "/m", "tensor-parallel-size": 1024, "data-parallel-size": 1024}}
    assert "more than a machine has" in messages([instance(model="huge")], models)


def test_a_system_prompt_is_refused_only_where_it_would_be_served() -> None:
    """An entry that no instance serves may have the mistake. An entry that several instances serve is named once."""
    pirate = {"base": "tiny-a", "system-prompt": "Talk like a pirate."}
    assert [item.model for item in load([instance(model="pirate")], {**MODELS, "pirate": pirate})] == ["pirate"]
    models = {**MODELS, "pirate": {**pirate, "chat-template": "/other.jinja"}}
    assert [item.model for item in load([instance()], models)] == ["tiny-a"]
    assert load([instance(), instance(name="old", port=5006, model="pirate", state="absent")], models)
    text = messages([instance(model="pirate"), instance(name="two", port=5006, model="pirate")], models)
    assert text.count("models.pirate: chat-template: '/other.jinja': cannot go with system-prompt") == 1


def test_a_variant_with_a_prompt_has_a_directory_of_its_own() -> None:
    models = {**MODELS, "short": {"base": "tiny-a"}, "bot": {"base": "short", "system-prompt": "Be kind."}}
    registry = entries.read({**models, "child": {"base": "bot"}}, choose("0.32.0"))
    served = {name: registry.entries[name].served_as for name in ("tiny-a", "short", "bot", "child")}
    assert served == {"tiny-a": "tiny-a", "short": "tiny-a", "bot": "bot", "child": "child"}


def test_an_adapter_is_served_by_the_instances_of_its_base() -> None:
    models = {**MODELS, "legal": {"base": "tiny-a", "adapter": "/srv/legal"}}
    words = messages([instance(model="legal")], models)
    assert "model: 'legal': is an adapter, which the instances of its base serve: name tiny-a" in words
    loaded = load([instance()], models)
    assert set(needed_entries(models, loaded)) == {"tiny-a", "legal"}
