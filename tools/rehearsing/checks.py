"""What is known before anything runs: the device, the raw data of every dataset, room on the disk, memory of a step."""

import configparser
import os
import shutil
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import torch

from repro.data.dataset import ROLES
from repro.errors import BadInput
from repro.models.device import pick_device
from repro.preparation.doctor import Finding, examine
from repro.preparation.sources import SOURCES, options_of
from stages.settings.params import DatasetParams, Params
from tools.rehearsing.sizes import DatasetSize, drawn_size, is_drawn, readable
from tools.rehearsing.work import Work
from tools.task_lists import task_lists

LINK = "dvc config --local cache.type hardlink,reflink,copy"
NO_NVIDIA = "nvidia-smi is not here: no NVIDIA driver, or it is not on the PATH"


def device_of(work: Work) -> torch.device:
    """The device of params.yaml; raises BadInput where this machine lacks it."""
    try:
        return pick_device(work.params.machine.device)
    except BadInput as error:
        reason = "" if shutil.which("nvidia-smi") else f" ({NO_NVIDIA})"
        raise BadInput(f"machine.device: {error}{reason}") from None


def describe_device(device: torch.device) -> str:
    """What computes, in a sentence."""
    if device.type == "cuda":
        facts = torch.cuda.get_device_properties(device)
        return f"{torch.cuda.device_count()} × {facts.name}, {facts.total_memory / 2**30:.0f} GiB each"
    cores = len(os.sched_getaffinity(0))
    why = "" if shutil.which("nvidia-smi") else f"; {NO_NVIDIA}"
    return f"{cores} CPU cores, no GPU is used{why}"


def slow_here(device: torch.device, amp: str, heavy: Collection[str]) -> Iterator[str]:
    """What a CPU is slow at, a sentence each; `heavy` are the datasets whose backbone is too deep for one."""
    if device.type != "cpu":
        return
    if heavy:
        yield f"deep backbones on a CPU: {', '.join(heavy)} are rehearsed with fewer images a step"
    flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").is_file() else "bf16"
    if amp == "fp16" or (amp == "bf16" and "bf16" not in flags):
        yield f"warning: precision.amp is {amp}, which this CPU computes many times slower; set precision.amp to none"


def missing_data(work: Work) -> list[str]:
    """Folders and files of raw data that are not there, a sentence each, without reading any."""
    return [
        f"datasets.{name}.options.{key} is {path}, which is not there"
        for name, chosen in work.params.datasets.items()
        for key, path in _raw_paths(chosen)
        if not Path(path).exists()
    ]


def from_root(params: Params, root: Path) -> Params:
    """The same parameters with raw data named from the workspace: stages are rehearsed in another folder."""

    def absolute(given: Any) -> Any:
        if isinstance(given, list):
            return [absolute(each) for each in given]
        return str(root / given) if isinstance(given, str) else given

    datasets = {
        name: replace(chosen, options=chosen.options | {key: absolute(given) for key, given in _raw_options(chosen)})
        for name, chosen in params.datasets.items()
    }
    return replace(params, datasets=datasets)


def _raw_paths(chosen: DatasetParams) -> Iterator[tuple[str, str]]:
    for key, given in _raw_options(chosen):
        yield from ((key, str(path)) for path in (given if isinstance(given, list) else [given]))


def _raw_options(chosen: DatasetParams) -> Iterator[tuple[str, Any]]:
    """The options that name folders or files of raw data."""
    if chosen.source not in SOURCES:  # it draws its images, or is unknown, which is said elsewhere
        return
    for key, option in options_of(chosen.source).items():
        given = chosen.options.get(key)
        if given is not None and Path in _kinds(option.annotation):
            yield key, given


def _kinds(annotation: Any) -> set[Any]:
    """Every type that an annotation names."""
    inner = [kind for part in get_args(annotation) for kind in _kinds(part)]
    return {annotation, *inner} if isinstance(annotation, type) else set(inner)


def sizes_of_data(
    work: Work, progress: Callable[[str], None] = lambda name: None
) -> tuple[dict[str, DatasetSize], dict[str, list[Finding]]]:
    """List and check the raw data of every dataset: its size, and what the dataset doctor found.

    Raises BadInput, naming every dataset that cannot be packed.
    """
    problems = missing_data(work)
    if problems:
        raise BadInput(f"{'; '.join(problems)}; correct the paths, or rehearse other datasets with --only")
    found: dict[str, DatasetSize] = {}
    findings: dict[str, list[Finding]] = {}
    for name, chosen in work.params.datasets.items():
        progress(name)
        if is_drawn(chosen.source):
            found[name] = drawn_size(chosen.options, chosen.size)
            continue
        lists = task_lists(work.resolver.episodes(name))
        report = examine(chosen.source, work.params.seeds[0], chosen.options, decode=False, tasks=lists)
        findings[name] = report.findings
        problems += [f"datasets.{name}: {each.seen}" for each in report.findings if each.verdict == "fail"]
        if report.passed:
            images = {role: sum(counts.get(role, 0) for counts in report.counts.values()) for role in ROLES}
            seen = sum(1 for counts in report.counts.values() if counts.get("train"))
            found[name] = DatasetSize(images, seen, chosen.size, channels=3)
    if problems:
        raise BadInput(f"{'; '.join(problems)}; `tools/doctor --dataset NAME` says more, --only leaves datasets out")
    return found, findings


def cache_copies(root: Path) -> int:
    """How often an output lies on the disk: once more in DVC's cache unless it is linked from there.

    DVC takes the first kind of link that can be made: a hard link ends at its file system, and whether a reflink can
    be made is not known without trying.
    """
    config = configparser.ConfigParser()
    config.read([root / ".dvc" / "config", root / ".dvc" / "config.local"])
    types = [word.strip(" '\"") for word in config.get("cache", "type", fallback="").split(",")]
    cache = root / ".dvc" / config.get("cache", "dir", fallback="cache").strip(" '\"")
    there = next(folder for folder in (cache, *cache.parents) if folder.exists())
    possible = {"symlink": True, "hardlink": there.stat().st_dev == root.stat().st_dev, "copy": True}
    return 2 if next((kind for kind in types if possible.get(kind)), "copy") == "copy" else 1


def disk_verdict(needed: int, root: Path) -> str:
    """Empty where this number of bytes fits beside what is there; else a sentence with what to do."""
    free = shutil.disk_usage(root).free
    if needed <= free:
        return ""
    linked = "" if cache_copies(root) == 1 else f", `{LINK}` with a cache on this disk halves it"
    message = f"the disk of {root} has {readable(free)} free, the whole run needs {readable(needed)}"
    return f"{message}; free some space{linked}, or leave datasets out"


def memory_of(device: torch.device) -> int:
    """Bytes that a step may take."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    lines = Path("/proc/meminfo").read_text().splitlines() if Path("/proc/meminfo").is_file() else []
    (available,) = [line.split()[1] for line in lines if line.startswith("MemAvailable")] or ["0"]
    return int(available) * 1024
