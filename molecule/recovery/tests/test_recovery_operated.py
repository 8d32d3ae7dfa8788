# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recovery as an operator uses it: the playbooks `recovery`, `drain` and `undrain`, mails, and alerts.

The mail server and Alertmanager are real."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from faults import given_up, more_steps, recorded, recovered, serves, steps
from node import Node, playbook, wait_for

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("fresh")]

ALERTMANAGER = "http://127.0.0.1:9093"


def operate(node: Node, playbook_name: str, **extra: Any) -> str:
    return playbook(node.name, name=f"baremetal.inference.{playbook_name}", **extra)


def mails(node: Node) -> str:
    """The mails that the mail server has delivered to root."""
    return node.run("cat /var/mail/* 2>/dev/null", check=False)


def active_alerts(node: Node) -> list[dict[str, Any]]:
    return list(json.loads(node.run(f"curl --silent --fail '{ALERTMANAGER}/api/v2/alerts?active=true'")))


def test_a_drain_has_a_reason_and_an_end(deb12: Node) -> None:
    operate(deb12, "drain", reason="new disk", until="2099-12-24T18:00:00+01:00")
    drain = recorded(deb12, "drain/main")
    assert (drain["reason"], drain["until"]) == ("new disk", "2099-12-24T17:00:00Z")
    # The agent's answer decides whether gateways send requests.
    ask = "exec 3<>/dev/tcp/127.0.0.1/5004; echo main >&3; timeout 2 cat <&3"
    wait_for("the agent answers", lambda: "drain" in deb12.run(f"bash -c '{ask}'", check=False), 20)
    assert "new disk" in deb12.run("inferctl status", check=False) and deb12.ask() == "I am tiny-a."
    operate(deb12, "undrain")
    assert recorded(deb12, "drain/main") == {}
    wait_for("the agent answers", lambda: "drain" not in deb12.run(f"bash -c '{ask}'", check=False), 20)


def test_a_drain_without_a_reason_is_refused(deb12: Node) -> None:
    assert "Give the reason of the drain" in playbook(deb12.name, check=False, name="baremetal.inference.drain")
    assert recorded(deb12, "drain/main") == {}


def test_a_disarmed_recovery_takes_no_step_against_a_hang(deb12: Node) -> None:
    operate(deb12, "recovery", action="disarm", instance="main")
    pid = deb12.engine_pid()
    deb12.run("docker pause vllm-main")
    wait_for("the agent sees the hang", lambda: recorded(deb12, "probe/main.json").get("verdict") == "hung", 90)
    time.sleep(15)
    assert steps(deb12) == [] and deb12.engine_pid() == pid
    said = operate(deb12, "recovery", action="status")
    assert '"armed": false' in said, said[-3000:]
    answered = more_steps(deb12)
    operate(deb12, "recovery", action="arm", instance="main")
    recovered(deb12, "hang while disarmed, then armed", answered)


def test_an_operator_can_order_a_step_while_recovery_is_disarmed(deb12: Node) -> None:
    operate(deb12, "recovery", action="disarm", instance="main")
    try:
        deb12.run("docker pause vllm-main")
        wait_for("the agent sees the hang", lambda: recorded(deb12, "probe/main.json").get("verdict") == "hung", 90)
        answered = more_steps(deb12)
        operate(deb12, "recovery", action="recover", instance="main")
        recovered(deb12, "hang, recovered by hand", answered)
    finally:
        operate(deb12, "recovery", action="arm", instance="main")


def test_an_environment_that_is_rubbish_is_repaired(deb12: Node) -> None:
    good = deb12.run("sha256sum /etc/inference/env/main.env")
    deb12.run("head -c 300 /dev/urandom >/etc/inference/env/main.env")
    began, answered = time.time(), more_steps(deb12)
    deb12.run("docker kill vllm-main")
    recovered(deb12, "environment file corrupted, engine killed", answered, began=began)
    assert deb12.run("sha256sum /etc/inference/env/main.env") == good


def test_a_mail_and_an_alert_report_that_recovery_gave_up(deb12: Node) -> None:
    packages = "exim4-daemon-light prometheus-alertmanager"
    install = f"apt-get install --yes --no-install-recommends {packages}"
    deb12.run(f"export DEBIAN_FRONTEND=noninteractive; apt-get update --quiet && {install}")
    operate(deb12, "recovery", recovery_mail_to="root@localhost", recovery_alertmanager=ALERTMANAGER)
    wait_for("Alertmanager answers", lambda: deb12.run(f"curl -sf {ALERTMANAGER}/-/ready", check=False), 60)
    assert active_alerts(deb12) == []

    with given_up(deb12):
        wait_for("a mail", lambda: "recovery has given up" in mails(deb12).replace("\n ", " "), 60)
        (alert,) = wait_for("an alert", lambda: active_alerts(deb12), 60)
    assert "port 5005 is taken by" in mails(deb12) and "inferctl recover main --reset" in mails(deb12)
    labels = {key: alert["labels"][key] for key in ("alertname", "node", "instance_name")}
    assert labels == {"alertname": "InferenceRecoveryGaveUp", "node": "deb12", "instance_name": "main"}
    assert "port 5005 is taken by" in alert["annotations"]["description"]
    sent = mails(deb12).count("\nSubject:")

    operate(deb12, "recovery", action="reset", instance="main")
    wait_for("the alert has ended", lambda: active_alerts(deb12) == [], 60)
    wait_for("the engine serves", lambda: serves(deb12))
    assert mails(deb12).count("\nSubject:") == sent == 1
