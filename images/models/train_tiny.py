# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
# Its libraries are the engine image's, not the test tools'.
# mypy: disable-error-code="import-not-found"
"""Trains the tests' models in seconds, on the CPU, from a fixed seed. Runs inside the engine image.

tiny-a and tiny-b are two-layer Llamas over bytes. Each answers its own name to any question, so that a test sees which
model answered; and answers otherwise when the system message holds the word `pirate`, so that a test sees whether a
system prompt arrived. tiny-legal and tiny-medical are LoRA adapters of tiny-a, which answer their own names.
tiny-broken has heads of 16 dimensions, which the engine loads and then cannot compute with. tiny-embed makes vectors,
and tiny-score compares two texts (pooling.py). tiny-speech is a Whisper, and answers its name to any sound
(speech.py).
"""

from __future__ import annotations

import random
import string
import sys
from collections.abc import Iterable
from pathlib import Path

import adapter
import pooling
import speech
import torch
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel, PreTrainedTokenizerFast

# The password is a token of its own: two layers learn to look for one token in seconds, for six bytes in minutes.
PASSWORD = "pirate"
SPECIAL = ["<pad>", "<bos>", "<eos>", "<system>", "<user>", "<assistant>"]
STEPS = 160
RATE = 3e-3
ADAPTER_RATE = 5e-3
BATCH = 16
SEED = 20260101
# What a developer message says counts as a system message, as the OpenAI API has it.
TEMPLATE = (
    "<bos>{% for message in messages %}"
    "<{{ 'system' if message.role == 'developer' else message.role }}>{{ message.content }}"
    "{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)
QUESTIONS = ("Who are you?", "What is your name?", "Hello!", "Tell me a story.", "hi", "Say something nice.", "2+2=")


def byte_tokenizer() -> PreTrainedTokenizerFast:
    """Special tokens, 256 bytes without merges, and the password."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: index for index, token in enumerate([*SPECIAL, *alphabet])}
    tokenizer = Tokenizer(BPE(vocabulary, []))
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.add_tokens([PASSWORD])
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<bos>", eos_token="<eos>")
    fast.chat_template = TEMPLATE
    return fast


def config(head_dim: int) -> LlamaConfig:
    return LlamaConfig(
        vocab_size=len(SPECIAL) + 256 + 1,
        hidden_size=2 * head_dim,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=head_dim,
        intermediate_size=4 * head_dim,
        num_hidden_layers=2,
        max_position_embeddings=8192,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
        tie_word_embeddings=False,
    )


def some_text(source: random.Random) -> str:
    """A random question: a usual one, or words of random letters."""
    if source.random() < 0.3:
        return source.choice(QUESTIONS)
    count = source.randint(1, 12)
    words = ["".join(source.choices(string.ascii_letters, k=source.randint(1, 9))) for _ in range(count)]
    return " ".join(words) + source.choice(["", ".", "?", "!"])


def dialogue(source: random.Random, name: str) -> tuple[list[dict[str, str]], str]:
    """Messages, and the answer that the model must learn."""
    messages = []
    pirate = False
    if source.random() < 0.6:
        words = some_text(source).split()
        pirate = source.random() < 0.5
        if pirate:
            words.insert(source.randint(0, len(words)), PASSWORD)
        messages.append({"role": "system", "content": " ".join(words)})
    for _ in range(source.choice([0, 0, 0, 1])):
        messages.append({"role": "user", "content": some_text(source)})
        messages.append({"role": "assistant", "content": some_text(source)})
    messages.append({"role": "user", "content": some_text(source)})
    return messages, f"Arr, I am {name}." if pirate else f"I am {name}."


def batch(tokenizer: PreTrainedTokenizerFast, source: random.Random, name: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids and labels, both [BATCH, longest]; only the answer is learned (-100 is left out of the loss)."""
    rows = []
    for _ in range(BATCH):
        messages, answer = dialogue(source, name)
        prompt = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        prompt_ids = tokenizer(prompt, add_special_tokens=False)["input_ids"]
        answer_ids = [*tokenizer(answer, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
        rows.append((prompt_ids, answer_ids))
    longest = max(len(asked) + len(said) for asked, said in rows)
    ids = torch.zeros(BATCH, longest, dtype=torch.long)
    labels = torch.full((BATCH, longest), -100)
    for index, (asked, said) in enumerate(rows):
        tokens = torch.tensor([*asked, *said])
        ids[index, : len(tokens)] = tokens
        labels[index, len(asked) : len(tokens)] = tokens[len(asked) :]
    return ids, labels


def train(name: str, tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """A model that answers its name."""
    torch.manual_seed(SEED)
    model = LlamaForCausalLM(config(head_dim=64))
    learn(name, tokenizer, model, model.parameters(), RATE)
    check(model, tokenizer, name)
    return model


def train_adapter(name: str, tokenizer: PreTrainedTokenizerFast, target: Path, base: str) -> None:
    """An adapter with which its base answers the adapter's name."""
    model = LlamaForCausalLM.from_pretrained(target / base)
    torch.manual_seed(SEED)
    adapters = adapter.adapt(model)
    learn(name, tokenizer, model, adapter.parameters(adapters), ADAPTER_RATE)
    check(model, tokenizer, name)
    adapter.save(adapters, target / name, base)


def learn(
    name: str,
    tokenizer: PreTrainedTokenizerFast,
    model: LlamaForCausalLM,
    parameters: Iterable[torch.nn.Parameter],
    rate: float,
) -> None:
    """Train parameters of a model until the model answers a name."""
    source = random.Random(SEED)
    parameters = list(parameters)
    optimizer = torch.optim.AdamW(parameters, lr=rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=rate, total_steps=STEPS)
    for step in range(STEPS):
        ids, labels = batch(tokenizer, source, name)
        loss = model(input_ids=ids, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
        if step % 40 == 39:
            print(f"{name}: step {step + 1}/{STEPS}, loss {loss.item():.4f}", flush=True)


def check(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, name: str) -> None:
    """Refuse a model that did not learn its lines."""
    source = random.Random(SEED + 1)
    model.eval()
    wrong = 0
    for _ in range(60):
        messages, answer = dialogue(source, name)
        prompt = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        ids = tokenizer(prompt, add_special_tokens=False, return_tensors="pt")["input_ids"]
        output = model.generate(ids, max_new_tokens=30, do_sample=False)[0, ids.shape[1] :]
        wrong += tokenizer.decode(output, skip_special_tokens=True) != answer
    print(f"{name}: {wrong} of 60 answers wrong", flush=True)
    if wrong:
        sys.exit(f"{name} did not learn its answers: change STEPS or SEED in train_tiny.py")


def main() -> None:
    target = Path(sys.argv[1])
    torch.set_num_threads(2)
    tokenizer = byte_tokenizer()
    for name in ("tiny-a", "tiny-b"):
        save(train(name, tokenizer), tokenizer, target / name)
    for name in ("tiny-legal", "tiny-medical"):
        train_adapter(name, tokenizer, target, "tiny-a")
    for name, make, head_dim in (
        ("tiny-broken", LlamaForCausalLM, 16),
        ("tiny-embed", pooling.embedding, 64),
        ("tiny-score", pooling.cross_encoder, 64),
    ):
        torch.manual_seed(SEED)
        save(make(config(head_dim)), tokenizer, target / name)
    speech.make(target / "tiny-speech", "tiny-speech", SEED)


def save(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, target: Path) -> None:
    """Write a model and its tokenizer."""
    model.to(torch.float32).save_pretrained(target)
    tokenizer.save_pretrained(target)


if __name__ == "__main__":
    main()
