# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Headers of safetensors files: sound, cut and damaged."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.models import safetensors


def entry(dtype: Any = "F16", shape: Any = (2, 3), offsets: Any = (0, 12)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def test_a_header_has_the_tensors_and_the_sizes(tmp_path: Path, write_safetensors: Callable[..., None]) -> None:
    path = tmp_path / "model.safetensors"
    write_safetensors(path, {"a": 1000, "b": 250})
    header = safetensors.read(path)
    assert header.weight_bytes == 5000
    assert header.file_size == path.stat().st_size
    assert header.tensors["b"] == safetensors.Tensor("F32", (250,), 4000, 5000)


@pytest.mark.parametrize("left", [0, 5, 8, 40, 1000, -1])
def test_the_error_of_a_cut_file_has_expected_and_found_bytes(
    tmp_path: Path, left: int, write_safetensors: Callable[..., None]
) -> None:
    path = tmp_path / "model.safetensors"
    write_safetensors(path, {"a": 1000})
    whole = path.read_bytes()
    path.write_bytes(whole[:left])
    with pytest.raises(safetensors.Truncated, match="is cut") as caught:
        safetensors.read(path)
    assert caught.value.found == len(whole[:left])
    assert caught.value.expected > caught.value.found
    if left in (1000, -1):
        assert caught.value.expected == len(whole)


def test_a_file_that_is_longer_than_its_header_says_is_refused(
    tmp_path: Path, write_safetensors: Callable[..., None]
) -> None:
    path = tmp_path / "model.safetensors"
    write_safetensors(path, {"a": 10})
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(safetensors.SafetensorsError, match="bytes by its header, found"):
        safetensors.read(path)


def test_a_git_lfs_pointer_is_refused_with_advice(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n")
    with pytest.raises(safetensors.SafetensorsError, match="git lfs pull"):
        safetensors.read(path)


def test_a_header_of_absurd_length_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", 1 << 62) + b"{}")
    with pytest.raises(safetensors.SafetensorsError, match="not a safetensors file"):
        safetensors.read(path)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ([], "not a dictionary but list"),
        ({"a": 1}, "'a' is not a dictionary"),
        ({"a": entry(dtype=None)}, "no dtype"),
        ({"a": entry(shape=[-1])}, "shape of tensor 'a'"),
        ({"a": entry(shape=[True])}, "shape of tensor 'a'"),
        ({"a": entry(shape=[1 << 64])}, "shape of tensor 'a'"),
        ({"a": entry(offsets=[0])}, "begin, end"),
        ({"a": entry(offsets=[12, 0])}, "begin, end"),
        ({"a": entry(offsets=[0, 13])}, "does not fit its 13 bytes"),
        ({"a": entry(), "b": entry(offsets=[13, 25])}, "gap or an overlap before tensor 'b'"),
        ({"a": entry(), "b": entry(offsets=[6, 18])}, "gap or an overlap before tensor 'b'"),
    ],
)
def test_each_mistake_of_a_header_has_its_message(header: Any, message: str) -> None:
    with pytest.raises(safetensors.SafetensorsError, match=message):
        safetensors.parse_header(json.dumps(header).encode())


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff", b"[" * 100_000, b'{"a":' + b"9" * 5000])
def test_a_header_that_is_not_json_is_refused(raw: bytes) -> None:
    with pytest.raises(safetensors.SafetensorsError, match="not JSON"):
        safetensors.parse_header(raw)


def test_dtypes_below_a_byte_and_unknown_dtypes_are_accepted() -> None:
    header = {"a": entry("F4", [4], [0, 2]), "b": entry("X99", [4], [2, 9])}
    assert safetensors.parse_header(json.dumps(header).encode()).weight_bytes == 9


numbers = st.integers(-(1 << 70), 1 << 70) | st.booleans() | st.floats() | st.none()
entries = st.dictionaries(
    st.sampled_from(["dtype", "shape", "data_offsets"]), st.text() | numbers | st.lists(numbers, max_size=3)
)
headers = st.dictionaries(st.text(), entries | numbers)


@given(headers.map(lambda value: json.dumps(value).encode()) | st.binary())
def test_any_bytes_parse_or_raise_safetensors_error(raw: bytes) -> None:
    try:
        header = safetensors.parse_header(raw)
    except safetensors.SafetensorsError:
        return
    assert header.file_size == 8 + len(raw) + header.weight_bytes


@given(st.lists(st.tuples(st.sampled_from(sorted(safetensors.BITS)), st.lists(st.integers(0, 8), max_size=3))))
def test_every_layout_without_gaps_is_accepted(tensors: list[tuple[str, list[int]]]) -> None:
    header, position = {}, 0
    for number, (dtype, shape) in enumerate(tensors):
        elements = 8
        for size in shape:
            elements *= size
        size = elements * safetensors.BITS[dtype] // 8
        header[str(number)] = entry(dtype, [8, *shape], [position, position + size])
        position += size
    assert safetensors.parse_header(json.dumps(header).encode()).weight_bytes == position
