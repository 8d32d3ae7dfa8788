# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A text that leaves a node has no secrets and no prompts, but keeps the facts for support."""

from __future__ import annotations

import json

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.node import redaction

KEY = "the-key-of-this-engine"


@pytest.mark.parametrize(
    ("given", "secret"),
    [
        (f"started with {KEY}", KEY),
        ("curl -H 'Authorization: Basic dXNlcjpwYXNz' http://127.0.0.1", "dXNlcjpwYXNz"),
        ("Authorization: Bearer abcdef0123456789", "abcdef0123456789"),
        ('headers: {"authorization": "Token abcdef"}', "abcdef"),
        ("Cookie: session=0123456789abcdef", "0123456789abcdef"),
        ("proxy http://mira:hunter2@proxy.example:3128", "hunter2"),
        ("proxy http://mira:12/hunter2@proxy.example:3128", "hunter2"),
        ("proxy http://mira:12@hunter2@proxy.example:3128", "hunter2"),
        ("proxy http://mira:@proxy.example:3128 https://:hunter2@other.example", "hunter2"),
        ("POST https://hooks.slack.example/services/T0/B0/xyz", "T0/B0/xyz"),
        ("GET /model.safetensors?X-Amz-Signature=0a1b2c&x=1", "0a1b2c"),
        ("GET /file?access_token=0a1b2c", "0a1b2c"),
        ("HF_TOKEN=hunter2", "hunter2"),
        ('{"accessToken": "hunter2"', "hunter2"),
        ("password: 'hunter2 and more'", "and more"),
        ('"secret": "hunter2"', "hunter2"),
        ("vllm serve --api-key hunter2 --port 5005", "hunter2"),
        ("gateway --admin-password hunter2", "hunter2"),
        ("cloning with ghp_abcdefghijklmnop0123", "ghp_abcdefghijklmnop0123"),
        ("fetching with hf_abcdefghijklmnop0123", "hf_abcdefghijklmnop0123"),
        ("key sk-abcdefghijklmnop0123", "sk-abcdefghijklmnop0123"),
        ("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl", "eyJzdWIiOiIxMjM0In0"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc\n-----END RSA PRIVATE KEY-----", "MIIEow"),
        ("-----BEGIN PRIVATE KEY-----\nMIIEow", "MIIEow"),
        ("Received request cmpl-1: prompt: 'my medical history', params", "medical"),
        ('{"messages": [{"role": "user", "content": "my medical history"}]}', "medical"),
        ("prompt_token_ids: [1, 2, 77]", "77"),
        ("system-prompt: my medical history", "medical"),
        ("swap: probe failed: golden prompt 'my medical history' to legal: answered 'no'", "medical"),
        ('golden prompt "it\'s my medical history": answered', "medical"),
    ],
)
def test_secrets_and_prompts_are_left_out(given: str, secret: str) -> None:
    assert secret not in redaction.text(f"before\n{given}\nafter", [KEY])
    assert redaction.text(f"before\n{given}", [KEY]).startswith("before\n")


@pytest.mark.parametrize(
    "given",
    [
        "max_tokens=60, maxTokens=60, detoken=1, total_tokens: 7, tokenizer=/mnt/models/tiny-a, num_prompt_tokens 12",
        "NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus.",
        "http://127.0.0.1:5005/v1/completions?x=1",
        "Avg prompt throughput: 0.0 tokens/s",
        "2026-05-04T03:00:00+00:00 gpu-1 docker[12]: level=info msg=started",
        "/dev/nvme0n1 on /mnt/nvme type ext4 (rw,relatime)",
    ],
)
def test_facts_for_support_stay(given: str) -> None:
    assert redaction.text(given, [KEY]) == given + "\n"


def test_a_document_stays_valid_json() -> None:
    given = {
        "models": {"bot": {"system-prompt": "You are kind.", "base": "tiny-a", "max-model-len": 512}},
        "webhook_token": "hunter2",
        "limit": None,
        "secret": "",
        "words": f"with {KEY}",
        "Env": ["VLLM_API_KEY=x", "HOME=/root"],
        "messages": [{"role": "user"}],
    }
    found = json.loads(redaction.document(json.dumps(given), [KEY]))
    assert found == {
        "models": {"bot": {"system-prompt": "(left out)", "base": "tiny-a", "max-model-len": 512}},
        "webhook_token": "***",
        "limit": None,
        "secret": "",
        "words": "with ***",
        "Env": ["VLLM_API_KEY=***", "HOME=***"],
        "messages": "(left out)",
    }
    assert redaction.document('{"password": "hunter2', []) == '{"password": ***\n'


def test_the_golden_and_warm_up_prompts_of_an_entry_are_left_out_of_a_document() -> None:
    golden = [{"prompt": "my history", "order": ["my heart", "my knee"]}]
    entry = {"warm-up-prompts": ["my history"], "golden-prompts": golden, "max-model-len": 512}
    found = json.loads(redaction.document(json.dumps({"models": {"bot": entry}, "golden": {"bot": golden}}), []))
    assert found["models"]["bot"] == {
        "warm-up-prompts": "(left out)",
        "golden-prompts": "(left out)",
        "max-model-len": 512,
    }
    assert found["golden"]["bot"] == [{"prompt": "(left out)", "order": "(left out)"}]


def test_a_list_of_secrets_in_a_document_is_masked() -> None:
    shown = redaction.document('{"api-key": ["one", "two"], "gpus": ["0"]}', [])
    assert json.loads(shown) == {"api-key": "***", "gpus": ["0"]}


def test_a_number_under_the_name_of_a_secret_is_masked() -> None:
    shown = redaction.document('{"token": 12345678, "password": 0, "passphrase": 1.5, "max_tokens": 60}', [])
    assert json.loads(shown) == {"token": "***", "password": "***", "passphrase": "***", "max_tokens": 60}
    assert json.loads(redaction.document('{"secret": true, "token": null}', [])) == {"secret": True, "token": None}


def test_an_object_under_the_name_of_a_secret_is_masked() -> None:
    """Names in the object, such as `user`, do not show which of its values are secret."""
    shown = redaction.document('{"credentials": {"user": "mira", "pass": "hunter2"}, "secret": {}}', [])
    assert json.loads(shown) == {"credentials": "***", "secret": {}}


def test_an_environment_keeps_the_names_of_its_variables() -> None:
    assert redaction.variables("# words\nVLLM_API_KEY=a=b\nEMPTY=\n") == "# words\nVLLM_API_KEY=***\nEMPTY=***\n"
    assert redaction.text("", []) == ""
