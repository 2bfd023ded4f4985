"""The page in a headless Chromium: it shows what Python answers, whatever its address says."""

from __future__ import annotations

import base64
import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pypdfium2
import pytest
from browser import BROWSER, REQUIRED, Browser
from live_questions import Question, catalog, facts, options_of, random_questions

from sheetgen.answer.levers import levers_of_sheet
from sheetgen.api import recommended, sheet_record
from sheetgen.errors import SheetgenError, did_you_mean
from sheetgen.live.live_page import write_live
from sheetgen.report.live_words import SENTENCES
from sheetgen.report.page import capital
from sheetgen.report.wording import money, provider_of, rent, sure
from sheetgen.units import SPOT
from sheetgen.writers.formats import Options, templates_folder

pytestmark = pytest.mark.skipif(BROWSER is None and not REQUIRED, reason="no Chromium is installed")

SHOWN: list[Question] = [
    {"model": "70b", "users": 640, "input_tokens": 15_360, "output_tokens": 1024},
    {"model": "deepseek-ai/DeepSeek-V3", "concurrent_requests": 32, "input_tokens": 3072, "output_tokens": 1024},
    {"model": "8b", "requests_per_second": 4.5, "input_tokens": 3072, "output_tokens": 256, "purchase": "spot"},
    {
        "model": "qwen2.5-14b-1m",
        "concurrent_requests": 1024,
        "input_tokens": 30_000,
        "output_tokens": 64,
    },  # 1,024 of it
    # A provider that nobody requested, less sure than the answer.
    {
        "model": "glm-4-32b-0414",
        "users": 3000,
        "requests_per_user_per_day": 5,
        "input_tokens": 15_360,
        "output_tokens": 256,
        "providers": ["aws", "azure"],
    },
    {"model": "70b", "users": 640},  # and no more, as `recommend` takes it
    {"model": "70b", "users": 20},  # where another provider is cheaper and less sure, and dearer and as sure
    {"model": "8b", "users": 100, "providers": ["lambda"]},  # whose types are counts themselves: 1x A10
    # As sure as was asked for to the last digit, as what nobody requested is.
    {
        "model": "trinity-mini",
        "requests_per_second": 60.0,
        "input_tokens": 129_024,
        "output_tokens": 2048,
        "region": "ca",
        "confidence": 0.9,
    },
]
READ = """({
  texts: Object.fromEntries(
    ["month", "rent", "year", "sure", "message"].map((id) => [id, document.getElementById(id).textContent])),
  ways: [...document.querySelectorAll("#ways tr:not([data-way=spot])")].map((row) =>
    [row.querySelector("th").firstChild.textContent, row.lastChild.textContent, row.querySelector("td").textContent]),
  spot: document.querySelector("#ways tr[data-way=spot] td")?.textContent ?? null,
})"""
TITLE = re.findall("<title>(.*)</title>", (templates_folder() / "live" / "live.html.j2").read_text("utf-8"))[0]
VIOLATE = """new Promise((done) => {
  document.addEventListener("securitypolicyviolation", (violation) => done(violation.effectiveDirective));
  document.body.append(Object.assign(document.createElement("script"), { textContent: "document.title = 1" }));
})"""
# Addresses that are no question, or want to be more than one: each is answered by a message, and shown as text.
HOSTILE = (
    "model=<img src=x onerror=document.title='taken'>",
    "model=<script>document.title='taken'</script>&users=1",
    "model=70b&users=1e999",
    "model=70b&users=-1",
    "model=70b&users=99999999999999999999",
    "model=70b&providers=__proto__",
    "model=70b&region=constructor",
    "model=__proto__",
    "__proto__=1&constructor=2",
    "model=70b&purchase=%3Cb%3E",
    "model=70b&tpot_ms=javascript:alert(1)",
    "%E0%A4%A",
    "model=70b&history_hit_fraction=200",
    "model=70b&input_tokens=3000&output_tokens=500&context_tokens=1000",
    "model=70b&input_tokens=100000000&output_tokens=100000000",
)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("live") / "live.html"
    file.write_bytes(write_live(facts(), Options()))
    return file.as_uri()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()


def address_of(question: Question) -> str:
    words = {name: "off" if name.endswith("_ms") and value == 0 else value for name, value in question.items()}
    return urlencode({name: ",".join(value) if isinstance(value, list) else value for name, value in words.items()})


def in_words(question: Question) -> dict[str, object] | None:
    """The words of Python's record in the places of the page; nothing where the question is refused."""
    try:
        solved = recommended(options_of(question), catalog())
    except SheetgenError:
        return None
    [cell] = sheet_record(solved, levers_of_sheet(solved)).cells
    if cell.chosen is None:
        return {"month": cell.verdict}
    answer = cell.answer
    spot = cell.by_purchase.get(SPOT) if answer.purchase != SPOT else None
    by_price = sorted((*cell.pay_less, *cell.other_terms, *cell.as_sure), key=lambda way: way.monthly_usd)
    return {
        "month": str(money(answer.monthly_usd)),
        "rent": f"{rent(answer.n_instances, answer.instance)}, {provider_of(answer.instance)}",
        "year": f"{money(cell.units.annual_usd)} a year",
        "sure": str(SENTENCES["fast_enough"].fill(sure=capital(str(sure(answer.chance))))),
        "ways": [[way.what, way.gives_up, str(money(way.monthly_usd))] for way in by_price],
        "spot": str(money(spot.monthly_usd)) if spot and spot.monthly_usd <= 0.98 * answer.monthly_usd else None,
    }


def compare(page: Browser, address: str, questions: list[Question]) -> int:
    """How many answers are shown as Python says them; any other fails."""
    n_answers = 0
    for question in questions:
        page.open(f"{address}#{address_of(question)}")
        shown, words = page.evaluate(READ), in_words(question)
        texts = shown["texts"]
        if words is None:
            assert texts["message"] and not texts["rent"], (question, texts)
            continue
        assert texts["message"] == "", (question, texts)
        assert texts["month"] == words["month"], question
        if "rent" in words:
            n_answers += 1
            assert (texts["rent"], texts["sure"]) == (words["rent"], words["sure"]), question
            assert texts["year"].startswith(str(words["year"])), question
            assert [shown[name] for name in ("ways", "spot")] == [words[name] for name in ("ways", "spot")], question
    return n_answers


def test_shows_what_python_answers(page: Browser, address: str) -> None:
    assert compare(page, address, SHOWN) == len(SHOWN)
    assert page.problems == []


@pytest.mark.long
def test_shows_what_python_answers_to_random_questions(page: Browser, address: str) -> None:
    assert compare(page, address, list(random_questions(7, 60))) > 40
    assert page.problems == []


@pytest.mark.parametrize("hash_", HOSTILE)
def test_a_hostile_address_is_text(page: Browser, address: str, hash_: str) -> None:
    page.open(f"{address}#{hash_}")
    assert page.evaluate("document.title") == TITLE
    assert page.evaluate("document.querySelectorAll('main img, main script').length") == 0
    assert page.evaluate("document.getElementById('message').textContent.length") > 10
    assert page.problems == []


@pytest.mark.parametrize("hash_", ["a=1&" * 100_000, "providers=" + "x," * 20_000 + "&model=70b", "users=1&" * 50_000])
def test_an_address_of_thousands_of_faults_names_a_few_of_them(page: Browser, address: str, hash_: str) -> None:
    began = time.monotonic()
    page.open(f"{address}#{hash_}")
    assert time.monotonic() - began < 5
    assert 10 < page.evaluate("document.getElementById('message').textContent.length") < 10_000


def test_what_is_compared_by_an_address_is_a_model_and_weights_or_a_message(page: Browser, address: str) -> None:
    wrong = ("8b:constructor", "8b:__proto__", "8b:bogus", "__proto__:bf16", "<img src=x>:fp8")
    page.open(f"{address}#{urlencode({'model': '70b', 'compare': ','.join(wrong)})}")
    _, *rows = page.evaluate("[...document.querySelectorAll('#compared tr')].map((row) => row.textContent)")
    assert len(rows) == len(wrong)
    assert all("recommended, published" in row for row in rows[:3])
    assert all("No model is called" in row for row in rows[3:])
    assert page.evaluate("document.querySelectorAll('main img').length") == 0
    assert page.problems == []


def test_a_hostile_catalog_is_text(page: Browser, tmp_path: Path) -> None:
    name = "</script><script>document.title='taken'</script><img src=x onerror=document.title='taken'><!--"
    facts_ = facts(("70b",))
    [model] = facts_["models"]
    providers = {**facts_["market"]["providers"], "aws": name}
    hostile = {**facts_, "models": [{**model, "name": name}], "market": {**facts_["market"], "providers": providers}}
    file = tmp_path / "hostile.html"
    file.write_bytes(write_live(hostile, Options()))
    page.open(f"{file.as_uri()}#{address_of(SHOWN[0])}")
    assert page.evaluate("document.getElementById('model_name').textContent") == name
    assert page.evaluate("document.getElementById('rent').textContent").endswith(name)
    assert page.evaluate("document.title") == TITLE
    assert page.problems == []


def test_a_usual_workload_says_its_pages(page: Browser, address: str) -> None:
    page.open(f"{address}#{address_of(SHOWN[0])}")
    a_page = recommended(options_of(SHOWN[0]), catalog()).question.reference.assumption("tokens_per_page")
    told = page.evaluate("[...document.querySelectorAll('#workloads small')].map((one) => parseInt(one.textContent))")
    expected = [
        workload.input_tokens + workload.output_tokens for workload in catalog().workloads() if workload.is_default
    ]
    assert told == [round(tokens / a_page) for tokens in expected]


HOSTS_SHOWN = """[...document.querySelectorAll("#hosts tr")].map((row) =>
  [...[...row.children].map((cell) => cell.textContent), row.querySelector("a").href])"""


def test_every_host_that_is_named_has_its_price_a_token_and_where_that_was_read(page: Browser, address: str) -> None:
    page.open(f"{address}#{address_of(SHOWN[0])}")
    solved = recommended(options_of(SHOWN[0]), catalog())
    [cell] = sheet_record(solved, levers_of_sheet(solved)).cells
    file = solved.question.reference.hosted
    shown = page.evaluate(HOSTS_SHOWN)
    assert len(shown) == len(cell.hosted) == 3
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    printed = page.evaluate(TEXT.format("request_hosts"))
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    for host, (name, month, prompt, answer, precision, day, _, link) in zip(cell.hosted, shown, strict=True):
        assert (name, month) == (file.host_name(host.host), str(money(host.monthly_usd)))
        assert prompt.partition(",")[0] == f"${host.input_usd_per_million:.2f}"
        assert answer == f"${host.output_usd_per_million:.2f}"
        assert precision == (host.precision.upper() if host.precision else "unknown")
        assert (day, link) == (host.read_on, host.source)
        line = printed.partition(f"{name}: {month} a month; ")[2]
        assert prompt in line and answer in line
        assert f"{day}, {str(host.source).partition('//')[2]}" in line
    assert file.origin in page.evaluate(TEXT.format("hosted_words"))


TOLD = """(() => {{
  const [told, button] = ["taken", {0!r}].map((id) => document.getElementById(id).getBoundingClientRect());
  return told.top >= button.bottom && told.top - button.bottom < 12 && told.bottom <= innerHeight && told.height > 20;
}})()"""


@pytest.mark.parametrize(("width", "height"), [(390, 844), (320, 568), (1280, 900)])
def test_a_link_of_a_file_says_below_its_button_that_the_file_goes_with_it(
    page: Browser, address: str, width: int, height: int
) -> None:
    page.look(width, "light", height)
    page.open(f"{address}#{address_of(SHOWN[0])}")
    page.evaluate("navigator.clipboard.writeText = async () => {}; 0")
    page.evaluate("document.getElementById('copy').scrollIntoView({block: 'end'})")  # at the lower edge
    page.evaluate("document.getElementById('copy').click()")
    page.wait_for("document.getElementById('taken').textContent")
    assert "works on this device alone" in page.evaluate(TEXT.format("taken"))
    assert page.evaluate("document.getElementById('taken').className") == "told alarm"
    assert page.evaluate(TOLD.format("copy"))
    page.evaluate("document.getElementById('copy_markdown').click()")
    page.wait_for("document.getElementById('taken').textContent === 'Copied.'")
    assert page.evaluate(TOLD.format("copy_markdown"))
    page.evaluate("document.getElementById('engineers').open = true; document.getElementById('copy_start').click()")
    page.wait_for(TOLD.format("copy_start"))


HELD = """(() => {
  const answer = document.querySelector(".answer");
  scrollTo(0, document.documentElement.scrollHeight / 2);
  const { top, height } = answer.getBoundingClientRect();
  return [top, height, answer.innerText];
})()"""
COVERED = """(() => {
  const fields = [...document.querySelectorAll("#question :is(input:not([type=hidden]), select, summary)")];
  return fields.filter((field) => field.offsetParent).filter((field) => {
    scrollTo(0, field.getBoundingClientRect().top + scrollY + 40);
    field.focus();
    const { top } = field.getBoundingClientRect();
    return top < document.querySelector(".answer").getBoundingClientRect().bottom;
  }).map((field) => field.name);
})()"""


@pytest.mark.parametrize(("width", "height"), [(390, 844), (320, 568)])
def test_the_answer_stays_in_view_on_a_phone_and_covers_nothing(
    page: Browser, address: str, width: int, height: int
) -> None:
    """Month, certainty and hardware in at most 90 pixels, and what is focused stands below them."""
    page.look(width, "light", height)
    less_sure = "model=70b&users=500&input_tokens=15360&output_tokens=1024&region=eu&purchase=reserved-3yr"
    for asked in (address_of(SHOWN[0]), address_of(SHOWN[-1]), LONG, less_sure):
        page.open(f"{address}#{asked}")
        top, tall, text = page.evaluate(HELD)
        assert top == 0 and tall <= 90, asked
        shown = page.evaluate(READ)["texts"]
        assert all(part in text for part in (shown["month"], shown["rent"], shown["sure"].partition(" sure")[0])), text
    page.evaluate("for (const folded of document.querySelectorAll('details')) folded.open = true")
    assert page.evaluate(COVERED) == []
    page.look(1280, "light")


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_the_list_of_models_covers_no_field(page: Browser, address: str, width: int) -> None:
    page.look(width, "light")
    page.open(f"{address}#{address_of(SHOWN[0])}")
    page.evaluate("document.getElementById('model').focus(); document.getElementById('model').click()")
    assert page.evaluate("document.querySelectorAll('#model_list li').length") > 100
    covered = (
        "(() => { const list = document.getElementById('model_list').getBoundingClientRect();"
        "return [...document.querySelectorAll('#question input:not([type=hidden]), #question select')]"
        ".filter((field) => field.offsetParent && field.id !== 'model').map((field) => field.getBoundingClientRect())"
        ".filter(({top, bottom, left, right}) => left < list.right && right > list.left && top < list.bottom"
        " && bottom > list.top).length; })()"
    )
    assert page.evaluate(covered) == 0
    page.evaluate("document.querySelector('[name=users]').focus()")
    page.evaluate(TAB.format("#model"))
    page.wait_for("document.getElementById('model_list').hidden")
    page.look(1280, "light")


def test_a_press_below_the_open_list_is_one_of_what_was_pressed(page: Browser, address: str) -> None:
    """The list closes under it, and what is below the list moves only when the press is over."""

    def press(selector: str) -> None:
        box = f"document.querySelector({selector!r}).getBoundingClientRect()"
        place = page.evaluate(f"(({{x, y, width, height}}) => ({{x: x + width / 2, y: y + height / 2}}))({box})")
        for kind in ("mousePressed", "mouseReleased"):
            page.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **place)

    page.look(390, "light", 844)
    page.open(f"{address}#{address_of(SHOWN[0])}")
    page.evaluate("scrollTo(0, document.getElementById('question').getBoundingClientRect().top + scrollY - 100)")
    page.call("Emulation.setFocusEmulationEnabled", enabled=True)
    for selector, is_done in (
        ("[name=users]", "document.activeElement.name === 'users'"),
        ("[data-workload=chat]", "document.querySelector('[data-workload=chat]').ariaPressed === 'true'"),
        ("[name=load][value=concurrent_requests]", "location.hash.includes('concurrent_requests=')"),
    ):
        press("#model")
        assert not page.evaluate("document.getElementById('model_list').hidden")
        press(selector)
        page.wait_for(f"{is_done} && document.getElementById('model_list').hidden")
    page.call("Emulation.setFocusEmulationEnabled", enabled=False)
    page.look(1280, "light")


def test_what_a_day_of_measuring_decides_is_said_once(page: Browser, address: str) -> None:
    page.open(f"{address}#{address_of(SHOWN[0])}&confidence=0.9")
    text = page.evaluate("document.getElementById('sure').parentElement.innerText")
    solved = recommended({**options_of(SHOWN[0]), "confidence": 0.9}, catalog())
    [cell] = sheet_record(solved, levers_of_sheet(solved)).cells
    assert cell.measure and cell.measure.decider and cell.measure_first
    assert text.count(str(money(cell.measure.decider.monthly_usd))) == 1
    assert text.count(str(money(cell.measure.decider.usd))) == 1
    assert text.count(str(money(cell.answer.monthly_usd))) <= 1 and text.count("easure first") == 1


def test_a_name_that_the_address_may_not_have_is_told_those_it_may(page: Browser, address: str) -> None:
    """Nothing is answered; what was understood stands in the form, and is answered there."""
    page.open(f"{address}#model=8b&persons=640&usres=500&purchase=sopt&users=12x")
    message = page.evaluate(TEXT.format("message"))
    assert '"persons"' in message and re.search(r"\busers\b", message)
    assert "Did you mean users?" in message and "Did you mean spot?" in message and "People" in message
    assert page.evaluate(TEXT.format("month")) == "" and page.evaluate("document.getElementById('copy').disabled")
    assert page.evaluate("document.getElementById('model_name').textContent") == "Llama 3.1 8B"
    type_in(page, "[name=users]", "64")
    assert page.evaluate(TEXT.format("message")) == "" and "model=8b&users=64&" in page.evaluate("location.hash")
    page.open(f"{address}#people=641")
    assert page.evaluate("document.forms[0].elements.users.value") == "641"


NEAREST = "{0}.map((word) => nearestTo(word, KEYS))"


def test_the_nearest_name_is_that_of_python(page: Browser, address: str) -> None:
    words = ["usres", "user", "precision", "dtype", "qps", "rps", "context_token", "promt", "contxt", "confidance",
             "provider", "regions", "xyz", "", "a", "__proto__", "kv", "output", "Model"]  # fmt: skip
    page.open(f"{address}#model=8b")
    keys = page.evaluate("KEYS")
    near = [did_you_mean(word, keys).removeprefix(" Did you mean ").removesuffix("?") for word in words]
    assert page.evaluate(NEAREST.format(json.dumps(words))) == near and len(set(near)) > 8


@pytest.mark.parametrize(
    "given", ["users=5&concurrent_requests=3", "users=5&people=7", "context=16k&context_tokens=8k"]
)
def test_an_address_that_says_two_things_is_a_message(page: Browser, address: str, given: str) -> None:
    page.open(f"{address}#model=8b&{given}")
    assert "Keep one." in page.evaluate(TEXT.format("message")) and page.evaluate(TEXT.format("month")) == ""


@pytest.mark.parametrize(
    "given",
    [
        {"context_tokens": "16k"},
        {"context_tokens": "16k", "input_tokens": 3072},
        {"context_tokens": "1500"},
        {"context_tokens": "16k", "output_tokens": 100},
        {"output_tokens": 100},
        {"input_tokens": 15_360},
        {"context_tokens": "16k", "input_tokens": 3072, "output_tokens": 1024},
    ],
)
def test_lengths_follow_from_the_others_as_recommend_has_them(page: Browser, address: str, given: Question) -> None:
    """A context alone is a prompt of all but the answer; what does not fit is refused."""
    question: Question = {"model": "70b", "users": 500, **given}
    page.open(f"{address}#{address_of(question)}")
    message, month = (page.evaluate(TEXT.format(name)) for name in ("message", "month"))
    try:
        [cell] = sheet_record(recommended(options_of(question), catalog())).cells
    except SheetgenError:
        assert month == "" and "15,360" in message
        return
    assert (message, month) == ("", str(money(cell.answer.monthly_usd)))
    values = page.evaluate("['input_tokens', 'output_tokens'].map((name) => document.forms[0].elements[name].value)")
    assert [int(value.replace(",", "")) for value in values] == [cell.input_tokens, cell.output_tokens]
    longest = page.evaluate(TEXT.format("longest"))
    assert f"{cell.context_tokens:,}" in longest
    is_longer = cell.context_tokens > cell.input_tokens + cell.output_tokens
    assert ("Memory is counted" in longest) == is_longer == (len(given) == 3)


@pytest.mark.parametrize(
    ("text", "value"), [("90", "90%"), ("90%", "90%"), ("0.9", "90%"), ("9000", "9000"), ("90x", "90x")]
)
def test_a_share_of_the_address_is_read_as_a_typed_one(page: Browser, address: str, text: str, value: str) -> None:
    """An invalid value stands as it came, and is refused."""
    page.open(f"{address}#model=70b&confidence={text}")
    assert page.evaluate("document.forms[0].elements.confidence.value") == value
    month, message = (page.evaluate(TEXT.format(name)) for name in ("month", "message"))
    assert (month == "") == ("How sure" in message) == (value != "90%")
    if value == "90%":
        assert month == in_words({"model": "70b", "users": 640, "confidence": 0.9})["month"]


SUMS = """({
  month: document.getElementById("month").textContent,
  others: [...document.querySelectorAll("#others tr")].map((row) => [...row.children].map((cell) => cell.textContent)),
})"""


@pytest.mark.parametrize("region", ["", "ap", "eu"])
def test_a_difference_is_that_of_the_sums_beside_it(page: Browser, address: str, region: str) -> None:
    """And the prices of the US and of Europe stand beside those of any other region."""
    page.open(f"{address}#{address_of({'model': '70b', 'users': 640, 'region': region})}")
    sums = page.evaluate(SUMS)

    def dollars(text: str) -> int:
        return int(text.strip("$").replace(",", ""))

    own, told = dollars(sums["month"]), []
    for name, month, difference, *_ in sums["others"]:
        more = dollars(month) - own if month else 0
        words = f"${abs(more):,} {'more' if more > 0 else 'less'}" if more else "the same"
        assert not month or difference == words, name
        told.append(name)
    areas = [words for words in told if words.startswith("In ")]
    assert areas == {"": ["In Europe"], "ap": ["In the US", "In Europe"], "eu": ["In the US"]}[region]
    [published] = re.findall(
        r"saves \$([\d,]+) a month: .* \$([\d,]+) a month on", page.evaluate(TEXT.format("quality"))
    )
    saved, whole = map(dollars, published)
    assert saved == whole - own


def test_typing_answers_and_is_a_link(page: Browser, address: str) -> None:
    page.open(f"{address}#{address_of(SHOWN[0])}")
    before = page.evaluate("document.getElementById('month').textContent")
    page.evaluate(
        "delete document.documentElement.dataset.complete; const users = document.querySelector('[name=users]');"
        "users.value = '64,000'; users.dispatchEvent(new Event('input', {bubbles: true}))"
    )
    page.wait_for("document.documentElement.dataset.complete")
    after, link = page.evaluate("document.getElementById('month').textContent"), page.evaluate("location.href")
    assert after != before
    page.open(f"{address}#model=8b")
    page.open(link)
    assert page.evaluate("document.getElementById('month').textContent") == after
    command = page.evaluate("document.getElementById('command').textContent")
    assert "--users 64000" in command and "--model 70b" in command


def test_the_policy_lets_nothing_else_run(page: Browser, address: str) -> None:
    page.open(f"{address}#model=8b")
    assert page.evaluate(VIOLATE).startswith("script-src")
    assert page.evaluate("document.title") == TITLE
    page.problems.clear()


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_nothing_is_cut(page: Browser, address: str, width: int) -> None:
    page.open(f"{address}#{address_of(SHOWN[0])}")
    page.look(width, "light")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    small = page.evaluate(
        "[...document.querySelectorAll('form input:not([type=radio]), select, button')].filter((one) => "
        "one.offsetParent && one.type !== 'checkbox' && one.offsetHeight < 44).map((one) => one.name || one.id)"
    )
    assert small == []


OPENED = """new Promise((done) => {
  for (const folded of document.querySelectorAll("details")) folded.open = true;
  setTimeout(() => done(0), 300);
})"""
TEXT = "document.getElementById({0!r}).textContent"


def test_what_is_folded_is_filled(page: Browser, address: str) -> None:
    page.open(f"{address}#{address_of(SHOWN[0])}&compare=8b:recommended,nosuch:bf16")
    page.evaluate(OPENED)
    steps = page.evaluate(TEXT.format("steps_words"))
    assert re.fullmatch(r"\$[\d,]+ .*up to [\d,]+ people, .*70% sure; .*\$[\d,]+", steps)
    [most] = re.findall(r"up to ([\d,]+) people", steps)
    assert f"at {int(most.replace(',', '')) + 1:,} people" in page.evaluate(TEXT.format("next_step"))
    assert page.evaluate("document.querySelector('#curve svg').getAttribute('aria-label')").startswith("$")
    assert page.evaluate(TEXT.format("start")).startswith("vllm serve ")
    assert "for 16,384 tokens per request" in page.evaluate(TEXT.format("log"))
    assert page.evaluate("document.querySelectorAll('#loads_body tr').length") == 3
    assert page.evaluate("document.querySelectorAll('#deaths tr').length") > 5
    assert page.evaluate("document.querySelectorAll('#sources li').length") > 3
    compared = "[...document.querySelectorAll('#compared tr')].map((row) => row.textContent)"
    own, compared_with, wrong = page.evaluate(compared)
    assert (
        own.startswith("Llama 3.1 70B")
        and compared_with.startswith("Llama 3.1 8B")
        and "No model is called nosuch" in wrong
    )
    page.evaluate("document.querySelector('[data-derives=kv_bytes_per_token]').click()")
    assert "= 327,680" in page.evaluate(TEXT.format("derived_steps"))
    page.evaluate("document.querySelector('[data-derives=kv_budget_bytes_per_gpu]').click()")
    pool = re.findall(r"Available KV cache memory: ([\d.]+) GiB", page.evaluate(TEXT.format("log")))
    derived = page.evaluate(TEXT.format("derived_steps"))
    [(in_bytes, in_gib)] = re.findall(r"= ([\d,]+) bytes \(([\d.]+) GiB\)", derived)
    assert f"{pool[0]} GiB as started" in derived and f"GiB less, {in_gib} GiB, with" in derived
    assert float(in_gib) == pytest.approx(float(in_bytes.replace(",", "")) / 2**30, abs=0.005)
    page.evaluate("document.querySelector('[data-derives=monthly_usd]').click()")
    for name in ("hourly usd", "price usd per hour", "listed usd per hour"):
        page.evaluate(
            "[...document.querySelectorAll('#derived_steps button[aria-expanded=false]')]"
            f".find((one) => one.textContent === {name!r})?.click()"
        )
    assert "Source: " in page.evaluate(TEXT.format("derived_steps"))
    page.evaluate("document.querySelector('[data-derives=chance]').click()")
    assert "chance" in page.evaluate(TEXT.format("derived_steps"))
    page.evaluate("document.querySelector('#derived_steps button').click()")
    assert page.evaluate("document.querySelectorAll('#derived_steps .step_of').length") == 2
    assert page.problems == []


COMPARE = """(() => {{
  const field = document.getElementById("compare_model");
  field.value = {0!r};
  field.dispatchEvent(new Event("input", {{bubbles: true}}));
  document.getElementById("compare_weights").value = {1!r};
  document.getElementById("compare_add").click();
}})()"""


def test_what_is_compared_is_there_once_and_a_problem_is_said_until_one_types(page: Browser, address: str) -> None:
    """The answer itself is one of them; the weights are chosen anew for each model."""
    page.open(f"{address}#{address_of(SHOWN[0])}")

    def add(model: str, weights: str, n_rows: int) -> str:
        page.evaluate(COMPARE.format(model, weights))
        page.wait_for(f"document.querySelectorAll('#compared tr').length === {n_rows}")
        return str(page.evaluate(TEXT.format("compare_problem")))

    assert add("", "recommended", 1) == "Type a model first."
    assert "Llama 3.1 70B in FP8" in add("70b", "recommended", 1)
    assert "Llama 3.1 70B in FP8" in add("70b", "fp8", 1)
    page.evaluate(TYPE.format("#compare_model", "llama"))
    assert page.evaluate(TEXT.format("compare_problem")) == ""
    assert add("70b", "bf16", 2) == ""
    assert page.evaluate("document.getElementById('compare_weights').value") == "recommended"
    assert "BF16" in add("70b", "published", 2)
    assert page.problems == []


def test_a_target_that_nothing_meets_says_what_is_fastest_and_takes_it(page: Browser, address: str) -> None:
    for target, change in (({"ttft_ms": 10}, "later-first-token"), ({"tpot_ms": 2}, "slower-tokens")):
        question: Question = {**SHOWN[0], **target}
        page.open(f"{address}#{address_of(question)}")
        solved = recommended(options_of(question), catalog())
        [cell] = sheet_record(solved, levers_of_sheet(solved)).cells
        [lever] = [lever for lever in cell.levers if lever.lever == change and not lever.further]
        values = page.evaluate(TEXT.format("fastest"))
        assert str(money(lever.monthly_usd)) in values and str(rent(lever.n_instances, lever.instance)) in values
        page.evaluate("delete document.documentElement.dataset.complete")
        page.evaluate("document.getElementById('take_target').click()")
        page.wait_for("document.documentElement.dataset.complete")
        assert page.evaluate(TEXT.format("month")) == str(money(lever.monthly_usd))
        assert page.evaluate("document.getElementById('take_target').hidden")
    assert page.problems == []


def test_one_machine_has_one_certainty_and_at_once_is_an_average_or_places(page: Browser, address: str) -> None:
    page.open(f"{address}#model=70b&users=1280&input_tokens=3072&output_tokens=1024&confidence=0.7")
    sure_of = {text: page.evaluate(TEXT.format(text)) for text in ("scale", "never_measured")}
    assert re.findall(r"([\d]+)% sure", sure_of["never_measured"]) == ["85"] and "90% sure costs" in sure_of["scale"]
    page.evaluate(OPENED)
    load, replicas, start = (page.evaluate(TEXT.format(name)) for name in ("load_words", "replicas", "start"))
    [seqs] = re.findall(r"--max-num-seqs (\d+)", start)
    sized = re.findall(r"[\d.]+ at once on average; .* (\d+) at once", load)
    assert sized == re.findall(r"[\d.]+ at once on average; .* (\d+) at once", replicas)
    assert sized == [str(int(replicas.split()[0]) * int(seqs))]
    assert f"--max-num-seqs {seqs}: " in page.evaluate(TEXT.format("why_seqs"))
    assert page.evaluate("document.querySelector('.meter b').style.left") == "70%"


def test_compressed_weights_say_what_the_published_cost(page: Browser, address: str) -> None:
    page.open(f"{address}#{address_of(SHOWN[0])}")
    solved = recommended(options_of(SHOWN[0]), catalog())
    [cell] = sheet_record(solved, levers_of_sheet(solved)).cells
    published = cell.as_published
    assert published and published.monthly_usd
    quality = page.evaluate(TEXT.format("quality"))
    assert quality.startswith("FP8") and f"BF16, {money(published.monthly_usd)} a month" in quality
    page.open(f"{address}#{address_of({**SHOWN[0], 'weight_dtype': 'published'})}")
    assert page.evaluate(TEXT.format("quality")) == ""


def test_a_month_a_person_names_the_people_that_it_is_divided_by(page: Browser, address: str) -> None:
    """Of requests at once those that they are enough for, who also are the people that a host is paid for."""
    for load in ({"users": 640}, {"concurrent_requests": 640}):
        question: Question = {**load, "model": "70b", "input_tokens": 15_360, "output_tokens": 1024}
        page.open(f"{address}#{address_of(question)}")
        solved = recommended(options_of(question), catalog())
        [cell] = sheet_record(solved, levers_of_sheet(solved)).cells
        spare, hosted = (page.evaluate(TEXT.format(name)) for name in ("spare", "hosted_words"))
        assert f"${cell.answer.monthly_usd / cell.users:,.2f} " in spare and f" {cell.users:,.0f} people" in spare
        assert f"{cell.users:,.0f} people" in hosted
        assert ("640 at once" in hosted) == ("concurrent_requests" in load)


def test_the_pool_of_the_log_less_what_is_kept_back_is_what_is_counted_on(page: Browser, address: str) -> None:
    """And the parts of one GPU's memory make all of it."""
    page.open(f"{address}#{address_of(SHOWN[0])}")
    values = page.evaluate(TEXT.format("log"))
    pattern = r"([\d.]+) GiB as started .*; ([\d.]+) GiB less, ([\d.]+) GiB, .*; ([\d.]+) GiB of .*: ([\d.]+) GiB are"
    [parts] = re.findall(pattern, values)
    printed, flags, derived, doubt, counted = map(float, parts)
    assert printed - flags == pytest.approx(derived, abs=1e-9) and derived - doubt == pytest.approx(counted, abs=1e-9)
    [(in_all, per_replica)] = re.findall(r"hold ([\d,]+) requests in all, ([\d,]+) a replica", values)
    n_replicas = int(page.evaluate(TEXT.format("replicas")).split()[0])
    assert int(in_all) == n_replicas * int(per_replica)
    widths = "[...document.querySelectorAll('section > .bar i')].map((one) => parseFloat(one.style.width))"
    shares = page.evaluate(widths)
    assert len(shares) == 5 and sum(shares) == pytest.approx(100, abs=0.01)
    assert shares[-1] == pytest.approx(8, abs=0.01)


def test_an_area_has_a_name_and_one_entry(page: Browser, address: str) -> None:
    page.open(f"{address}#{address_of(SHOWN[0])}&region=europe")
    names = page.evaluate("[...document.querySelector('[name=region]').options].map((one) => one.textContent)")
    assert len(set(names)) == len(names) and all(len(name) > 1 and name != name.lower() for name in names)
    assert "region=eu" in page.evaluate("document.getElementById('command').textContent").replace(
        "--region ", "region="
    )


def test_print_gives_the_request(page: Browser, address: str) -> None:
    page.open(f"{address}#{address_of(SHOWN[0])}")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    text = page.evaluate(TEXT.format("request"))
    month = page.evaluate(TEXT.format("month"))
    assert "640 people" in text and f"{month} a month." in text
    assert "15,360 tokens" in text and "in FP8" in text and "#model=70b" in text
    assert "Approve as sized" in text and "Risks" in text and "Not in the price" in text
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("document.getElementById('request').hidden")


def test_an_answer_of_one_token_says_after_how_long_it_is_there(page: Browser, address: str) -> None:
    question: Question = {
        "model": "qwen3-embedding-8b",
        "concurrent_requests": 10,
        "input_tokens": 4096,
        "output_tokens": 1,
    }
    page.open(f"{address}#{address_of(question)}")
    [cell] = sheet_record(recommended(options_of(question), catalog())).cells
    assert f"after {cell.answer.ttft_seconds:.1f} s" in page.evaluate(TEXT.format("wait"))


def test_a_class_that_is_not_sold_is_said_behind_the_year(page: Browser, address: str) -> None:
    page.open(f"{address}#model=8b&users=640&purchase=reserved-1yr&region=af")
    assert "One-year commitment was" in page.evaluate(TEXT.format("year"))


def test_every_field_has_a_label(page: Browser, address: str) -> None:
    page.open(f"{address}#model=8b")
    fields = "[...document.querySelectorAll('input:not([type=hidden]), select')]"
    bare = f"{fields}.filter((one) => !one.labels?.[0]?.textContent.trim())"
    assert page.evaluate(f"{bare}.map((one) => one.name)") == []


TYPE = """(() => {{
  delete document.documentElement.dataset.complete;
  const field = document.querySelector({0!r});
  field.focus();
  field.value = {1!r};
  field.dispatchEvent(new Event("input", {{bubbles: true}}));
}})()"""
ENTER = """document.querySelector({0!r}).dispatchEvent(
  new KeyboardEvent("keydown", {{key: "Enter", bubbles: true, cancelable: true}}))"""


def type_in(page: Browser, field: str, text: str) -> None:
    """Type into a field of the question, and wait for what the page makes of it."""
    page.evaluate(TYPE.format(field, text))
    page.wait_for("document.documentElement.dataset.complete")


@pytest.mark.some(2)
@pytest.mark.parametrize("text", ["90", "90%", "0.9", ".90"])
def test_a_share_is_typed_in_any_way(page: Browser, address: str, text: str) -> None:
    page.open(f"{address}#{address_of(SHOWN[0])}")
    assert page.evaluate("document.querySelector('[name=confidence]').value") == "70%"
    type_in(page, "[name=confidence]", text)
    assert "--confidence 0.9" in page.evaluate("document.getElementById('command').textContent").split("--model")[1]
    assert page.evaluate("location.hash").endswith("confidence=0.9")


def test_a_wrong_field_says_so_and_the_last_answer_stays(page: Browser, address: str) -> None:
    page.open(f"{address}#{address_of(SHOWN[0])}")
    month = page.evaluate(TEXT.format("month"))
    taken = (
        "['copy', 'copy_start', 'copy_markdown', 'csv', 'print'].filter((id) => document.getElementById(id).disabled)"
    )
    for field, text in (
        ("[name=users]", "12x"),
        ("[name=users]", "1,5"),
        ("[name=users]", "1.000"),
        ("[name=output_tokens]", "1.000"),
        ("[name=ttft_ms]", "soon"),
        ("[name=input_tokens]", "100m"),
    ):
        type_in(page, field, text)
        assert page.evaluate(TEXT.format("month")) == month
        assert page.evaluate("document.querySelectorAll('.answer.stale, .rest.stale').length") == 2
        assert page.evaluate(TEXT.format("message")).startswith("This is the last ")
        assert len(page.evaluate(taken)) == 5
        beside = f"document.querySelector({field!r}).parentElement.querySelector('.problem')"
        assert page.evaluate(f"{beside}.offsetHeight") > 0
        assert page.evaluate(f"document.querySelector({field!r}).getAttribute('aria-describedby') === {beside}.id")
        said_once = f"document.body.innerText.split({beside}.textContent).length - 1"
        assert page.evaluate(said_once) == 1
        page.open(f"{address}#{address_of(SHOWN[0])}")
        assert page.evaluate("document.querySelectorAll('.stale, [aria-invalid=true]').length") == 0
        assert page.evaluate(taken) == []
    assert page.problems == []


def test_all_that_is_wrong_is_said(page: Browser, address: str) -> None:
    """Of an address and of the fields; and the rest of the form is dressed."""
    page.open(f"{address}#model=nonsense&users=-3&output_tokens=0")
    beside = {name: page.evaluate(TEXT.format(f"problem_{name}")) for name in ("model", "users", "output_tokens")}
    assert "nonsense" in beside["model"] and '"-3"' in beside["users"]
    assert "a whole number from 1" in beside["output_tokens"]
    named = page.evaluate(TEXT.format("message"))
    assert all(label in named for label in ("Model;", "People;", "Answer, tokens."))
    page.open(f"{address}#foo=bar&region=mars")
    message = page.evaluate(TEXT.format("message"))
    assert '"foo"' in message and '"mars"' in message
    assert "AWS" in page.evaluate(TEXT.format("providers_words"))


SEARCHED = {  # what is typed, the model that is listed first, and the one that it means
    "llama 405": ("llama-3.1-405b", "llama-3.1-405b"),
    "deepseek v3": ("deepseek-v3", "deepseek v3"),
    "Scout": ("llama-4-scout-17b-16e", "llama-4-scout-17b-16e"),
    "mistral": ("mistral-", ""),
    "Llama 70B": ("llama-", ""),
    "llama": ("llama-", ""),
}
TAB = """document.querySelector({0!r}).dispatchEvent(new Event("blur"))"""


@pytest.mark.some(4)
@pytest.mark.parametrize("key", [ENTER, TAB])
@pytest.mark.parametrize("text", SEARCHED)
def test_a_model_is_found_by_any_part(page: Browser, address: str, text: str, key: str) -> None:
    """Enter and Tab take what means one model; of several the reader chooses."""
    page.open(f"{address}#{address_of(SHOWN[0])}")
    page.evaluate(TYPE.format("#model", text))
    listed = page.evaluate("[...document.querySelectorAll('#model_list li')].map((one) => one.dataset.model)")
    first, meant = SEARCHED[text]
    assert listed and first in listed[0] and page.evaluate("!document.getElementById('model_list').hidden")
    assert (
        page.evaluate("Math.min(...[...document.querySelectorAll('#model_list li')].map((one) => one.offsetHeight))")
        >= 44
    )
    page.evaluate(key.format("#model"))
    page.wait_for("document.documentElement.dataset.complete")
    assert page.evaluate("document.getElementById('model').value") == (meant or text)
    script = "[...document.querySelectorAll('.problem')].map((one) => one.textContent).join()"
    assert ("Choose one model: " in page.evaluate(script)) == (not meant)
    if meant:
        assert f"model={meant.replace(' ', '+')}" in page.evaluate("location.hash")
    elif key == ENTER:
        assert page.evaluate("!document.getElementById('model_list').hidden")
    page.open(f"{address}#{address_of(SHOWN[0])}")
    page.evaluate(TYPE.format("#compare_model", text))
    page.evaluate(ENTER.format("#compare_model"))
    assert page.evaluate("document.activeElement.id") == ("compare_weights" if meant else "compare_model")
    assert page.evaluate("document.querySelectorAll('#compared tr').length") == 1
    assert ("Choose one model: " in page.evaluate(TEXT.format("compare_problem"))) == (not meant)
    page.evaluate("document.getElementById('model').value = '8b'; document.getElementById('model').click()")
    page.evaluate("document.querySelector('#model_list [data-model=llama-3\\\\.1-70b]').click()")
    assert page.evaluate(TEXT.format("model_name")) == "Llama 3.1 70B"
    assert page.problems == []


def test_nothing_scrolls_sideways_on_a_phone(page: Browser, address: str) -> None:
    page.look(390, "light")
    page.open(f"{address}#{address_of(SHOWN[0])}&compare=8b:recommended")
    page.evaluate(OPENED)
    wide = "[...document.querySelectorAll('.scrolls')].map((one) => [one.clientWidth, one.scrollWidth])"
    widths = page.evaluate(wide)
    assert len(widths) == 7 and all(shown >= inside for shown, inside in widths)
    last = "document.querySelector('#deaths td:last-child').getBoundingClientRect().right"
    assert page.evaluate(last) <= 390
    assert page.evaluate("document.querySelector('#deaths td:nth-child(4)').dataset.head") == "In this answer"
    page.look(1280, "light")


MARKS = """(() => {
  const [curve, svg] = [document.getElementById("curve"), document.querySelector("#curve svg")];
  const heights = [...svg.querySelectorAll("text")].map((text) => text.getBoundingClientRect().height);
  return svg.viewBox.baseVal.width === curve.clientWidth && Math.min(...heights);
})()"""


def test_the_marks_of_the_curve_keep_their_size(page: Browser, address: str) -> None:
    """Also where the page is made narrower after the curve was drawn."""
    page.look(1280, "light")
    page.open(f"{address}#{address_of(SHOWN[0])}")
    for width in (390, 320, 1280):
        page.look(width, "light")
        page.wait_for(MARKS)
        assert page.evaluate(MARKS) >= 13


LINES = """[...document.querySelectorAll("#start .unbroken, #command .unbroken")].map((option) =>
  [option.textContent, Math.round(option.offsetHeight / parseFloat(getComputedStyle(option).lineHeight))])"""


@pytest.mark.parametrize("width", [320, 390])
def test_a_command_breaks_between_its_options_alone(page: Browser, address: str, width: int) -> None:
    """A line that ends in -- is none that a reader copies rightly; the text is the command."""
    page.look(width, "light")
    page.open(f"{address}#{address_of(SHOWN[0])}")
    page.evaluate(OPENED)
    options = [(text, lines) for text, lines in page.evaluate(LINES) if text.startswith("--")]
    assert len(options) > 8 and all(lines == 1 for _, lines in options)
    command = page.evaluate("document.getElementById('start').textContent")
    assert command.startswith("vllm serve ") and "  " not in command and " --max-model-len 16384 --" in command
    page.look(1280, "light")


LONG = "model=405b&users=50000&input_tokens=15360&output_tokens=1024&purchase=reserved-1yr&confidence=0.5&compare="
COMPARED = "8b,70b,deepseek-v3,kimi-k2,gpt-oss-120b,phi-4,mixtral-8x7b,qwen3-235b-a22b"


@pytest.mark.some(2)
@pytest.mark.parametrize("paper", [(8.27, 11.69), (8.5, 11.0)], ids=["A4", "Letter"])
@pytest.mark.parametrize("asked", ["model=70b&users=640", LONG + COMPARED])
def test_the_request_prints_on_one_page(page: Browser, address: str, asked: str, paper: tuple[float, float]) -> None:
    page.open(f"{address}#{asked}")
    width, height = paper
    data = page.call("Page.printToPDF", paperWidth=width, paperHeight=height)["data"]
    document = pypdfium2.PdfDocument(base64.b64decode(data))
    assert len(document) == 1
    text = " ".join(document[0].get_textpage().get_text_range().split())
    assert "For approval" in text and "Approved by" in text and "A month has 730 hours." in text
    assert ("Qwen3 235B A22B, FP8: $" in text) == ("compare" in asked)


AXE = Path(sys.prefix) / "node/node_modules/axe-core/axe.min.js"
AUDIT = """axe.run(document, {%s}).then((found) =>
  found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).join(" ").slice(0, 300)}`))"""
OF_ALL, OF_LANGUAGE = (AUDIT % which for which in ('resultTypes: ["violations"]', 'runOnly: ["html-has-lang"]'))


@pytest.mark.skipif(not AXE.exists() and not REQUIRED, reason="no axe-core: ./run test installs it")
@pytest.mark.some(3)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_axe_finds_nothing(page: Browser, address: str, width: int, scheme: str) -> None:
    page.look(width, scheme)
    page.open(f"{address}#{address_of(SHOWN[0])}&compare=8b:recommended")
    page.evaluate(f"{AXE.read_text(encoding='utf-8')};0")
    page.evaluate(OPENED)
    assert page.evaluate(OF_ALL) == []
    type_in(page, "[name=users]", "12x")
    page.evaluate(TYPE.format("#model", "llama"))
    assert page.evaluate(OF_ALL) == []
    page.evaluate("document.documentElement.lang = ''")
    assert [text.partition(":")[0] for text in page.evaluate(OF_LANGUAGE)] == ["html-has-lang"]
    page.evaluate("document.documentElement.lang = 'en'")


def test_each_width_and_scheme_is_audited(request: pytest.FixtureRequest) -> None:
    """By the cases that `some` draws."""
    audits = (item for item in request.session.items if item.name.startswith("test_axe_finds_nothing["))
    cases = [item.callspec.params for item in audits if isinstance(item, pytest.Function)]
    if len(cases) >= 4:  # not where one of them is named
        assert {case["width"] for case in cases} == {320, 390, 768, 1280}
        assert {case["scheme"] for case in cases} == {"light", "dark"}


def test_the_file_is_small(address: str) -> None:
    import gzip

    data = Path(address.removeprefix("file://")).read_bytes()
    assert len(data) <= 775_000  # of the 800,000 that it may have
    assert len(gzip.compress(data)) <= 250_000
    plain = re.sub(rb'(?s)<script type="application/json".*?</script>|const EXPLAINED=.*', b"", data)
    assert set(re.findall(rb"https?://[^'\"`)\s]+", plain)) <= {b"http://www.w3.org/2000/svg"}
    json.loads(re.findall(rb'(?s)id="facts">(.*?)</script>', data)[0])
