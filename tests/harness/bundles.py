"""Bundles as tests read them: by the layout of safetensors alone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "|u1", "BOOL": "|b1"}


@dataclass
class ReadBundle:
    """A bundle: the object of its file, and its tensors by name."""

    folder: Path
    facts: dict
    tensors: dict


def bundles_in(run):
    """Read the bundles of a run's folder, the first step first."""
    folders = [path.parent for path in Path(run).glob("bundles/*/bundle.json")]
    return [read_bundle(folder) for folder in sorted(folders)]


def read_bundle(folder):
    content = (folder / "tensors.safetensors").read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    tensors = {}
    for name, entry in json.loads(content[8:begin]).items():
        first, last = entry["data_offsets"]
        part = content[begin + first : begin + last]
        tensors[name] = np.frombuffer(part, DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return ReadBundle(folder, json.loads((folder / "bundle.json").read_text()), tensors)
