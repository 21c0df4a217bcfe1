"""The decoding benchmark runs on any folder of JPEGs and times both decoders; judging the ratio is left to it."""

from pathlib import Path

from tests.data.raw_trees import folder_tree
from tools.benchmarks.decoding import bench_decoding


def test_both_decoders_are_timed_against_a_whole_pack(tmp_path: Path):
    folder_tree(tmp_path, "abc", 8)
    measured = bench_decoding(1, folder=tmp_path)
    assert set(measured) == {"decode_bare", "decode_bare_reduced"}
    for times in measured.values():
        assert times["ours_s"] > 0
        assert times["ratio"] == times["reference_s"] / times["ours_s"]
