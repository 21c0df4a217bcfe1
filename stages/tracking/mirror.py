"""Copies a run to Mongo while it goes on, in a thread that can neither stop nor delay it for long."""

import logging
import threading
from pathlib import Path
from typing import Any

from pymongo.database import Database
from pymongo.errors import PyMongoError

from repro.errors import BadInput
from stages.tracking.mongo import copy_run, mongo_database

LAST_COPY_SECONDS = 10.0

logger = logging.getLogger(__name__)


class Mirror:
    """Copies one run in a thread whenever it is told to, as well as the server allows."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url = url
        self._folder = folder
        self._due = threading.Event()
        self._last = threading.Event()
        self._whole = False
        self._thread = threading.Thread(target=self._copy_when_due, name="mirror", daemon=True)

    def __enter__(self) -> "Mirror":
        self._thread.start()
        return self

    def poke(self) -> None:
        """Ask for a copy; returns at once."""
        self._due.set()

    def __exit__(self, *_: object) -> None:
        """Wait a bounded time for the last copy; say how to catch up where it did not succeed."""
        self._last.set()
        self._due.set()
        self._thread.join(LAST_COPY_SECONDS)
        if not self._whole:
            logger.warning("Mongo did not take all of run %s; `tools/sync` copies it later", self._folder.name)

    def _copy_when_due(self) -> None:
        try:
            with mongo_database(self._url) as database:
                while True:
                    self._due.wait()
                    self._due.clear()
                    last = self._last.is_set()
                    self._whole = self._copy(database) and last
                    if last:
                        return
        except BadInput as error:
            logger.warning("%s", error)

    def _copy(self, database: Database[dict[str, Any]]) -> bool:
        """Try to copy; what fails now is in the folder and comes with the next copy."""
        try:
            copy_run(self._folder, database)
        except (PyMongoError, BadInput, OSError):
            return False
        return True
