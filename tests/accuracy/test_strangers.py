"""Programs of strangers: each is there with its correction, and the page is made of them."""

from __future__ import annotations

from accuracy.strangers import FOLDER, ROOT, page, strangers


def test_each_program_has_a_fault_and_is_mended_by_its_correction():
    every = [*strangers()]
    assert len(every) >= 120
    assert {one.path for one in every} == {*FOLDER.glob("*/*.py")}
    for one in every:
        compile(one.path.read_text(), one.name, "exec")
        compile(one.mended(), one.name, "exec")
        assert one.mended() != one.path.read_text()
        assert one.fault
        assert one.cause


def test_the_page_is_made_of_them():
    assert (ROOT / "docs" / "rules-first-look.md").read_text() == page()
