"""Summaries for TensorBoard: their bytes, read by the protobuf library and compared with what was put in."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from smd_agent.core.distribution import distribution_of, from_counts
from smd_agent.core.reductions import count_by_size
from smd_agent.formats import summaries
from smd_agent.formats.messages import Event, Summary
from smd_agent.formats.tfrecord import FRAME_BYTES, FRAME_HEADER_BYTES, masked_crc, payload_length


def event_of(record):
    """The message of a record whose checksums are TensorBoard's."""
    length = payload_length(record)
    assert len(record) == length + FRAME_BYTES
    payload = record[FRAME_HEADER_BYTES:-4]
    assert record[-4:] == struct.pack("<I", masked_crc(payload))
    return Event.FromString(payload)


def histogram_of(values):
    distribution = distribution_of(np.asarray(values))
    (value,) = Summary.FromString(summaries.histogram("a/b", distribution)).value
    assert value.tag == "a/b"
    return value.histo


def test_a_file_begins_with_its_version():
    event = event_of(summaries.file_head(12.5))
    assert (event.wall_time, event.file_version) == (12.5, "brain.Event:2")


@pytest.mark.parametrize("count", [1, 2, 300])
def test_scalars_of_a_step(count):
    tags = [f"weights/{'x' * number}/mean" for number in range(count)]
    values = np.linspace(-1, 1, count)
    rendered = summaries.Scalars(tags).render(values)
    event = event_of(summaries.summary(3.5, 10**12, rendered))
    assert (event.wall_time, event.step) == (3.5, 10**12)
    assert [one.tag for one in event.summary.value] == tags
    assert [one.simple_value for one in event.summary.value] == values.astype(np.float32).tolist()


def test_scalars_may_be_anything_that_a_float_is():
    values = np.array([np.nan, np.inf, -np.inf, 1e300, -0.0])
    found = Summary.FromString(summaries.Scalars("abcde").render(values)).value
    np.testing.assert_array_equal([one.simple_value for one in found], [np.nan, np.inf, -np.inf, np.inf, 0.0])


@pytest.mark.parametrize(
    "name, tag",
    [
        ("fc/weights/fc/kernel:0", "fc/weights/fc/kernel_0"),
        ("/job:worker/x", "job_worker/x"),
        ("größe-1.w x", "größe-1.w_x"),
    ],
)
def test_names_become_tags_as_smdebug_made_them(name, tag):
    assert summaries.tag_of(name) == tag


def test_a_tag_that_is_no_text_is_one_all_the_same():
    assert Summary.FromString(summaries.scalar("a\ud800", 1.0)).value[0].tag == "a?"


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4", "u1"])
def test_a_histogram_leaves_no_gap_and_counts_every_element(dtype):
    x = (np.random.default_rng(0).standard_normal(5000) * 50).clip(0 if dtype == "u1" else -np.inf).astype(dtype)
    found = histogram_of(x)
    wide = np.sort(x.astype(np.float64))
    assert (found.min, found.max, found.num) == (wide[0], wide[-1], 5000)
    assert (found.sum, found.sum_squares) == pytest.approx((wide.sum(), wide @ wide), rel=1e-5, abs=1e-3)
    ends, counts = np.array(found.bucket_limit), np.array(found.bucket)
    assert (np.diff(ends) > 0).all()
    assert counts.sum() == 5000
    up_to = np.where(ends < 0, np.searchsorted(wide, ends, "right"), np.searchsorted(wide, ends, "left"))
    assert np.cumsum(counts)[:-1].tolist() == up_to[:-1].tolist()


def test_each_bucket_is_at_most_an_eighth_of_its_size_wide():
    found = histogram_of(np.random.default_rng(1).uniform(1, 2, 1000))
    assert np.diff(found.bucket_limit).max() <= 0.125


def test_a_gap_is_one_empty_bucket():
    found = histogram_of(np.array([-8.0, -8.0, 3.0]))
    assert list(found.bucket) == [2, 0, 1]
    assert list(found.bucket_limit) == [-8.0, 3.0, 3.25]


def test_what_is_not_finite_is_left_out_and_counted():
    x = np.array([np.nan, 1.0, 2.0, np.inf, -np.inf, 4.0], np.float32)
    distribution = distribution_of(x)
    assert (distribution.others, distribution.size) == (3, 3)
    assert (distribution.low, distribution.high, distribution.total) == (1.0, 4.0, 7.0)
    assert distribution.squares == pytest.approx(21.0)


@pytest.mark.parametrize("values", [[np.nan, np.inf], [1e300, -1e300, 0.0], [1e-300, 2e-300, 0.0], [0.0, 0.0]], ids=str)
def test_values_at_the_ends_of_the_range(values):
    distribution = distribution_of(np.array(values))
    finite = np.isfinite(values).sum()
    assert distribution.size == finite
    if finite:
        ends, counts = distribution.buckets()
        assert counts.sum() == finite
        assert ends[-1] >= max(values)


def test_a_stored_histogram_alone_tells_about_where_the_values_are():
    x = np.random.default_rng(2).standard_normal(1000)
    found = from_counts(count_by_size(x))
    assert (found.size, found.others, found.fine) == (1000, 0, False)
    assert -8 <= found.low <= x.min() <= x.max() <= found.high <= 8
    assert found.squares == pytest.approx(x @ x, rel=0.3)
    assert from_counts(count_by_size(np.zeros(5)))[:4] == (0.0, 0.0, 0.0, 0.0)
