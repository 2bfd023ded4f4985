"""A brand file is read strictly: every fault has its line, its key, and a way out; never a text of the file, which a
scenario from elsewhere may have named."""

from __future__ import annotations

from pathlib import Path

import pytest
from brands import EXAMPLE, TEMPLATES, picture, written
from hypothesis import given
from hypothesis import strategies as st

from sheetgen.brand import LEAST_CONTRAST, TINT, WHITE, Colors, contrast, read_brand
from sheetgen.errors import CatalogError
from sheetgen.writers.layout import PAGE


def problems(path: Path) -> tuple[str, ...]:
    with pytest.raises(CatalogError) as error:
        read_brand(path)
    return tuple(line.replace(str(path), "brand.yaml") for line in error.value.problems)


def test_the_example_is_whole() -> None:
    brand = read_brand(EXAMPLE)
    assert (brand.name, brand.footer) == ("Acme GmbH", "Confidential. For planning only.")
    assert brand.logo is not None and brand.logo.png.startswith(b"\x89PNG")
    assert all(brand.colors.model_dump().values())


def test_only_the_name_is_needed(tmp_path: Path) -> None:
    brand = read_brand(written(tmp_path, "name: Acme  &  Sons"))
    assert (brand.name, brand.footer, brand.logo, brand.colors) == ("Acme & Sons", "", None, Colors())


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("footer: x", "brand.yaml:1: field 'name' is missing."),
        ("name: X\ncolours: {}", "brand.yaml:2: unknown field colours. Did you mean colors?"),
        ("name: X\ncolors: {acent: '#000000'}", "brand.yaml:2: unknown field acent. Did you mean accent?"),
        ("name: X\ncolors:\n  accent: #0B5FFF", "brand.yaml:3: accent is no colour: write # and six"),
        ("name: X\ncolors: {accent: blue}", "brand.yaml:2: accent is no colour"),
        ("name: X\ncolors: {accent: '#FFD400'}", "#FFD400': its contrast with white is 1.43, and words need 4.5. Try"),
        ("name: X\ncolors: {heading: '#777777'}", "contrast with white is 4.47, and words need 4.5. Try"),
        ("name: X\ncolors: {heading: '#747474'}", "contrast with the tint #F3F6F9 is 4.3, and words need 4.5. Try"),
        ("name: X\ncolors: {tint: '#EEF3FB'}", "brand.yaml:2: unknown field tint."),
        ("name: 7", "brand.yaml:1: name must be text."),
        ("name: <b>X</b>", "brand.yaml:1: name holds a line break or one of < >"),
        ("name: '=cmd()'", "starts with a character that a spreadsheet reads as a formula"),
        ('name: "X\\u202Egpj"', "holds a control character"),
        ('name: "a\\nb"', "holds a line break"),
        (f"name: {'x' * 61}", "takes 61 characters (an & counts as 4); a name may take 60. Shorten it."),
        (f"name: X\nfooter: '{'&' * 31}'", "takes 124 characters (an & counts as 4); a footer may take 120."),
        ("[]", "the file must be a mapping of fields."),
        ("name: &a X\nfooter: *a", "uses an anchor or alias"),
    ],
)
def test_a_fault_is_told_with_its_place(text: str, line: str, tmp_path: Path) -> None:
    assert any(line in problem for problem in problems(written(tmp_path, text)))


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, "name: <b>\ncolors: {accent: red, heading: 3}\nfoter: x")
    assert [p.split(":")[1] for p in problems(path)] == ["1", "2", "2", "3"]


@pytest.mark.parametrize(
    ("logo", "line"),
    [
        ("https://example.com/logo.png", "is a web address or a drive"),
        ("file:logo.png", "is a web address or a drive"),
        ("C:/logo.png", "is a web address or a drive"),
        ("//server/share/logo.png", "leaves the file's folder"),
        ("\\\\server\\share\\logo.png", "is no path"),
        ("/etc/hostname", "leaves the file's folder"),
        ("../logo.png", "leaves the file's folder"),
        ("a/../../logo.png", "leaves the file's folder"),
        ("link.png", "is a link that leaves the file's folder"),
        ("missing.png", "cannot be read (No such file or directory)"),
        ("inside", "is a folder"),
        ("", "is no path"),
    ],
)
def test_a_logo_stands_beside_its_file(logo: str, line: str, tmp_path: Path) -> None:
    folder = tmp_path / "brand"
    (folder / "inside").mkdir(parents=True)
    (tmp_path / "logo.png").write_bytes(picture(40, 40))
    (folder / "link.png").symlink_to(tmp_path / "logo.png")
    (problem,) = problems(written(folder, f"name: X\nlogo: '{logo}'"))
    assert problem.startswith("brand.yaml:2: logo ") and line in problem


def test_a_logo_may_stand_in_a_folder_below_or_behind_a_link_there(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "logo.png").write_bytes(picture(40, 40))
    (tmp_path / "link.png").symlink_to(tmp_path / "pictures" / "logo.png")
    for logo in ("pictures/logo.png", "link.png"):
        assert read_brand(written(tmp_path, f"name: X\nlogo: {logo}")).logo is not None


COLOR = st.tuples(*[st.integers(0, 255)] * 3).map(lambda rgb: "#{:02X}{:02X}{:02X}".format(*rgb))


@given(COLOR)
def test_words_can_be_read_in_what_is_accepted_and_in_what_is_advised(color: str) -> None:
    for name in ("heading", "accent"):
        colors = Colors.model_validate({name: color})
        faults = [sentence for _, sentence in colors.wrong()]
        assert bool(faults) == (min(contrast(color, ground) for ground in (WHITE, TINT)) < LEAST_CONTRAST)
        for sentence in faults:
            advised = Colors.model_validate({name: sentence.split("Try '")[1].rstrip("'")})
            assert not list(advised.wrong())


def test_the_ladder_of_contrast() -> None:
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.478, abs=0.001)  # as WebAIM gives it
    assert contrast("#0B5FFF", "#FFFFFF") == contrast("#FFFFFF", "#0B5FFF")


def test_the_page_has_the_ground_that_colours_are_held_to() -> None:
    css = (TEMPLATES / "one_page.css").read_text(encoding="utf-8")
    assert f"background: {TINT.lower()}" in css
    assert all(f"var(--{color})" in css for color in PAGE)
    assert all(contrast(color, ground) >= LEAST_CONTRAST for color in PAGE.values() for ground in (WHITE, TINT))
