"""Lines that runs have printed, compared."""

from smd_agent.verify.printed import compare


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


def test_a_line_with_another_number_of_numbers_in_each_run_is_not_compared():
    printed = found("1 s\n", "1.5 s\n", "2 m 3 s\n")
    assert (printed.varying, printed.own.there, printed.difference) == ((1,), "'1.5 s'", None)


def test_texts_of_another_length_in_each_run_are_not_compared():
    printed = found("a\n", "a\nb\n", "c\n")
    assert (printed.counted, printed.difference) == (False, None)
    assert (printed.own.what, printed.own.here, printed.own.there) == ("line 2 of stdout", "no such line", "'b'")
