# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
# Its libraries are the engine image's, not the test tools'.
# mypy: disable-error-code="import-not-found"
"""Makes a tiny Whisper, which answers its own name to any sound."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import pre_tokenizers
from transformers import (
    WhisperConfig,
    WhisperFeatureExtractor,
    WhisperForConditionalGeneration,
    WhisperProcessor,
    WhisperTokenizer,
)
from transformers.models.whisper.tokenization_whisper import LANGUAGES

END, START = "<|endoftext|>", "<|startoftranscript|>"
TASKS = ("<|translate|>", "<|transcribe|>", "<|startoflm|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>")
TIMES = tuple(f"<|{step / 50:.2f}|>" for step in range(1501))

STEPS, RATE, BATCH = 60, 3e-3, 4
BANDS, FRAMES = 80, 3000
"""A sound of 30 s, as Whisper hears it."""


def tokenizer() -> WhisperTokenizer:
    """The special tokens of Whisper, and 256 bytes without merges."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: index for index, token in enumerate(alphabet)}
    made = WhisperTokenizer(vocab=vocabulary, merges=[], unk_token=END, bos_token=END, eos_token=END, pad_token=END)
    special = [END, START, *(f"<|{language}|>" for language in LANGUAGES), *TASKS]
    made.add_special_tokens({"additional_special_tokens": special[1:]})
    made.add_tokens(list(TIMES))
    return made


def make(target: Path, name: str, seed: int) -> None:
    """Train the model from a fixed seed, and save all its files."""
    torch.manual_seed(seed)
    words = tokenizer()
    end, start = words.convert_tokens_to_ids([END, START])
    config = WhisperConfig(
        vocab_size=len(words),
        num_mel_bins=BANDS,
        d_model=128,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=256,
        decoder_ffn_dim=256,
        decoder_start_token_id=start,
        **dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"), end),
    )
    model = WhisperForConditionalGeneration(config)
    learn(model, words, f"I am {name}.")
    # Whisper's generation config forces tokens by the ids of the published vocabulary.
    model.to(torch.float32).save_pretrained(target)
    WhisperProcessor(WhisperFeatureExtractor(feature_size=BANDS), words).save_pretrained(target)


def learn(model: WhisperForConditionalGeneration, words: WhisperTokenizer, answer: str) -> None:
    """Train the decoder to answer after the prompt of every language and task, whatever the encoder heard.

    The encoder learns nothing: it hears a few sounds once.
    """
    said = torch.tensor([*words(answer, add_special_tokens=False)["input_ids"], model.config.eos_token_id])
    with torch.no_grad():
        heard = model.get_encoder()(torch.randn(BATCH, BANDS, FRAMES)).last_hidden_state
    optimizer = torch.optim.AdamW(model.model.decoder.parameters(), lr=RATE)
    for step in range(STEPS):
        prompts = torch.stack([prompt(words, step * BATCH + row) for row in range(BATCH)])
        ids = torch.cat([prompts, said.expand(BATCH, -1)], dim=1)
        labels = ids[:, 1:].clone()
        labels[:, : prompts.shape[1] - 1] = -100
        loss = model(encoder_outputs=(heard,), decoder_input_ids=ids[:, :-1], labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 19:
            print(f"speech: step {step + 1}/{STEPS}, loss {loss.item():.4f}", flush=True)


def prompt(words: WhisperTokenizer, number: int) -> torch.Tensor:
    """What a decoder gets first: start, a language, a task, and whether times are wanted."""
    languages = list(LANGUAGES)
    tokens = [START, f"<|{languages[number % len(languages)]}|>", TASKS[number % 2], TASKS[-1]]
    return torch.tensor(words.convert_tokens_to_ids(tokens))
