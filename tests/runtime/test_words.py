"""Words of structures are given out once, in order."""

import pytest

from cq.runtime.layout.words import Overlay, Struct


def test_words_follow_each_other():
    place = Struct("PLACE")
    # [ head | body body body | tail ]
    assert [place.word(), place.words(3), place.word(), place.size()] == [0, 1, 4, 5]


def test_a_structure_begins_with_another_or_before_its_address():
    assert [(s := Struct("LONGER", after=5)).word(), s.word(), s.size()] == [5, 6, 7]
    assert [(s := Struct("HEADER", after=-8)).word(), s.word()] == [-8, -7]


def test_a_word_on_a_line_of_its_own_has_no_neighbours():
    place = Struct("PLACE")
    # [ word . . . . . . . | line . . . . . . . | line . . . . . . . | word
    assert [place.word(), place.line(), place.line(), place.word()] == [0, 8, 16, 24]


def test_holes_are_declared():
    place = Struct("PLACE")
    first = place.word()
    place.skip(2)
    second = place.word()
    place.align()
    place.align()  # it stands there already
    assert (first, second, place.word(), place.lines()) == (0, 3, 8, 16)


@pytest.mark.parametrize("end", [Struct.size, Struct.rest, Struct.lines])
def test_nothing_is_declared_behind_the_end(end):
    place = Struct("PLACE")
    place.word()
    end(place)
    for more in (place.word, place.line, lambda: place.skip(1)):
        with pytest.raises(AssertionError, match=r"PLACE: a (word|hole) behind its end"):
            more()


def test_an_overlay_takes_each_word_of_the_other_structure_once():
    over = Overlay("OVER", size=4)
    assert (over.at(3), over.at(0), over.size()) == (3, 0, 4)
    with pytest.raises(AssertionError, match="OVER: word 3 twice"):
        over.at(3)
    with pytest.raises(AssertionError, match="OVER: word 4 of 4"):
        over.at(4)
