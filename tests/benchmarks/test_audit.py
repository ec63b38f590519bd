"""The audit tells weak versions from mended ones, by the shipped list."""

from __future__ import annotations

from benchmarks.audit import LIST, weak


def test_versions_before_the_mended_one_are_weak() -> None:
    lines = ["pillow 10.3.0 an overflow"]
    assert weak(lines, {"pillow": "10.2.9"}) == ["pillow 10.2.9: an overflow, mended in 10.3.0"]
    assert weak(lines, {"pillow": "10.3.0"}) == weak(lines, {"pillow": "11.0"}) == weak(lines, {}) == []


def test_the_list_can_be_read() -> None:
    head, *lines = LIST.read_text().splitlines()
    assert head.startswith("# Written") and all(len(line.split(None, 2)) == 3 for line in lines)
