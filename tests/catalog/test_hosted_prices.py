"""hosted.yaml: what it must hold, which names mean which model, and that a list of hosted prices makes it anew."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from sheetgen.catalog import Catalog, default_folder
from sheetgen.catalog.check import faults_of
from sheetgen.catalog.hosted import HostedFile, HostedPrice, hosted_file, models_by_key, name_key
from sheetgen.catalog.model import stem
from sheetgen.catalog.prices.hosted_list import HostedRefresh, cheapest, hosted_text, read_hosted, refresh_hosted
from sheetgen.errors import CatalogError

SHIPPED = (default_folder() / "hosted.yaml").read_text()
LIST = Path(__file__).parents[1] / "data" / "prices" / "hosted_litellm_1.110.2.csv"
HEAD = (
    "model,provider,input_usd_per_token,output_usd_per_token,cache_read_usd_per_token,max_input_tokens,"
    "max_output_tokens,source"
)
DAY = "2026-11-28"


def refreshed(*places: Path, skip_broken: bool = False) -> HostedRefresh:
    hosted, _ = read_hosted([str(place) for place in places])
    assert hosted is not None, "is no list of hosted prices"
    return refresh_hosted(Catalog(), hosted, DAY, skip_broken)


def a_list(folder: Path, *lines: str, head: str = HEAD) -> Path:
    path = folder / "hosted.csv"
    path.write_text("\n".join((head, *lines)) + "\n")
    return path


def test_the_shipped_file_is_what_the_list_gives() -> None:
    """Of the models that the file has: one that is entered since may be in the list, too."""
    list_, shipped = refreshed(LIST), Catalog().file(HostedFile)
    entered = {model for model, _ in list_.added}
    assert not entered & {model.model for model in shipped.models}
    same = {
        "origin": shipped.origin,
        "license": shipped.license,
        "models": tuple(model for model in list_.file.models if model.model not in entered),
        "hosts": tuple(host for host in list_.file.hosts if host in shipped.hosts),
    }
    assert list_.file.model_copy(update=same) == shipped
    assert not (list_.changed or list_.gone or list_.skipped)
    assert list_.n_lines == 1135  # as the README beside the list counts them
    left = {reason: len(names) for reason, names in list_.left_out.items()}
    assert sum(left.values()) + list_.n_matched == 1135, f"some lines are in no count: {left}"
    # Looked at: a 70B at the price of the smallest size.
    assert list_.left_out["without a source page, under a fifth of what other hosts ask"] == (
        "fireworks_ai/accounts/fireworks/models/llama-v2-70b",
    )


def test_the_file_carries_its_origin_and_licence() -> None:
    file = Catalog().file(HostedFile)
    assert "litellm 1.110.2" in file.origin and "Berri AI, MIT" in str(file.license) and file.read_on == DAY
    assert {price.host for model in file.models for price in model.prices} <= {host.id for host in file.hosts}


@pytest.mark.parametrize(
    ("name", "model", "precision"),
    [
        ("fireworks_ai/accounts/fireworks/models/llama-v3p1-70b-instruct", "llama-3.1-70b", None),
        ("us.meta.llama3-1-70b-instruct-v1:0", "llama-3.1-70b", None),
        ("lambda_ai/llama3.1-70b-instruct-fp8", "llama-3.1-70b", "fp8"),
        ("ovhcloud/Meta-Llama-3_1-70B-Instruct", "llama-3.1-70b", None),
        ("together_ai/meta-llama/Meta-Llama-3.1-70B-Instruct-Turbo", "llama-3.1-70b", None),
        ("cloudflare/@cf/meta/llama-3.3-70b-instruct-fp8-fast", "llama-3.3-70b", "fp8"),
        ("together_ai/moonshotai/Kimi-K2.5-fp4", "kimi-k2.5", "nvfp4"),
        ("bedrock/eu-west-3/mistral.mistral-7b-instruct-v0:2", "mistral-7b-v0.2", None),
        ("azure_ai/FW-GPT-OSS-120B", "gpt-oss-120b", None),
        ("deepseek.r1-v1:0", "deepseek-r1", None),
        ("databricks/databricks-llama-4-maverick", "llama-4-maverick-17b-128e", None),
        # Other weights of a shape, under their own names; none, where the catalog has no such name.
        ("nebius/nvidia/Llama-3.1-Nemotron-70B-Instruct", "llama-3.1-nemotron-70b", None),
        ("deepinfra/NousResearch/Hermes-3-Llama-3.1-70B", "hermes-3-llama-3.1-70b", None),
        ("deepinfra/deepseek-ai/DeepSeek-R1-0528", "deepseek-r1-0528", None),
        ("deepinfra/deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "deepseek-r1-distill-llama-70b", None),
        ("deepinfra/deepseek-ai/DeepSeek-V3-0324", "deepseek-v3-0324", None),
        ("deepseek.v3-v1:0", None, None),  # Bedrock's name of V3.1
        ("deepinfra/Qwen/Qwen3-235B-A22B-Instruct-2507", "qwen3-235b-a22b-2507", None),
        ("deepinfra/nvidia/Llama-3.3-Nemotron-Super-49B-v1.5", "llama-3.3-nemotron-super-49b-v1.5", None),
        ("baseten/moonshotai/Kimi-K2-Instruct-0905", None, None),
        ("fireworks_ai/accounts/fireworks/models/llama-v3p1-70b-instruct-1b", None, None),
        ("mistral/mistral-large-latest", None, None),
    ],
)
def test_a_name_means_the_same_model_or_none(name: str, model: str | None, precision: str | None) -> None:
    catalog = Catalog()
    key, stated = name_key(name)
    meant = models_by_key(catalog.models(), catalog.file(HostedFile).also_called).get(key)
    if model is None and catalog.lists_model(stem(name)):
        pytest.skip(f"{meant} has been entered")
    assert meant == model
    if model:
        assert stated == precision


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("input_usd_per_million: 0.4,", "input_usd_per_million: 0,", "should be greater than 0"),
        ("input_usd_per_million: 0.4,", "input_usd_per_million: 400000,", "should be less than or equal to 1000"),
        ("input_usd_per_million: 0.4,", "input_usd_per_million: '0.4',", "must be a number"),
        ("input_usd_per_million: 0.4,", "input_usd_per_milion: 0.4,", "Did you mean input_usd_per_million?"),
        ("host: nebius,", "host: nebulus,", "host is nebulus, which is not among hosts. Did you mean nebius?"),
        ("- model: llama-3.1-70b\n", "- model: llama-3.1-71b\n", "Did you mean llama-3.1-70b?"),
        ("- model: llama-3.1-70b\n", "- model: llama-3.1-8b\n", "is given twice"),
        ("model: deepseek-r1}", "model: deepseek-r9}", "which is not in catalogs/models"),
        ("name: nebius/meta-llama/Meta-Llama-3.1-70B-Instruct", "name: '=HYPERLINK(1)'", "reads as a formula"),
        ("name: Nebius", "name: '<b>Nebius</b>'", "one of < >"),
        ("source: 'https://nebius.com/prices'", "source: 'javascript:alert(1)'", "neither http nor https"),
        ("precision: fp8,", "precision: fp9,", "is not one of"),
        ("max_input_tokens: 131072}", "max_input_tokens: -1}", "should be greater than 0"),
        ("read_on: 2026-11-28", "read_on: soon", "is no date"),
        ("deprecation_date: 2027-03-30", "deprecation_date: 2026-11-26", "is not after 2026-11-28, when the price was"),
        ("deprecation_date: 2027-03-30", "deprecation_date: soon", "is no date"),
        (
            "name: Nebius",
            "name: Nebius\n    closed_on: 2026-06-01",
            "nebius, which closed on 2026-06-01. Take the price",
        ),
    ],
)
def test_a_wrong_file_is_reported_with_its_line(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in SHIPPED, old
    (tmp_path / "hosted.yaml").write_text(SHIPPED.replace(old, new, 1), encoding="utf-8")
    catalog = Catalog(tmp_path)
    with pytest.raises(CatalogError, match=r"hosted\.yaml:\d+: ") as caught:
        hosted_file(catalog)
    assert words in str(caught.value)
    assert any(words in problem for *_, problem in faults_of(catalog))


def test_a_cached_token_is_not_dearer_than_another() -> None:
    price = HostedPrice(host="a", name="a", input_usd_per_million=1, cached_usd_per_million=2, output_usd_per_million=3)
    assert [problem for _, problem in price.problems()] == [
        "cached_usd_per_million of 2 is more than input_usd_per_million, 1. Leave it out, or correct it"
    ]


def retiring(
    day: str, name: str = "nscale/meta-llama/Llama-3.1-70B-Instruct", read_on: str = "", usd: str = "1e-7"
) -> str:
    return f"{name},nscale,{usd},{usd},,,,https://nscale.com,{day},{read_on}"


DATED = f"{HEAD},deprecation_date,source_date"


def test_lines_past_their_deprecation_date_and_of_hosts_that_closed_are_left_out(tmp_path: Path) -> None:
    lines = [retiring("2026-11-28"), retiring("2026-11-29", "nscale/meta-llama/Llama-3.1-8B-Instruct")]
    closed = "lambda_ai/llama3.1-70b-instruct-fp8,lambda_ai,1e-7,1e-7,,,,https://lambda.ai/inference,,"
    refresh_result = refreshed(a_list(tmp_path, *lines, closed, head=DATED))
    assert {reason: len(names) for reason, names in refresh_result.left_out.items()} == {
        "past their deprecation date": 1,
        "of hosts that closed": 1,
    }
    ((model,),) = [[price.deprecation_date for price in entry.prices] for entry in refresh_result.file.models]
    assert model == "2026-11-29"
    with pytest.raises(CatalogError, match=r"hosted\.csv:2: .*is no date"):
        refreshed(a_list(tmp_path, retiring("next year"), head=DATED))


def test_a_lines_own_day_says_more_than_as_of(tmp_path: Path) -> None:
    path = a_list(
        tmp_path,
        retiring("", read_on="2026-10-01 (release 1.109.0)"),
        retiring("", "nscale/meta-llama/Llama-3.1-8B-Instruct", "2026-11-20"),
        head=DATED,
    )
    for as_of, expected in ((DAY, DAY), (None, "2026-11-20")):
        hosted, _ = read_hosted([str(path)])
        assert hosted
        file = refresh_hosted(Catalog(), hosted, as_of).file
        days = {file.day_of(price) for model in file.models for price in model.prices}
        assert (file.read_on, days) == (expected, {"2026-10-01", "2026-11-20"})
        live = [model for model in ("llama-3.1-70b", "llama-3.1-8b") if file.live(model, datetime.date(2027, 1, 1), 90)]
        assert live == ["llama-3.1-8b"]  # the other was read 92 days before


def test_a_dead_price_never_crowds_out_a_live_one_of_its_host(tmp_path: Path) -> None:
    """The cheapest has no page, the next retires, the third stays; what is dearer than that and retires is dropped."""
    names = ("a/Llama-3.1-70B-Instruct", "b/Llama-3.1-70B-Instruct", "c/Llama-3.1-70B-Instruct", "d/Llama-3.1-70B")
    unsourced = retiring("", names[0]).replace("https://nscale.com", "")
    ends = [
        retiring(day, name, usd=usd)
        for day, name, usd in zip(("2026-12-24", "", "2026-12-24"), names[1:], ("2e-7", "3e-7", "4e-7"), strict=True)
    ]
    refresh_result = refreshed(a_list(tmp_path, unsourced, *ends, head=DATED))
    assert [price.name[0] for _, price in refresh_result.added] == ["a", "b", "c"]


def test_a_price_under_another_model_than_its_name_means_is_a_fault_of_check(tmp_path: Path) -> None:
    moved = SHIPPED.replace("  - model: qwen2.5-coder-32b\n", "  - model: qwen2.5-coder-x\n", 1)
    moved = moved.replace("  - model: qwen2.5-32b\n", "  - model: qwen2.5-coder-32b\n", 1)
    moved = moved.replace("  - model: qwen2.5-coder-x\n", "  - model: qwen2.5-32b\n", 1)
    assert moved != SHIPPED
    (tmp_path / "hosted.yaml").write_text(moved.replace("name: nscale/Qwen/QwQ-32B,", "name: nscale/Nobody/X1,"))
    problems = [problem for *_, problem in faults_of(Catalog(tmp_path))]
    assert any("qwen2.5-coder-32b, not qwen2.5-32b" in p for p in problems)
    assert any("no model, not qwq-32b" in problem for problem in problems)


def test_a_length_that_no_number_is_is_none(tmp_path: Path) -> None:
    line = f"new-host/meta-llama/Llama-3.1-70B-Instruct,new-host,3e-07,3e-07,,{'9' * 5000},,"
    assert [price.max_input_tokens for _, price in refreshed(a_list(tmp_path, line)).added] == [None]


def test_a_newer_list_says_what_changes_and_writes_the_file(tmp_path: Path) -> None:
    refresh_result = refreshed(
        a_list(
            tmp_path,
            "nebius/meta-llama/Meta-Llama-3.1-70B-Instruct,nebius,2e-07,4e-07,1e-07,128000,8192,https://nebius.com/prices",
            "new-host/meta-llama/Llama-3.1-70B-Instruct,new-host,3e-07,3e-07,,,,",
            "new-host/meta-llama/Llama-3.1-8B-Instruct,new-host,0,0,,,,",
            "new-host/meta-llama/Llama-3.3-70B-Instruct,new-host,,3e-07,,,,",
            "new-host/nobody/a-model,new-host,1e-07,1e-07,,,,",
        )
    )
    assert [
        (m, b.input_usd_per_million, n.input_usd_per_million, n.cached_usd_per_million)
        for m, b, n in refresh_result.changed
    ] == [("llama-3.1-70b", 0.13, 0.2, 0.1)]
    assert [(model, price.host, price.input_usd_per_million) for model, price in refresh_result.added] == [
        ("llama-3.1-70b", "new-host", 0.3)
    ]
    assert len(refresh_result.gone) == sum(len(model.prices) for model in Catalog().file(HostedFile).models) - 1
    assert {reason: len(names) for reason, names in refresh_result.left_out.items()} == {
        "without a price, or free": 2,
        "of models that are not in the catalogs": 1,
    }
    for path, text in hosted_text(refresh_result.file, tmp_path).items():
        path.write_text(text)
    catalog = Catalog(tmp_path)
    assert faults_of(catalog) == []
    assert [price.host for price in hosted_file(catalog).of("llama-3.1-70b")] == ["nebius", "new-host"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("nscale/llama3.1-8b-instruct,nscale,x,1e-07,,,,", "a price is 'x'. It must be US dollars for one token"),
        ("nscale/llama3.1-8b-instruct,nscale,nan,1e-07,,,,", "a price is 'nan'"),
        ("nscale/llama3.1-8b-instruct,nscale,-1e-7,1e-07,,,,", "a price is '-1e-7'"),
        ("nscale/llama3.1-8b-instruct,nscale,1_0,1e-07,,,,", "a price is '1_0'"),
        ("nscale/llama3.1-8b-instruct,nscale,0.03,0.05,,,,", "a price is '0.03'"),  # by the million
        ("nscale/llama3.1-8b-instruct,nscale,1e-7,1e-7,2e-7,,,", "is more than input_usd_per_million"),
        ("=x/llama3.1-8b-instruct,nscale,1e-7,1e-7,,,,", "reads as a formula"),
        ("x/llama3.1-8b-instruct,=cmd(),1e-7,1e-7,,,,", "reads as a formula"),
        ("x/llama3.1-8b-instruct,,1e-7,1e-7,,,,", "is no id"),
        ("x/llama3.1-8b-instruct,x,1e-7,1e-7,,,,javascript:alert(1)", "neither http nor https"),
        ("x/llama3.1-8b-instruct,x,1e-7", "has 3 cells under a header of 8 columns"),
    ],
)
def test_a_broken_line_is_reported_and_can_be_skipped(tmp_path: Path, line: str, words: str) -> None:
    path = a_list(tmp_path, "nebius/meta-llama/Meta-Llama-3.1-70B-Instruct,nebius,2e-07,4e-07,,,,", line)
    with pytest.raises(CatalogError, match=r"hosted\.csv:3: ") as caught:
        refreshed(path)
    assert words in str(caught.value)
    refresh_result = refreshed(path, skip_broken=True)
    assert len(refresh_result.skipped) == 1 and [model.model for model in refresh_result.file.models] == [
        "llama-3.1-70b"
    ]


def test_a_list_without_a_column_or_a_day_is_refused(tmp_path: Path) -> None:
    path = a_list(tmp_path, "x,y,1e-7", head="model,provider,input_usd_per_token")
    with pytest.raises(CatalogError, match="has no column output_usd_per_token"):
        refreshed(path)
    hosted, _ = read_hosted([str(a_list(tmp_path, "nscale/meta-llama/Llama-3.1-8B-Instruct,nscale,1e-7,1e-7,,,,"))])
    assert hosted
    with pytest.raises(CatalogError, match="says no date"):
        refresh_hosted(Catalog(), hosted, None)
    with pytest.raises(CatalogError, match="Give that list alone"):
        read_hosted([str(LIST), str(LIST.parent / "aws_gpu_on_demand.csv")])


def test_of_one_host_what_is_cheapest_for_no_load_is_dropped() -> None:
    def price(name: str, prompt: float, answer: float, longest: int | None = None, host: str = "a") -> HostedPrice:
        return HostedPrice(
            host=host, name=name, input_usd_per_million=prompt, output_usd_per_million=answer, max_input_tokens=longest
        )

    kept = cheapest(
        [
            price("cheap prompts", 1, 4),
            price("cheap answers", 2, 3),
            price("neither", 2, 4),
            price("short", 0.5, 0.5, 8000),
            price("short and dear", 3, 3, 8000),
            price("elsewhere", 9, 9, host="b"),
        ]
    )
    assert {price.name for price in kept} == {"cheap prompts", "cheap answers", "short", "elsewhere"}
