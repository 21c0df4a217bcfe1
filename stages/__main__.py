"""Run one stage: `python -m stages STAGE [NAME [--seed N]]`, as dvc.yaml does.

Without a seed it computes all that params.yaml lists, several side by side (`launching/replicates.py`), each as soon as
there is a place for it (`launching/places.py`). It runs in this process; under `tools/repro` in one that has its
libraries loaded (`launching/forkserver.py`); and a training in several ranks where params.yaml asks for them
(`launching/ranks.py`).
"""

import os
import sys
from dataclasses import replace
from typing import NoReturn

from repro.files import fill_closed_streams
from stages.launching import forkserver, ranks
from stages.launching.places import offered, place
from stages.settings.planned import ALONE, REPLICATED, STAGES, Asked, asked

USAGE = f"usage: python -m stages {{{','.join(STAGES)}}} [NAME [--seed N]]"
NAME = "{}"  # its place in a command of dvc.yaml: no shell reads a name


def main() -> int:
    fill_closed_streams()
    arguments = [word.replace(NAME, name_of_stage()) for word in sys.argv[1:]]
    if not {"-h", "--help"}.isdisjoint(arguments):
        return show_help()
    if not arguments or arguments[0] not in STAGES:
        refuse(f"got {arguments[0]!r:.200}, expected a stage; {USAGE}" if arguments else f"got no stage; {USAGE}")
    if arguments[0] in ALONE and arguments[1:]:
        refuse(f"got {' '.join(arguments[1:])!r:.200}, expected nothing: python -m stages {arguments[0]}")
    if ranks.is_rank():
        ranks.end_at_once_with_launcher()
        return forkserver.run_stage(arguments)
    if ranks.LAUNCHER in os.environ:  # beside other replicates
        ranks.end_with_launcher()
    check_places()
    return run_replicates(arguments) if arguments[0] in REPLICATED else run_one(arguments)


def show_help() -> int:
    """Print what can be asked for."""
    from stages.tracking import bad_input_exits

    with bad_input_exits():
        print(f"{USAGE}\n\n{__doc__}", end="")
    return 0


def refuse(sentence: str) -> NoReturn:
    """End with what is wrong with the command line."""
    from repro.errors import BadInput
    from stages.tracking import bad_input_exits

    with bad_input_exits():
        raise BadInput(sentence)


def check_places() -> None:
    """End with what is wrong with the places that the environment names."""
    from stages.tracking import bad_input_exits

    with bad_input_exits():
        offered()


def run_replicates(arguments: list[str]) -> int:
    """Compute what is missing of all seeds, or of the one that is asked for; give the exit code."""
    from stages.launching import replicates
    from stages.tracking import bad_input_exits

    with bad_input_exits():
        ask = asked(arguments[0], arguments[1:])
        seeds = replicates.to_compute(ask)
        if len(seeds) == 1:
            code = run_replicate(replace(ask, seed=seeds[0]))
        else:
            code = replicates.side_by_side(ask, seeds) if seeds else 0
        if code == 0 and ask.seed is None:
            replicates.drop_unlisted(ask)
    return code


def run_replicate(ask: Asked) -> int:
    """Compute one, in as many ranks as params.yaml says."""
    wanted = ranks.ranks_of(ask.stage)
    if wanted.total > 1:
        with place():
            return ranks.launch(wanted, ask)
    return run_one(ask.words)


def run_one(arguments: list[str]) -> int:
    """Run a stage as soon as there is a place, forked from the server where there is one; give the exit code."""
    with place():
        if forkserver.ADDRESS in os.environ:
            try:
                return forkserver.follow(*forkserver.hand_over(arguments))
            except forkserver.NoAnswer as reason:
                print(f"the fork server cannot be used ({reason}); this stage runs without it", file=sys.stderr)
        return forkserver.run_stage(arguments)


def name_of_stage() -> str:
    """What DVC says behind the @ of the stage that it runs; outside of DVC the place stays as it is."""
    return os.environ.get("DVC_STAGE", "").partition("@")[2] or NAME


if __name__ == "__main__":
    sys.exit(main())
