"""Lines that runs have printed, compared."""

import pytest

from smd_agent.verify.printed_lines import compare


def found(plain, again, agent):
    return compare("stdout", plain.encode(), again.encode(), agent.encode())


def test_lines_that_are_the_same_are_equal():
    printed = found("a\nb\n", "a\nb\n", "a\nb\n")
    assert (printed.lines, printed.varying, printed.difference) == (2, (), None)


def test_the_first_line_that_is_another_with_the_agent_is_named():
    difference = found("a\nb\nc\n", "a\nb\nc\n", "a\nx\ny\n").difference
    assert (difference.what, difference.here, difference.there) == ("line 2 of stdout", "'b'", "'x'")


def test_a_line_that_is_missing_or_more_with_the_agent_is_named():
    assert found("a\nb\n", "a\nb\n", "a\n").difference.there == "no such line"
    assert found("a\n", "a\n", "a\nb\n").difference.here == "no such line"
    assert found("a\n", "a\n", "a").difference is not None


def test_lines_of_the_agents_own_are_left_out_and_counted():
    printed = found("a\nbc\n", "a\nbc\n", "smd_agent: saving\na\nbsmd_agent: saved\nc\n")
    assert (printed.ours, printed.difference) == (2, None)


def test_of_a_line_that_varies_by_itself_the_rest_is_compared():
    texts = "loss 0.5 in 12 s\n", "loss 0.5 in 13 s\n"
    printed = found(*texts, "loss 0.5 in 99 s\n")
    assert (printed.varying, printed.difference) == ((1,), None)
    assert found(*texts, "loss 0.6 in 12 s\n").difference.what == "line 1 of stdout"
    assert found(*texts, "lost 0.5 in 12 s\n").difference.what == "line 1 of stdout"


@pytest.mark.parametrize(
    "texts",
    [
        ("9.8 s", "9.9 s", "10.2 s"),
        ("took 1.4ms", "took 1.5ms", "took 0.4s"),
        ("998,999 bytes", "998,123 bytes", "997,001 bytes"),
        ("at 09:42:05,1", "at 09:42:06,2", "at 09:43:00,9"),
        ("22/22 - 1s - 52ms/step", "22/22 - 1s - 54ms/step", "22/22 - 2s - 91ms/step"),
        ("in   8 s", "in   9 s", "in  10 s"),
        ("6e214fec", "4344c1ef", "ab12cd34"),
        ("<Net at 0x7f5e10>", "<Net at 0x7f5a10>", "<Net at 0x7e5e10>"),
    ],
)
def test_numbers_and_identifiers_that_vary_do_so_as_a_whole(texts):
    """What two runs have in common of them, such as a first digit, is chance."""
    printed = found(*texts)
    assert (printed.varying, printed.difference) == ((1,), None)


def test_what_is_beside_a_separator_is_a_word_of_its_own():
    texts = "loss=0.5,time=12,sizes=[3, 4]", "loss=0.5,time=13,sizes=[3, 4]"
    assert found(*texts, "loss=0.5,time=100,sizes=[3, 4]").difference is None
    assert found(*texts, "loss=0.6,time=12,sizes=[3, 4]").difference is not None
    assert found(*texts, "loss=0.5,time=12,sizes=[3, 5]").difference is not None


def test_a_line_with_another_number_of_words_in_each_run_is_not_compared():
    printed = found("1.5 s\n", "59 s\n", "2 m 3 s\n")
    assert (printed.varying, printed.own.there, printed.difference) == ((1,), "'59 s'", None)


def test_texts_of_another_length_in_each_run_are_not_compared():
    printed = found("a\n", "a\nb\n", "c\n")
    assert (printed.counted, printed.difference) == (False, None)
    assert (printed.own.what, printed.own.here, printed.own.there) == ("line 2 of stdout", "no such line", "'b'")
