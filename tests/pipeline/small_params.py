"""params.yaml made small: four tiny datasets and a handful of cells, everything else as it is."""

from pathlib import Path
from typing import Any

import yaml

SPLITS = ("seen", "val", "test")
CLASSES = {"mini": 10, "tiered": 24, "heterogeneous": 30, "office": 10}  # per split; enough for every group
IMAGES = {"train": 24, "val": 24, "test": 24, "seen_val": 12, "seen_test": 12}
DOMAINS = {"mini": 1, "tiered": 1, "heterogeneous": 1, "office": 3}
CELLS = {
    "cells": ("mini-castle-1shot", "mini-protonet-1shot", "heterogeneous-acastle-1shot"),
    "untrained": ("mini-mc_knn-1shot",),
    "adapted": ("mini-castle_adapted-1shot",),
}
PRETRAINED = ("mini-linear", "mini-cosine", "heterogeneous-linear")


def small_params(file: Path) -> dict[str, Any]:
    """Read params.yaml and shrink it."""
    params: dict[str, Any] = yaml.safe_load(file.read_text())
    for name, dataset in params["datasets"].items():
        dataset["options"] |= {
            "classes": dict.fromkeys(SPLITS, CLASSES[name]),
            "images": {role: count * DOMAINS[name] for role, count in IMAGES.items()},
        }
        dataset["size"] = 16
        params["episodes"][name] |= {
            "shots": [1, 5] if name == "mini" else [1],
            "query": 4,
            "test": [{"way": 5, "tasks": 40, "few_shot": True, "detailed": True}],
            "calibration": 20,
            "selection": 10,
            "seen": 5 if name == "mini" else 0,
        }
    for group, kept in CELLS.items():
        params[group] = {name: params[group][name] for name in kept}
    params["pretrained"] = {name: params["pretrained"][name] | {"epochs": 1} for name in PRETRAINED}
    for method in params["methods"].values():
        if "training" in method:
            method["training"] |= {"steps": 4, "validate_every": 2}
        if "limit" in method:
            method["limit"] = 10
    for name in ("castle", "acastle", "castle_minus"):
        params["methods"][name]["options"] |= {"classes": 6, "classifiers": 8, "queries": 16}
    params["machine"]["checkpoint_every"] = 2
    return params
