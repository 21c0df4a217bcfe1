"""Integrity: files written whole or not at all, locks, content hashes, and standard streams. Standard library only."""

from repro.files.disk import disk_errors_as_bad_input, file_errors_as_bad_input
from repro.files.locks import exclusive_folder, folder_in_turn, try_to_lock, wait_to_lock
from repro.files.signals import collect_signals, signals_wait
from repro.files.streams import fill_closed_streams
from repro.files.sums import (
    MAKE_AGAIN,
    SEAL,
    add_to_seal,
    check_seal,
    damage,
    read_seal,
    seal,
    sha256,
    sha256_once,
    write_sums,
)
from repro.files.whole import discard, put_in_place, replace_together, whole_file, whole_files, whole_folder

__all__ = [
    "MAKE_AGAIN",
    "SEAL",
    "add_to_seal",
    "check_seal",
    "collect_signals",
    "damage",
    "discard",
    "disk_errors_as_bad_input",
    "exclusive_folder",
    "file_errors_as_bad_input",
    "fill_closed_streams",
    "folder_in_turn",
    "put_in_place",
    "read_seal",
    "replace_together",
    "seal",
    "sha256",
    "sha256_once",
    "signals_wait",
    "try_to_lock",
    "wait_to_lock",
    "whole_file",
    "whole_files",
    "whole_folder",
    "write_sums",
]
