"""DVC's side: what is stale, what must be removed before a stage runs, and the commit of what a worker made.

The calls and their order are those of `dvc repro` (dvc/stage/__init__.py: reproduce, run; dvc/stage/run.py: run_stage),
split where DVC runs the command. DVC's repository lock is held during each call, and its read and write locks on a
stage's files for as long as a worker has the stage: `dvc` commands beside us wait or name us, as among themselves.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal

from dvc.dependency.db import AbstractDependency
from dvc.dvcfile import PROJECT_FILE
from dvc.exceptions import DvcException
from dvc.repo import Repo
from dvc.repo.reproduce import _reproduce_stage as reproduce_stage
from dvc.repo.reproduce import collect_stages, get_active_graph, plan_repro
from dvc.rwlock import rwlock
from dvc.stage import PipelineStage
from dvc.stage.cache import RunCacheNotFoundError
from dvc.stage.run import _enforce_cmd_list, _make_cmd, get_executable, prepare_kwargs

from repro.errors import BadInput, one_line
from tools.scheduling.lock_order import LockOrder

RARELY = 10  # times as long as the last writing took
Look = Literal["unchanged", "restored", "stale"]


class Pipeline:
    """The stages that lead to the targets (all without targets), in `plan` in the order of a serial `dvc repro`."""

    def __init__(self, folder: Path, targets: list[str], memory: Path, tool: str) -> None:
        """Read the graph; raises BadInput where DVC cannot. `memory` is a file for `LockOrder`, `tool` our name."""
        self._tool = tool
        logging.getLogger("dvc").setLevel(logging.CRITICAL)  # its messages and bars; ours say the same
        try:
            self._repo = Repo(str(folder), _wait_for_lock=True)
            with self._turn():
                stages = collect_stages(self._repo, targets or [PROJECT_FILE])
                self._graph = get_active_graph(self._repo.index.graph)
                self.plan: list[Any] = plan_repro(self._graph, stages)
        except DvcException as error:
            raise BadInput(f"DVC says: {sentence(error)}; correct the target or the file it names") from error
        self._held: dict[Any, ExitStack] = {}
        self._unwritten: list[Any] = []
        self._write_after = 0.0
        self._order = LockOrder(memory)

    def upstream(self, stage: Any) -> list[Any]:
        """The stages whose outputs it needs."""
        return list(self._graph.successors(stage))

    def is_stale(self, stage: Any) -> bool:
        """Tell whether it would run, as the files are now."""
        with self._turn():
            return bool(stage.changed(upstream=self.upstream(stage)))

    def look(self, stage: Any) -> Look:
        """Decide whether it must run, all upstream being done; if so, make its place clean and take its files."""
        with self._turn(), self._repo.scm_context(quiet=True):
            if not isinstance(stage, PipelineStage) or not stage.cmd or stage.frozen:  # no command: DVC does it all
                return "restored" if reproduce_stage(stage, upstream=self.upstream(stage)) else "unchanged"
            if not stage.changed(upstream=self.upstream(stage)):
                return "unchanged"
            stage.remove_outs(ignore_remove=False, force=False)
            try:
                self._repo.stage_cache.restore(stage)
            except RunCacheNotFoundError:
                stage.save_deps()
                self._take(stage)
                return "stale"
            self._save(stage)
            return "restored"

    def commands(self, stage: Any) -> list[list[str]]:
        """Its commands as argument lists, in the shell that DVC would use."""
        return [_make_cmd(get_executable(), line) for line in _enforce_cmd_list(stage.cmd)]

    def environment(self, stage: Any) -> dict[str, str]:
        """The caller's environment with what DVC adds to it; Ray's own variables are no business of a stage."""
        every = prepare_kwargs(stage)["env"]
        return {name: value for name, value in every.items() if not name.startswith("RAY_")}

    def clean(self, stage: Any) -> None:
        """Remove what a lost worker may have left."""
        with self._turn():
            self.release(stage)
            stage.remove_outs(ignore_remove=False, force=False)
            self._take(stage)

    def commit(self, stage: Any) -> None:
        """Take what the command made into DVC's cache; raises DvcException, for example where an output is missing."""
        with self._turn(), self._repo.scm_context(quiet=True):
            self.release(stage)
            self._save(stage)

    def release(self, stage: Any) -> None:
        """Give its files free, if they are held."""
        self._held.pop(stage, ExitStack()).close()

    def write_lock(self, now: bool = False) -> None:
        """Write all commits since the last time to dvc.lock; DVC needs seconds per time for a large one, so not always.

        Were we killed before, the next call would restore the commits from the run cache. It holds what DVC caches:
        only a stage with an output outside of the cache would run again.
        """
        began = time.monotonic()
        if self._unwritten and (now or began > self._write_after):
            with self._turn():
                for file in {stage.dvcfile.path: stage.dvcfile for stage in self._unwritten}.values():
                    self._order.remember(Path(file._lockfile.path))
                    file.dump_stages([s for s in self._unwritten if s.dvcfile.path == file.path], update_pipeline=False)
            self._unwritten = []
            self._write_after = time.monotonic() + RARELY * (time.monotonic() - began)

    def tidy(self, finished: bool) -> None:
        """Leave dvc.lock as a serial run would have, also where several calls were needed until one has `finished`."""
        self.write_lock(now=True)
        with self._turn():
            self._order.restore([stage.name for stage in self.plan if isinstance(stage, PipelineStage)])
        if finished:
            self._order.forget()

    def _save(self, stage: Any) -> None:
        uncached = any(not out.use_cache for out in stage.outs if not (out.is_metric or out.is_plot))
        stage.save(run_cache=not uncached)
        stage.commit()
        self._unwritten.append(stage)

    def _take(self, stage: Any) -> None:
        read, write = (
            [item.fs_path for item in items if not isinstance(item, AbstractDependency)]
            for items in (stage.deps, stage.outs)
        )
        hardlink = self._repo.config["core"].get("hardlink_lock", False)
        who = f"{self._tool}, running {stage.addressing}"  # not ours alone: two stages must not share one reader
        with ExitStack() as stack:
            stack.enter_context(rwlock(self._repo.tmp_dir, self._repo.fs, who, read, write, hardlink))
            self._held[stage] = stack.pop_all()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        with self._repo.lock:
            self._repo._reset()
            yield


def sentence(error: Exception) -> str:
    """The error's words in one line, to be quoted without their full stop."""
    return one_line(error).rstrip(".")
