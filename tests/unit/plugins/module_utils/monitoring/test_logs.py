# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a machine ships its log."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.monitoring import logs

GOOD = logs.Settings("gpu7", "logs.example.com", 6514, "tls", "", "", ("vllm@*", "ssh.service", "kernel"))


def test_good_settings_have_no_problem() -> None:
    for server in (GOOD.server, "192.0.2.9", "2001:db8::9", "::1"):
        for protocol in ("tls", "tcp"):
            assert replace(GOOD, server=server, protocol=protocol).problems() == []


@pytest.mark.parametrize(
    ("changed", "key"),
    [
        ({"server": "logs.example.com:514"}, "server"),
        ({"server": 'a" b'}, "server"),
        ({"peer": "*.example.com"}, "peer"),
        ({"port": 0}, "port"),
        ({"protocol": "tcp", "ca": "/etc/ca.pem"}, "ca"),
        ({"protocol": "tcp", "peer": "x"}, "peer"),
        ({"ca": "ca.pem"}, "ca"),
        ({"ca": '/etc/"'}, "ca"),
        ({"units": ()}, "units"),
        ({"units": ("vllm@main", "a|b")}, "units"),
    ],
)
def test_a_wrong_setting_of_log_shipping_is_a_problem_of_its_variable(changed: dict[str, object], key: str) -> None:
    found = [problem.key for problem in replace(GOOD, **changed).problems()]  # type: ignore[arg-type]
    assert found == [f"monitoring_log_{key}"]


def test_the_pattern_finds_the_shipped_units_by_name() -> None:
    pattern = logs.unit_pattern(["vllm@*", "ssh.service", "kernel", "a.b", r"x\x2d?"])
    for name in ("vllm@main.service", "vllm@.timer", "ssh.service", "kernel", "a.b.path", r"x\x2dy.mount"):
        assert re.search(pattern, name), name
    for name in ("xvllm@main.service", "sshd.service", "ssh.serviced", "aXb", "docker.service", ".service", ""):
        assert not re.search(pattern, name), name


def test_with_tls_the_name_of_the_log_server_is_checked() -> None:
    text = logs.config(GOOD, "0123")
    assert f'defaultNetstreamDriverCAFile="{logs.AUTHORITIES}"' in text and f"{logs.AUTHORITIES} is 0123." in text
    assert 'streamDriverPermittedPeers="logs.example.com"' in text and 'streamDriverAuthMode="x509/name"' in text
    assert 'streamDriverPermittedPeers="other"' in logs.config(replace(GOOD, peer="other"))
    plain = logs.config(replace(GOOD, protocol="tcp"))
    assert "gtls" not in plain and "CAFile" not in plain


def test_a_quote_in_the_name_of_the_machine_is_escaped() -> None:
    assert r"set $.line!host = 'it\'s';" in logs.config(replace(GOOD, host="it's"))


def test_node_exporter_reports_the_state_of_the_units_for_log_shipping() -> None:
    """An alert needs the state of these units, so node_exporter must report it."""
    from ansible_collections.baremetal.inference.plugins.module_utils.monitoring import exporters

    watched = rf"({'|'.join(exporters.WATCHED_UNITS)})\.(service|timer)"
    assert all(re.fullmatch(watched, name) for name in logs.units())
