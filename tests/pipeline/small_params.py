"""params.yaml and paper/grid.yaml made small: four tiny datasets and a handful of cells, everything else as it is."""

from pathlib import Path
from typing import Any

import yaml

from tests.paths import ROOT

SPLITS = ("seen", "val", "test")
CLASSES = {"mini": 10, "tiered": 24, "heterogeneous": 30, "office": 10}  # per split; enough for every group
IMAGES = {"train": 24, "val": 24, "test": 24, "seen_val": 12, "seen_test": 12}
DOMAINS = {"mini": 1, "tiered": 1, "heterogeneous": 1, "office": 3}
LINES = {
    "trained": ("mini-castle-1shot", "mini-castle-1shot-scratch", "mini-protonet-1shot", "heterogeneous-acastle-1shot"),
    "untrained": ("mini-mc_knn-1shot",),
    "adapted": ("mini-castle_adapted-1shot",),
}


def small_params() -> dict[str, Any]:
    """Read params.yaml and shrink it."""
    params: dict[str, Any] = yaml.safe_load((ROOT / "params.yaml").read_text())
    params["datasets"] = {name: params["datasets"][name] for name in CLASSES}
    for name, dataset in params["datasets"].items():
        dataset["options"] |= {
            "classes": dict.fromkeys(SPLITS, CLASSES[name]),
            "images": {role: count * DOMAINS[name] for role, count in IMAGES.items()},
        }
        dataset |= {"size": 16, "episodes": {"shots": [1, 5], "seen": 5} if name == "mini" else {}, "pretraining": {}}
        dataset["training"] = {}
    params["episodes"] = {"shots": [1], "query": 4, "test": [{"way": 5, "tasks": 40}], "calibration": 20, "seen": 0}
    params["measuring"]["selection"]["tasks"] = 10
    params["pretraining"]["epochs"] = 1
    for method in params["methods"].values():
        if "training" in method:
            method["training"] |= {"steps": 4, "validate_every": 2}
        method["limit"] = min(method.get("limit", 0), 10)
    for name in ("castle", "acastle", "castle_minus"):
        params["methods"][name]["options"] |= {"classes": 6, "classifiers": 8, "queries": 16}
    params["machine"]["checkpoint_every"] = 2
    params["threads"] = 1
    return params


def small_grid() -> dict[str, Any]:
    """Read paper/grid.yaml and keep a few lines, measured on the ways that the small tasks have."""
    grid: dict[str, Any] = yaml.safe_load((ROOT / "paper" / "grid.yaml").read_text())
    kept = {group: {name: grid[group][name] for name in names} for group, names in LINES.items()}
    for line in (line for lines in kept.values() for line in lines.values()):
        line["ways"] = [5]
    return {"random": ["mini"], **kept}


def write_small(folder: Path) -> None:
    """Write both into a folder."""
    (folder / "paper").mkdir(exist_ok=True)
    (folder / "params.yaml").write_text(yaml.safe_dump(small_params(), sort_keys=False))
    (folder / "paper" / "grid.yaml").write_text(yaml.safe_dump(small_grid(), sort_keys=False))
