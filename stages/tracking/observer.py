"""Sacred's file observer for a run's folder: whole files, an appended journal of scalars, no loss on a full disk."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from sacred.dependencies import get_digest
from sacred.observers import FileStorageObserver

from repro.errors import BadInput
from repro.files import seal, whole_file
from stages.tracking import machine
from stages.tracking.capture import Capture
from stages.tracking.files import Scalar, append_scalars, read_scalars, write_json, write_text
from stages.tracking.runs import link_outputs


class RunFolder(FileStorageObserver):
    """Writes the record of one run; `after_beat` is called whenever there is something new in it."""

    def __init__(self, folder: Path, capture: Capture, continues: str) -> None:
        super().__init__(folder.parent)
        self.folder = folder
        self.dir = str(folder)
        self.after_beat: Callable[[], None] = lambda: None
        self._capture = capture
        self._continues = continues
        self._unsaved: list[Scalar] = []
        self._lock = threading.RLock()  # heartbeats come from a thread of their own

    def _make_run_dir(self, _id: str) -> None:
        """The folder exists already: it was made before Sacred started."""

    def started_event(  # noqa: PLR0917 - Sacred's interface
        self,
        ex_info: dict[str, Any],
        command: str,
        host_info: dict[str, Any],
        start_time: datetime,
        config: dict[str, Any],
        meta_info: dict[str, Any],
        _id: str,
    ) -> str:
        """Begin the record."""
        meta = meta_info | ({"continues": self._continues} if self._continues else {})
        with self._lock:
            super().started_event(ex_info, command, machine.host(), start_time, config, meta, _id)
        self.after_beat()
        return _id

    def heartbeat_event(self, info: dict[str, Any], captured_out: str, beat_time: datetime, result: Any) -> None:
        """Bring the record up to date."""
        with self._disk_errors_as_warnings():
            super().heartbeat_event(info, captured_out, beat_time, result)
        self.after_beat()

    def log_metrics(self, metrics_by_name: dict[str, dict[str, list[Any]]], info: dict[str, Any]) -> None:
        """Append scalars to the journal; where that fails they wait in memory for the next heartbeat."""
        for name, series in metrics_by_name.items():
            rows = zip(series["steps"], series["values"], series["timestamps"], strict=True)
            self._unsaved += [(name, int(step), float(value), time.isoformat()) for step, value, time in rows]
        with self._disk_errors_as_warnings():
            self._save_scalars()

    def _save_scalars(self) -> None:
        append_scalars(self.folder, self._unsaved)
        self._unsaved = []

    @contextmanager
    def _disk_errors_as_warnings(self) -> Iterator[None]:
        """Where the disk refuses, say so and let the run go on: Sacred would drop an observer that raises."""
        try:
            with self._lock:
                yield
        except (OSError, BadInput) as error:
            logging.getLogger(__name__).warning("cannot write to %s now: %s", self.folder, error)

    def artifact_event(self, name: str, filename: str, metadata: Any = None, content_type: Any = None) -> None:
        """Copy a file into the record's own folder for them, where it cannot hide a file of the record."""
        with self._disk_errors_as_warnings():
            self._copy(Path(filename), self.folder / "artifacts" / name)
            if name not in self.run_entry["artifacts"]:
                self.run_entry["artifacts"].append(name)
            self.save_json(self.run_entry, "run.json")

    def completed_event(self, stop_time: datetime, result: Any) -> None:
        with self._disk_errors_as_warnings():
            self._finish()
            super().completed_event(stop_time, result)
            seal(self.folder)
            link_outputs(self.folder, result)

    def interrupted_event(self, interrupt_time: datetime, status: str) -> None:
        with self._disk_errors_as_warnings():
            self._finish()
            super().interrupted_event(interrupt_time, status)
            seal(self.folder)

    def failed_event(self, fail_time: datetime, fail_trace: list[str]) -> None:
        with self._disk_errors_as_warnings():
            self._finish()
            super().failed_event(fail_time, fail_trace)
            seal(self.folder)

    def _finish(self) -> None:
        """Write what has not been written yet, and what is derived from the journal."""
        self.save_cout()
        self._save_scalars()
        self.save_json(read_scalars(self.folder), "metrics.json")

    def save_json(self, obj: Any, filename: str) -> None:
        write_json(self.folder / filename, obj)

    def save_cout(self) -> None:
        write_text(self.folder / "cout.txt", self._capture.text())

    def find_or_save(self, filename: str, store_dir: Path) -> Path:
        """Store a source once for all runs, under its name and digest."""
        source = Path(filename)
        stored = Path(store_dir) / f"{source.stem}_{get_digest(filename)}{source.suffix}"
        if not stored.exists():
            self._copy(source, stored)
        return stored

    @staticmethod
    def _copy(source: Path, target: Path) -> None:
        with whole_file(target) as partial_copy:
            partial_copy.write_bytes(source.read_bytes())
