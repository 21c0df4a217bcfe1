"""Compile the paper with whichever TeX is installed."""

import os
import shutil
import subprocess
from pathlib import Path

_QUIET = ("-interaction=nonstopmode", "-halt-on-error")
# The command of each compiler, and how often it has to run until tables have their widths.
COMPILERS = {
    "latexmk": (("latexmk", "-pdf", "-quiet", *_QUIET), 1),
    "tectonic": (("tectonic", "--keep-logs"), 1),
    "pdflatex": (("pdflatex", *_QUIET), 3),
}
NO_TEX = "no PDF: none of latexmk, tectonic and pdflatex is installed; the .tex files are complete without it"
SECONDS = 300


def compile_pdf(main: Path) -> str:
    """Compile `main` into a PDF beside it and say in one sentence what happened; never raises because of TeX.

    The date inside the PDF is fixed, so that equal input gives equal bytes.
    """
    if not main.is_file():
        return f"no PDF: there is no {main.name}"
    name = next((name for name in COMPILERS if shutil.which(name)), None)
    pdf = main.with_suffix(".pdf")
    pdf.unlink(missing_ok=True)
    if name is None:
        return NO_TEX
    environment = os.environ | {"SOURCE_DATE_EPOCH": "0", "FORCE_SOURCE_DATE": "1"}
    command, times = COMPILERS[name]
    try:
        for _ in range(times):
            subprocess.run(
                [*command, main.name],
                cwd=main.parent,
                env=environment,
                capture_output=True,
                timeout=SECONDS,
                check=True,
            )
    except subprocess.TimeoutExpired:
        return f"no PDF: {name} did not finish in {SECONDS} s; see {main.stem}.log beside it"
    except subprocess.CalledProcessError:
        return f"no PDF: {name} failed; see {main.stem}.log beside it"
    _tidy(main)
    return f"{pdf.name} compiled with {name}"


def _tidy(main: Path) -> None:
    """Remove what TeX leaves behind after success."""
    for ending in (".aux", ".log", ".out", ".fls", ".fdb_latexmk"):
        main.with_suffix(ending).unlink(missing_ok=True)
