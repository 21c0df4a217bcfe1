"""What is kept of a stage's output."""

import io
import os
import subprocess
import sys
import threading

from tqdm import tqdm

from stages.tracking import bad_input_exits
from stages.tracking.capture import as_seen, output_capture
from tests.paths import ROOT


def test_a_progress_bar_is_kept_in_its_last_state_only():
    with output_capture() as capture:
        for _ in tqdm(range(500), mininterval=0, desc="bar"):
            pass
        print("after")
    bar, after = capture.text().splitlines()
    assert bar.startswith("bar: 100%") and "500/500" in bar
    assert after == "after"


def test_a_cleared_bar_leaves_nothing_but_what_was_there():
    assert as_seen("before\r 50%|##  |\r          \rend\n") == "end\n"
    assert as_seen("50%\r   \r\n") == "50%\n"


def test_colours_titles_and_cursor_movements_are_dropped():
    assert as_seen("\x1b[31mred\x1b[0m \x1b]0;title\x07up\x1b[A\x1b[2K!\x08") == "red up!"


def test_no_code_of_one_character_is_kept_either():
    assert as_seen("\x9b31mred\x9b0m \x9d0;title\x9cup\x9bA\x9d0;title\x07 \x1bP1$r\x1b\\\x90q\x9c!") == "red up 1$rq!"
    kept = as_seen("".join(map(chr, range(0x7F, 0xA0)))) + as_seen("".join(map(chr, range(0x20))))
    assert kept.strip() == ""


def test_filtering_twice_changes_nothing():
    once = as_seen("a\r\x1b[1mb\x1b[0m\nc\rd")
    assert as_seen(once) == once == "b\nd"


def test_output_reaches_the_terminal_unchanged_and_streams_are_put_back():
    before, terminal = sys.stdout, io.StringIO()
    sys.stdout = terminal
    try:
        with output_capture() as capture:
            print("\x1b[31mred\x1b[0m")
            sys.stdout.writelines(["x", "y\n"])
            assert sys.stdout.getvalue  # all else is the real stream's
        assert sys.stdout is terminal
    finally:
        sys.stdout = before
    assert terminal.getvalue() == "\x1b[31mred\x1b[0m\nxy\n"
    assert capture.text() == "red\nxy\n"


def test_lines_of_many_threads_stay_whole():
    with output_capture() as capture:
        writers = [threading.Thread(target=lambda: [sys.stdout.write("abc\n") for _ in range(200)]) for _ in range(5)]
        for writer in writers:
            writer.start()
        while any(writer.is_alive() for writer in writers):
            capture.text()
        for writer in writers:
            writer.join()
    assert capture.text().splitlines() == ["abc"] * 1000


def test_a_bar_redrawn_many_times_takes_no_memory():
    with output_capture() as capture:
        for step in range(10_000):
            capture.write(f"\rstep {step}")
    assert len(capture._rest) < 50
    assert capture.text() == "step 9999"


def test_a_reader_that_goes_away_does_not_stop_the_work_and_its_words_are_kept(capfd):
    reader, writer = os.pipe()
    before, sys.stdout = sys.stdout, os.fdopen(writer, "w", buffering=1)
    try:
        with output_capture() as capture:
            os.close(reader)
            for number in range(3):
                print("line", number)
        sys.stdout.close()
    finally:
        sys.stdout = before
    assert capture.text() == "line 0\nline 1\nline 2\n"


def test_a_command_whose_reader_went_away_ends_without_a_word():
    program = "from stages.tracking import bad_input_exits\nwith bad_input_exits():\n    print('x' * 10**6)"
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as done:
        assert done.stdout and done.stderr
        done.stdout.close()
        assert (done.wait(60), done.stderr.read()) == (141, b"")


def test_what_a_terminal_cannot_show_is_escaped(monkeypatch):
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, encoding="ascii"))
    with bad_input_exits():
        print("→ \udcff")
    assert shown.getvalue() == b"\\u2192 \\udcff\n"


def test_a_full_disk_behind_standard_output_is_one_sentence(faults):
    program = "from stages.tracking import bad_input_exits\nwith bad_input_exits():\n    print('x' * {})"
    for size in (1, 100_000):  # met at the end, and while printing
        faults.tried()
        with open("/dev/full", "w") as full:
            command = [sys.executable, "-c", program.format(size)]
            done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        assert (done.returncode, done.stderr) == (
            2,
            "error: standard output: no space left for it; free some space and run the same command again\n",
        )
        faults.survived()
