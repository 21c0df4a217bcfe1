"""The decoding benchmark runs on any folder of JPEGs; judging the ratio is left to who reads it."""

from pathlib import Path

from tests.preparation.raw_trees import folder_tree
from tools.benchmarks.decoding import bench_decoding, decode


def test_a_whole_pack_is_timed_against_the_bare_loop(tmp_path: Path) -> None:
    folder_tree(tmp_path, "abc", 8)
    measured = bench_decoding(decode, 1, folder=tmp_path)
    assert measured["ours_s"] > 0
    assert measured["ratio"] == measured["reference_s"] / measured["ours_s"]
