# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the files of an inventory for discovered machines. Private to the collection. Pure, except that it reads the
table of drivers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.controller import ON_CONTROLLER
from ...hardware.driver.compatibility import load
from . import layout, names, node, record, serving, storage, text
from .finding import Proposal, Question, Variable
from .machine import SSH_PORT, Machine, read

VAULT = "group_vars/all/vault.yml"

KEY, CLIENT_KEY = "vault_vllm_api_key", "vault_gateway_client_key"
"""The variables of the vault."""

IMAGE = "vllm/vllm-openai:v0.33.0"
"""The image whose flags the newest catalogue has."""

IMAGE_REASON = (
    "The engines' image, by digest. Before a node has the image, a tag such as :v0.33.0 before the digest, or the "
    "variable engine_version, gives the version for which flags are checked."
)


NETWORK = "ADDRESS/24"
"""Stands for a network that a person must name."""

NO_NODE = (
    "no machine has an NVIDIA GPU for engines, so no machine serves a model: add a machine with a GPU to -i. `make "
    "demo` in a checkout shows an engine on a CPU"
)


@dataclass(frozen=True)
class Options:
    """The input of a discovery besides the results of the machines."""

    login: str = ""
    """The account of the logins; empty if unknown."""
    wanted: layout.Wanted | None = None
    image: str = ""
    """The engines' image by digest; empty if the operator names none."""
    cuda: str = ""
    """The CUDA version of this image; empty if unknown."""
    month: str = ""
    """The present month, as 2026-11."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The names of an earlier inventory, by address and by name."""


@dataclass
class Discovery:
    """The result of a discovery."""

    files: dict[str, str] = field(default_factory=dict)
    """The files of the inventory, by path."""
    lines: list[str] = field(default_factory=list)
    """What the operator must know, a line for each finding."""
    questions: list[Question] = field(default_factory=list)
    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The record of each machine, by its name in the inventory."""
    proposed: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The proposed variables of each machine, by its name."""


def discover(results: Mapping[str, Mapping[str, Any]], options: Options) -> Discovery:
    """The inventory for the machines that a run has looked at. `results` are by the machine's name in this run."""
    found = Discovery()
    machines = []
    for entry, result in results.items():
        machine = read(entry, result)
        if isinstance(machine, str):
            found.lines.append(f"{entry}: is left out: {machine}")
        else:
            machines.append(machine)
    machines, lines = names.without_twins(machines)
    found.lines += lines
    named, naming = names.name_all(machines, options.names)
    found.lines += naming.findings
    found.questions += naming.questions
    _Writer(found, named, options).write()
    return found


def vault(secret: Callable[[], str]) -> str:
    """The file with the secrets. `secret` makes a new secret."""
    secrets = [
        Variable(KEY, secret(), "Between gateways and engines."),
        Variable(CLIENT_KEY, secret(), "The key of client-1 at the gateway."),
    ]
    return text.file("Generated secrets. Encrypt the file with ansible-vault encrypt.", text.variables(secrets))


class _Writer:
    """Writes the files of one discovery."""

    def __init__(self, found: Discovery, named: Mapping[str, Machine], options: Options) -> None:
        self.found = found
        self.named = named
        self.options = options
        self.usable = {name: machine for name, machine in named.items() if not machine.unsupported}
        self.nodes = {name: machine for name, machine in self.usable.items() if machine.usable_gpus}
        without = [name for name in self.usable if name not in self.nodes]
        self.gateways = without[:1] or list(self.nodes)[:1]
        self.spare = without[1:]

    def write(self) -> None:
        known = load()
        addresses = [address for machine in self.named.values() for address in set(machine.addresses)]
        taken = [address for address in addresses if addresses.count(address) > 1]
        earlier = self.options.names.values()
        proposed = {
            name: node.propose(
                name,
                serving.set_up(machine) if name in earlier else machine,
                taken,
                known,
                self.options.cuda,
                self.options.month,
            )
            for name, machine in self.usable.items()
        }
        plan = layout.plan(self.nodes, self.options.wanted)
        shared, own = node.split({name: proposed[name].shared for name in self.nodes})
        for name, machine in self.named.items():
            self.found.lines.append(f"{name} ({machine.entry}): {machine.summary()}")
            if machine.unsupported:
                self.found.lines.append(f"{name}: is left out of all groups: {machine.unsupported}")
            else:
                self.found.lines += [f"{name}: {line}" for line in dict.fromkeys(proposed[name].findings)]
            self.found.records[name] = record.record(machine)
        if self.usable and not self.nodes:
            self.found.lines.append(NO_NODE)
        self.found.lines += plan.proposal.findings
        self.ask(proposed, plan)
        self.found.files["hosts.yml"] = self.hosts()
        self.site(plan)
        if self.nodes:
            self.found.files["group_vars/inference/main.yml"] = self.inference(shared, plan)
        for name in self.usable:
            self.host(name, proposed[name], own.get(name, Proposal()), shared, plan)
        self.found.files[names.DECIDE] = self.decide()

    def ask(self, proposed: Mapping[str, node.Proposed], plan: layout.Layout) -> None:
        """Collect all questions, those for all machines first. The same question is asked once."""
        general = Proposal()
        general.ask("common_admins", names.DECIDE, "who may log in, with which public keys?")
        general.ask(
            "common_firewall_ssh_sources", names.DECIDE, "from which networks may people log in? If not set: from all"
        )
        general.ask("gateway_clients", names.DECIDE, "from which networks do clients come? If not set: from all")
        if not self.options.image:
            general.ask(
                "engine_image",
                names.DECIDE,
                f"which image, by digest? `docker buildx imagetools inspect {IMAGE}` prints the digest, and "
                "hub.docker.com shows it under Tags",
            )
        questions = [*general.questions, *self.found.questions]
        for one in proposed.values():
            questions += [*one.own.questions, *one.shared.questions]
        self.found.questions = list(dict.fromkeys([*questions, *plan.proposal.questions]))

    def hosts(self) -> str:
        """hosts.yml: machines, addresses and groups."""
        lines = ["all:", "  vars:"]
        if self.options.login:
            lines += [
                "    # An account that may use sudo without a password, or root.",
                f"    ansible_user: {text.scalar(self.options.login)}",
            ]
        lines += [
            "    # Debian's own Python has the modules that Ansible needs on the machines.",
            "    ansible_python_interpreter: /usr/bin/python3",
        ]
        lines += ["  children:", "    # The machines with GPUs.", "    inference:", *self.members(self.nodes)]
        reason = (
            "has no GPU"
            if self.gateways and self.gateways[0] not in self.nodes
            else "the first machine; a machine of its own is better"
        )
        lines += [f"    # What clients reach: {reason}.", "    gateway:", *self.members(self.gateways)]
        # Without the group, Ansible warns in each run that no host matches.
        lines += [
            "    # For metrics and alerts, name a host here: docs/monitoring.md",
            "    monitoring:",
            "      hosts: {}",
        ]
        if self.spare:
            lines += [
                "    # Machines without a GPU: add each to the group gateway or monitoring.",
                "    spare:",
                *self.members(self.spare),
            ]
        lines += [
            f"# left out: {name} ({machine.entry}) {machine.unsupported}"
            for name, machine in self.named.items()
            if machine.unsupported
        ]
        return text.file("The machines, with their groups.", "\n".join(lines) + "\n")

    def members(self, members: Mapping[str, Machine] | Sequence[str]) -> list[str]:
        if not members:
            return ["      hosts: {}"]
        lines = ["      hosts:"]
        for name in members:
            machine = self.named[name]
            lines += [
                f"        # {machine.summary()}",
                f"        {text.scalar(name)}:",
                f"          ansible_host: {text.scalar(machine.address)}",
            ]
            lines += [f"          ansible_port: {machine.port}"] if machine.port != SSH_PORT else []
        return lines

    def site(self, plan: layout.Layout) -> None:
        """The files for all machines together, in group_vars/all."""
        image = [Variable("engine_image", self.options.image, IMAGE_REASON)] if self.options.image else []
        if self.options.cuda:
            image.append(Variable("engine_cuda", self.options.cuda, "The CUDA version of the image."))
            image.append(Variable("nvidia_driver_cuda", "{{ engine_cuda }}", "A driver that cannot run it is refused."))
        key = Variable(
            "vllm_api_key", f"{{{{ {KEY} }}}}", "The gateways' key at the engines. The value is in vault.yml."
        )
        self.found.files["group_vars/all/main.yml"] = text.file("The site.", text.variables([*image, key]))
        models = Variable(
            "models", plan.models, "The model registry. Every key that is not the collection's is a flag of the engine."
        )
        parts = [text.variables([models])]
        entry = next(iter(plan.models.values()), {})
        if entry and "revision" not in entry and not str(entry["model"]).startswith(("/", ON_CONTROLLER)):
            parts.append(text.comment("In the entry: revision: the commit's 40 digits"))
        self.found.files["group_vars/all/models.yml"] = text.file("The models.", *parts)
        client = {"name": "client-1", "key": f"{{{{ {CLIENT_KEY} }}}}"}
        keys = Variable(
            "gateway_keys", [client], "The gateway's clients: an entry for each, with its own key from vault.yml."
        )
        tls = Variable(
            "gateway_tls",
            "ca",
            "A CA of the site's own signs the gateway's certificate. Clients must trust it: docs/tls.md",
        )
        self.found.files["group_vars/all/gateway.yml"] = text.file("The gateway.", text.variables([keys, tls]))

    def inference(self, shared: Proposal, plan: layout.Layout) -> str:
        """Variables of all nodes."""
        parts = [text.variables([*shared.variables, *self.instances(plan)])]
        return text.file("What all machines with GPUs have in common.", *parts)

    def instances(self, plan: layout.Layout) -> list[Variable]:
        """The instances, if they are the same on all nodes."""
        lists = [plan.instances.get(name, []) for name in self.nodes]
        if all(one == lists[0] for one in lists):
            reasons = list(dict.fromkeys(plan.reasons.values()))
            return [
                Variable("instances", lists[0], f"The engines of each node. {'. '.join(reasons) or 'Not planned'}.")
            ]
        return []

    def host(self, name: str, proposed: node.Proposed, own: Proposal, shared: Proposal, plan: layout.Layout) -> None:
        """The files of one machine."""
        variables = [*proposed.own.variables, *own.variables]
        if name in self.nodes and not self.instances(plan):
            reason = plan.reasons.get(name, "Not planned")
            variables.append(
                Variable("instances", plan.instances.get(name, []), f"The engines of this node. {reason}.")
            )
        parts = [text.variables(variables)]
        machine = self.named[name]
        if proposed.disks:
            parts.append(text.disabled(proposed.disks, storage.reason(machine)))
        self.found.files[f"host_vars/{name}/main.yml"] = text.file(f"{name}: {machine.summary()}", *parts)
        self.found.files[f"host_vars/{name}/{record.VARIABLE}.yml"] = text.file(
            "What the machine had. The next discovery compares the machine with this record.",
            text.value({record.VARIABLE: self.found.records[name]}),
            header="Written by baremetal.inference.discover, and written anew with -e record=true.",
        )
        used = [*variables, *(shared.variables if name in self.nodes else ())]
        self.found.proposed[name] = {variable.name: variable.value for variable in used}
        if name in plan.instances:
            self.found.proposed[name] |= {"instances": plan.instances[name], "models": plan.models}

    def decide(self) -> str:
        """The questions, and the variables that answer those about all machines."""
        title = (
            "Questions that only a person can answer. Answer each question in the file that it names, then delete the "
            "question from the list. baremetal.inference.site refuses to run while a question is left. "
            "The empty list may stay."
        )
        # root cannot be an admin: the role common refuses the name.
        admin = self.options.login if self.options.login not in ("", "root") else "admin"
        # The playbook site refuses each of these values, so that no example becomes an answer.
        examples: dict[str, Any] = {
            "common_admins": [{"name": admin, "keys": ["ssh-ed25519 AAAA… you@example.com"]}],
            "common_firewall_ssh_sources": [NETWORK],
            "gateway_clients": [NETWORK],
        }
        if not self.options.image:
            examples["engine_image"] = f"{IMAGE}@sha256:…"
        return text.file(
            title,
            text.value({"decide": [str(question) for question in self.found.questions]}),
            text.disabled(examples, "Answers for all machines: enable the lines, and set your values."),
        )
