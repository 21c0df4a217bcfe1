"""Where a run happened: commit, packages, host, processors. Each answer costs milliseconds and is never an error."""

import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

# What decides the instructions and the order of sums that libraries compute with, and so the last bits of a result.
KEPT_VARIABLES = (
    *("CUDA_VISIBLE_DEVICES", "DVC_EXP_NAME", "DVC_STAGE", "WORLD_SIZE"),
    *("ATEN_CPU_CAPABILITY", "CUBLAS_WORKSPACE_CONFIG", "NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"),
    *("GLIBC_TUNABLES", "LD_PRELOAD", "NPY_DISABLE_CPU_FEATURES", "OPENBLAS_CORETYPE", "OPENBLAS_NUM_THREADS"),
)
KEPT_FAMILIES = ("DNNL_", "GOMP_", "KMP_", "MKL_", "OMP_", "ONEDNN_")
SECONDS = 5.0


def commit(root: Path) -> tuple[str | None, bool | None]:
    """The commit checked out at `root` and whether tracked files differ from it; None where that cannot be known."""
    if not (root / ".git").exists():
        return None, None
    command = ["git", "--no-optional-locks", "status", "--porcelain=v2", "--branch", "--untracked-files=no"]
    lines = _output(command, cwd=root).splitlines()
    head = [line.split()[-1] for line in lines if line.startswith("# branch.oid")]
    if head:
        return None if head == ["(initial)"] else head[0], any(not line.startswith("#") for line in lines)
    return _commit_without_git(root / ".git"), None


def _commit_without_git(folder: Path) -> str | None:
    """Read the checked-out commit from the repository's files, for machines without a git program."""
    try:
        head = _text(folder / "HEAD").strip()
        if not head.startswith("ref: "):
            return head
        reference = head.removeprefix("ref: ")
        if (folder / reference).is_file():
            return _text(folder / reference).strip()
        packed = _text(folder / "packed-refs").splitlines()
        return next((line.split()[0] for line in packed if line.endswith(f" {reference}")), None)
    except OSError:
        return None


def _text(file: Path) -> str:
    """A branch's name may be in any encoding."""
    return file.read_text(encoding="utf-8", errors="replace")


def packages() -> dict[str, str]:
    """Versions of all installed distributions, from the names of their metadata folders."""
    versions: dict[str, str] = {}
    for place in map(Path, sys.path):
        if place.is_dir():
            for name in os.listdir(place):
                if name.endswith(".dist-info"):
                    distribution, _, version = name.removesuffix(".dist-info").partition("-")
                    versions.setdefault(distribution, version)
    return versions


def sources(root: Path) -> list[Path]:
    """Files of this repository that the process has imported."""
    modules = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] in ("repro", "stages")]
    files = {Path(file).resolve() for module in modules if (file := getattr(module, "__file__", None))}
    return sorted(file for file in files if root in file.parents)


def host() -> dict[str, Any]:
    """Name, system, interpreter, processors, accelerators and the environment variables that change results."""
    return {
        "hostname": platform.node(),
        "os": [platform.system(), platform.release()],
        "python_version": platform.python_version(),
        "cpu": _cpu(),
        "cpu_count": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "cpu_capability": _cpu_capability(),
        "gpus": _gpus(),
        "ENV": {name: value for name, value in os.environ.items() if _is_kept(name)},
    }


def _is_kept(variable: str) -> bool:
    return variable in KEPT_VARIABLES or variable.startswith(KEPT_FAMILIES)


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo") as stream:
            return next(line.partition(":")[2].strip() for line in stream if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _cpu_capability() -> str:
    """The instructions that torch computes with (AVX2, AVX512 …): they decide the last bits; empty without torch."""
    torch = sys.modules.get("torch")
    return str(torch.backends.cpu.get_cpu_capability()) if torch else ""


def _gpus() -> dict[str, Any]:
    # The short query: the full report that Sacred asks for takes a second and more.
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader,nounits"]
    rows = [[field.strip() for field in line.split(",")] for line in _output(query).splitlines()]
    whole = [row for row in rows if len(row) == 3]
    gpus = [{"model": model, "total_memory": memory} for model, memory, _ in whole]
    return {"gpus": gpus, "driver_version": whole[0][2]} if whole else {"gpus": []}


def _output(command: list[str], cwd: Path | None = None) -> str:
    """What a program prints; nothing where it is missing, fails or hangs."""
    try:
        done = subprocess.run(
            command, cwd=cwd, capture_output=True, encoding="utf-8", errors="replace", timeout=SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
