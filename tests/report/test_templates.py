"""Sentences: what the page is filled with, and that Python, a spreadsheet and node say the same."""

import math
import random

import pytest
import xlsxwriter
from every_formula import every_formula
from random_calls import arguments
from recalculation import assert_recalculates, compare, needs_libreoffice, poison, recalculate_with_formualizer

from sheetgen.formula import Formula, is_number, is_text
from sheetgen.formula.tree import INPUT
from sheetgen.report import sentences
from sheetgen.report.page import NONE, Cell
from sheetgen.report.templates import Unless, first_of, q, template
from sheetgen.report.wording import rent
from sheetgen.units import USD, WHOLE

N_CALLS = 40
SENTENCES = [value for value in vars(sentences).values() if isinstance(value, Formula)]


def asked(sentence, operation):
    """Inputs of which a sentence asks that."""
    parts = [part.arguments[0] for part in sentence.tree.walk() if part.operation.name == operation]
    return {part.arguments[0] for part in parts if part.operation is INPUT}


def is_finite(value):
    return isinstance(value, float) and math.isfinite(value)


def random_call(sentence, draw):
    """Values by name, of few digits; texts where a sentence asks for them."""
    values = dict(zip(sentence.inputs, arguments(sentence, draw), strict=True))
    values |= {name: round(value * 8) / 8 for name, value in values.items() if is_finite(value)}
    values |= {name: 1000.0 for name in values if name == "milliseconds_per_second"}
    return values | {name: draw.choice(["aws", "a_b", ""]) for name in asked(sentence, "is_text")}


def write(path):
    """A row for each call: the values, and the sentence with what Python says."""
    draw, n_rows, filled = random.Random(1), 0, set()
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet("Calls")
        for sentence in SENTENCES:
            blank = asked(sentence, "is_blank")
            for _ in range(N_CALLS):
                values = random_call(sentence, draw)
                cells = {name: f"{chr(66 + i // 26)}{chr(65 + i % 26)}" for i, name in enumerate(values)}
                n_rows += 1
                for i, (name, value) in enumerate(values.items(), 26 * 2):
                    is_none = isinstance(value, float) and math.isnan(value)
                    if not is_none or name not in blank:
                        sheet.write(n_rows - 1, i, "-" if is_none else value)
                text = sentence.text_of_names(f"{cells[name]}{n_rows}" for name in sentence.inputs)
                value = sentence.of(values)
                sheet.write_formula(n_rows - 1, 0, f"={text}", None, value)
                filled.add((sentence.name, value))
    assert len(filled) > 8 * len(SENTENCES)
    return n_rows


def test_sentences_in_formualizer(tmp_path):
    path = tmp_path / "calls.xlsx"
    n_calls = write(path)
    assert poison(path, tmp_path / "poisoned.xlsx") == n_calls
    result = compare(path, recalculate_with_formualizer(tmp_path / "poisoned.xlsx", tmp_path / "out.xlsx"))
    assert not result.mismatches, str(result)
    assert result.n_compared == n_calls


@pytest.mark.long
@needs_libreoffice
def test_sentences_in_libreoffice(tmp_path):
    path = tmp_path / "calls.xlsx"
    n_calls = write(path)
    assert assert_recalculates(path, tmp_path).n_compared == n_calls


def test_sentences_are_among_the_formulas_that_node_is_held_to():
    assert {id(sentence) for sentence in SENTENCES} <= {id(formula) for formula in every_formula()}
    assert len({sentence.name for sentence in SENTENCES}) == len(SENTENCES) > 30


served = template(
    "{n} {n:request|requests}[aimed? of {load}], [free?free|{usd} each]",
    when=is_number(q.n),
    otherwise=None,
    aimed=q.load > 0,
    free=q.price == 0,
    usd="{price:whole}",
)


def test_a_sentence_is_filled_for_the_page():
    cell = served.fill(n=1200, load=2000, price=Cell(3.5, USD))
    assert cell == "1,200 requests of 2,000, $4 each"
    assert [part.value for part in cell.parts if isinstance(part, Cell)] == [1200, 2000, 3.5]
    assert served.fill(n=1, load=0, price=0) == "1 request, free"
    assert served.fill(n=math.nan, load=0, price=0) is NONE
    # Whether a condition holds may be given, and what a part says.
    assert served.fill(n=2, aimed=False, free=False, usd="dear") == "2 requests, dear each"
    assert served.fill(n=2, load=0, aimed=True, price=1, usd=Cell(7, USD)) == "2 requests of 0, $7 each"
    assert served.saying(aimed=False, free=False).fill(n=1, price=7) == "1 request, 7 each"
    # The first slots in their order.
    assert sentences.throughput_band.fill(Cell(48.2, WHOLE), Cell(38.1, WHOLE), 1057) == "48 tokens/s (38–1,057)"
    whole_room = sentences.room.fill("4.5 requests/s", 1200, n_instances=2, aimed=True)
    assert whole_room == "serves 4.5 requests/s within the targets; memory for at least 1,200 at once"


def test_page_and_workbook_draw_from_one_sentence():
    assert sentences.rent.fill(2, "Standard_ND96isr_H200_v5") == sentences.rent_words(2, "Standard_ND96isr_H200_v5")
    assert str(rent(2, "lambda/1x B200 SXM6")) == "2 × (1x B200 SXM6)", "a type that is a count"
    assert sentences.rent.fill(math.nan, "nothing fits") == sentences.rent_words(math.nan, "nothing fits")
    assert sentences.gpus.fill(8, "H100 SXM") == sentences.owned_words(8, "H100 SXM") == "8× H100 SXM"
    limits = {"tpot_limit_seconds": 0.05, "ttft_limit_seconds": 5, "no_limit_seconds": 1e9}
    values = {"n_instances": 1, "served_at_target": 44, "memory_holds": 54, **limits}
    assert sentences.room.fill(**values) == sentences.room_words.of(values)


def test_a_sentence_is_a_formula_of_what_it_reads():
    whole = served.formula("served", "Served", "So many.", "here.")
    assert (whole.inputs, whole.documentation) == (("n", "load", "price"), "So many.\n\nSource: here.")
    assert whole(1, 3, 2.6) == "1 request of 3, 3 each"
    assert whole(math.nan, 0, 0) == "-"
    assert whole.tree.text == (
        'IF(ISNUMBER({n}),{n}&" "&IF({n}=1,"request","requests")&IF({load}>0," of "&{load},"")'
        '&", "&IF({price}=0,"free",TEXT({price},"0")&" each"),"-")'
    )
    assert served.saying(aimed=False, free=True).formula("served", "Served").inputs == ("n",)
    computed = template("{double} of {n:next}{more}", double=q.n * 2, more="{rest}").saying(more="; {least}")
    doubled = computed.formula("double", "Double")
    assert (doubled.inputs, doubled(2, "none"), doubled.tree.text) == (
        ("n", "least"),
        "4 of 3; none",
        '{n}*2&" of "&{n}+1&("; "&{least})',
    )


def test_the_first_that_holds_is_said():
    chosen = first_of((Unless(is_text(q.name)), "no name"), (q.n > 1, "{n} {name}"), otherwise="a {name}")
    assert [chosen.fill(name=name, n=n) for name, n in (("", 2), ("gpu", 2), ("gpu", 1))] == [
        "no name",
        "2 gpu",
        "a gpu",
    ]
    assert (
        chosen.formula("chosen", "Chosen").tree.text == 'IF({name}>"",IF({n}>1,{n}&" "&{name},"a "&{name}),"no name")'
    )


def test_an_unknown_kind_of_slot_is_refused():
    with pytest.raises(KeyError, match="pounds"):
        template("{n:pounds}")


def test_what_is_joined_to_a_text_is_written_in_its_decimals():
    """Gnumeric joins 0.27, a number, as 0.27000000000000000001, and a rate as long: it is told by the hour."""
    price = template("{usd:cents} an hour").formula("price", "Price")
    assert price(0.27) == "$0.27 an hour" and "FIXED(" in price.text_of_names(price.inputs)
    room = sentences.rate_or_room_words
    values = dict.fromkeys(room.inputs, 1.0) | {"seconds_in_an_hour": 3600, "served_at_target": 0.30659}
    assert room(*(values[name] for name in room.inputs)).startswith("serves 1,103 requests an hour")
