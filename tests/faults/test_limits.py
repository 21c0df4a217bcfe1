"""Files that may not grow: a limit of their size (EFBIG) and a quota (EDQUOT), through every library that writes one.

The limit is a real one. No quota is at hand, so a small library loaded before libc answers writes as a full one does.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.counting import Count
from tests.paths import ROOT

WRITE = """
import resource, sys
from pathlib import Path
import matplotlib, numpy, pyarrow, pyarrow.parquet, safetensors.numpy, safetensors.torch, torch
from repro.errors import BadInput
from repro.files import whole_file, whole_folder
from repro.report.style import new_figure, save
from repro.trained.released import write_released
file = Path(sys.argv[1])
numbers = numpy.random.default_rng(0).normal(size=40_000)
figure, (panel,) = new_figure(4, 3)
panel.plot(numbers)
if sys.argv[2] == "limit":
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

def written(write):
    with whole_file(file) as partial:
        write(partial)

def inside():
    with whole_folder(file) as folder:
        safetensors.torch.save_file({"a": torch.from_numpy(numbers)}, folder / "a")

writers = {
    "safetensors of torch": lambda: written(lambda p: safetensors.torch.save_file({"a": torch.from_numpy(numbers)}, p)),
    "safetensors of numpy": lambda: written(lambda p: safetensors.numpy.save_file({"a": numbers}, p)),
    "safetensors in a folder": inside,
    "parquet": lambda: written(lambda p: pyarrow.parquet.write_table(pyarrow.table({"a": numbers}), p)),
    "text": lambda: written(lambda p: p.write_text("x" * 100_000)),
    "checkpoint for others": lambda: write_released(file, {"a": torch.from_numpy(numbers)}),
    "figure": lambda: save(figure, file.parent, file.name),
}
for name, write in writers.items():
    try:
        write()
        print(f"{name} was written")
    except BadInput as error:
        print(error)
"""
QUOTA = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static int is_below(int file) {
    char link[64], name[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, name, sizeof name - 1);
    name[length < 0 ? 0 : length] = 0;
    return strstr(name, "/quota/") != NULL;
}
ssize_t write(int file, const void *content, size_t size) {
    static ssize_t (*real)(int, const void *, size_t);
    if (!real) real = dlsym(RTLD_NEXT, "write");
    if (is_below(file)) return errno = EDQUOT, -1;
    return real(file, content, size);
}
ssize_t writev(int file, const struct iovec *parts, int count) {
    static ssize_t (*real)(int, const struct iovec *, int);
    if (!real) real = dlsym(RTLD_NEXT, "writev");
    if (is_below(file)) return errno = EDQUOT, -1;
    return real(file, parts, count);
}
"""
HELP = {"limit": "let files be larger (`ulimit -f`)", "quota": "free some space or ask for a larger quota"}
WRITERS = 7


def full_quota(folder: Path) -> dict[str, str]:
    """What makes the writes of a process fail below a folder that is called quota."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("NO C COMPILER HERE: a full quota is not tested")
    (folder / "quota.c").write_text(QUOTA)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "quota.so", folder / "quota.c", "-ldl"], check=True)
    return {"LD_PRELOAD": str(folder / "quota.so")}


@pytest.mark.parametrize("kind", HELP)
def test_a_file_that_may_not_grow_is_one_sentence(kind: str, tmp_path: Path, faults: Count) -> None:
    faults.tried(WRITERS)
    environment = os.environ | (full_quota(tmp_path) if kind == "quota" else {})
    (tmp_path / "quota").mkdir()
    command = [sys.executable, "-c", WRITE, str(tmp_path / "quota" / "made"), kind]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()
    help_ = f"no space left for it; {HELP[kind]} and run the same command again"
    assert [line for line in told if not line.endswith(help_)] == [] and len(told) == WRITERS, done.stdout
    assert not list((tmp_path / "quota").iterdir())
    faults.survived(WRITERS)
