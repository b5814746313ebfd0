import json

import pytest

from smd_agent.core.modes import ModeKeys
from smd_agent.errors import IndexReaderException
from smd_agent.formats.index import IndexParser, index_text, shape_fragment, tensor_fragment

EVENT = "events/000000000010/000000000010_worker_0.tfevents"
META = {"mode": "TRAIN", "mode_step": 7, "event_file_name": EVENT}
ODD = 'a "quoted"\\ näme\n'


def text(**changed):
    return json.dumps({"meta": META, "tensor_payload": [], "shape_payload": []} | changed)


def test_written_text_has_the_keys_of_the_format():
    written = index_text(
        "EVAL",
        3,
        EVENT,
        [tensor_fragment(json.dumps(ODD), 0, 40), ", ".join(tensor_fragment('"b"', at, 20) for at in (40, 60))],
        [shape_fragment('"b"', json.dumps(ODD), (2, 3)), shape_fragment('"c"', '"c"', ())],
    )
    assert json.loads(written) == {
        "meta": {"mode": "EVAL", "mode_step": 3, "event_file_name": EVENT},
        "tensor_payload": [
            {"tensorname": ODD, "start_idx": 0, "length": 40},
            {"tensorname": "b", "start_idx": 40, "length": 20},
            {"tensorname": "b", "start_idx": 60, "length": 20},
        ],
        "shape_payload": [
            {"tensorname": "b", "originalname": ODD, "shape": [2, 3]},
            {"tensorname": "c", "originalname": "c", "shape": []},
        ],
    }


def test_a_tensor_with_location_and_shape_keeps_both():
    index = IndexParser().parse(
        text(
            tensor_payload=[{"tensorname": "t", "start_idx": 5, "length": 30}],
            shape_payload=[{"tensorname": "t", "originalname": "o", "shape": [4]}],
        )
    )
    assert (index.mode, index.mode_step, index.event_file) == (ModeKeys.TRAIN, 7, EVENT)
    assert index.payload.location("t") == (5, 30)
    assert index.payload.shapes["t"] == ("o", (4,), "")


def test_of_two_records_with_one_name_the_later_counts():
    entries = [{"tensorname": "t", "start_idx": at, "length": 30} for at in (0, 30)]
    assert IndexParser().parse(text(tensor_payload=entries)).payload.location("t") == (30, 30)


def test_a_step_of_shapes_alone_has_no_event_file():
    shape = shape_fragment('"t"', '"t"', (1, 2))
    index = IndexParser().parse(index_text("PREDICT", 0, None, [], [shape]))
    assert index.event_file is None
    assert index.payload.location("t") is None
    assert index.payload.shapes == {"t": ("t", (1, 2), "")}


def test_a_dtype_stands_beside_a_shape_or_is_missing():
    shapes = [shape_fragment('"t"', '"t"', (1, 2), "bfloat16"), shape_fragment('"u"', '"u"', (3,))]
    parser = IndexParser()
    for step in range(2):
        payload = parser.parse(index_text("TRAIN", step, None, [], shapes)).payload
        assert payload.shapes == {"t": ("t", (1, 2), "bfloat16"), "u": ("u", (3,), "")}
    for odd in (7, None, "", "a b", "x" * 41, ["float32"]):
        entry = {"tensorname": "t", "originalname": "t", "shape": [1], "dtype": odd}
        assert parser.parse(text(tensor_payload=[], shape_payload=[entry])).payload.shapes == {"t": ("t", (1,), "")}


def test_steps_that_differ_in_meta_alone_share_their_payload():
    parser = IndexParser()
    first, second = (
        parser.parse(index_text("TRAIN", step, EVENT, [tensor_fragment('"t"', 0, 30)], [])) for step in (1, 2)
    )
    assert (first.mode_step, second.mode_step) == (1, 2)
    assert first.payload is second.payload


def test_a_remembered_payload_does_not_hide_what_stands_before_it():
    parser = IndexParser()
    parser.parse(text())
    shapes = [{"tensorname": "t", "originalname": "t", "shape": [4]}]
    reordered = json.dumps({"meta": META, "shape_payload": shapes, "tensor_payload": [], "more": []})
    parser.parse(reordered.replace(json.dumps(shapes), "[]"))
    assert "t" in parser.parse(reordered).payload


@pytest.mark.parametrize(
    "content, message",
    [
        ("", "Empty/Corrupt Index File"),
        (text()[:40], "Empty/Corrupt Index File"),
        ("[]", "Empty/Corrupt Index File"),
        (json.dumps({"tensor_payload": []}), "meta section is not present"),
        (text(meta={}), "meta section is empty"),
        (json.dumps({"meta": META}), "neither tensor_payload nor shape_payload sections are present"),
        (text(tensor_payload=[{"tensorname": "t", "start_idx": 0}]), "Empty/Corrupt Index File"),
        (text(tensor_payload=[{"tensorname": "t", "start_idx": -5, "length": 30}]), "Empty/Corrupt Index File"),
        (text(tensor_payload=[{"tensorname": 3, "start_idx": 0, "length": 30}]), "Empty/Corrupt Index File"),
        (text(meta={"mode": "LUNCH", "mode_step": 1}), "meta section does not name a mode and a step"),
        (
            text(
                meta={"mode": "TRAIN", "mode_step": 1},
                tensor_payload=[{"tensorname": "t", "start_idx": 0, "length": 30}],
            ),
            "meta section has no event_file_name",
        ),
    ],
)
def test_an_index_that_cannot_be_understood_says_why(content, message):
    with pytest.raises(IndexReaderException) as caught:
        IndexParser().parse(content)
    assert caught.value.message == message


def places(*numbers, **further):
    return [{"tensorname": f"t{at}", "start_idx": a, "length": b} | further for at, (a, b) in enumerate(numbers)]


def test_texts_that_differ_in_their_numbers_are_read_one_by_one():
    parser = IndexParser()
    for first, second in (((0, 20), (20, 30)), ((0, 25), (25, 16)), ((7, 2**31), (2**62, 99)), ((0, 20), (20, 30))):
        payload = parser.parse(text(tensor_payload=places(first, second))).payload
        assert (payload.location("t0"), payload.location("t1")) == (first, second)
        assert payload.tensors is parser.shared(("t0", "t1"))


@pytest.mark.parametrize("place", [(0, 15), (0, 2**32), (2**62 + 1, 30), (2**63, 30), (-1, 30)])
def test_places_that_cannot_be_are_refused_in_texts_like_one_before(place):
    parser = IndexParser()
    parser.parse(text(tensor_payload=places((0, 20))))
    with pytest.raises(IndexReaderException):
        parser.parse(text(tensor_payload=places(place)))


def test_a_name_that_looks_like_a_place_is_a_name():
    parser = IndexParser()
    for start in (0, 5):
        names = ['", "start_idx": 1, "length": 20}', "b"]
        entries = [{"tensorname": name, "start_idx": start, "length": 20} for name in names]
        payload = parser.parse(text(tensor_payload=entries)).payload
        assert [payload.location(name) for name in names] == [(start, 20)] * 2


def test_places_that_stand_twice_in_an_entry_are_read_as_json_is():
    parser = IndexParser()
    for start in (0, 5):
        twice = f'{{"start_idx": 9, "length": 99}}, "start_idx": {start}, "length": 20}}'
        entries = '[{"tensorname": "t", "further": ' + twice + "]"
        written = text().replace("[]", entries, 1)
        assert parser.parse(written).payload.location("t") == (start, 20)


def test_a_later_text_that_is_cut_off_is_refused():
    parser = IndexParser()
    whole = text(tensor_payload=places((0, 20)))
    parser.parse(whole)
    for cut in range(1, len(whole), 7):
        with pytest.raises(IndexReaderException):
            parser.parse(whole.replace('"start_idx": 0', '"start_idx": 3')[:-cut])
