"""An own price of a GPU: it prices the provider's real machines, and every output says whose price that is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_lines import Run

from sheetgen.catalog import Catalog

NC40, NC80 = "azure/Standard_NC40ads_H100_v5", "azure/Standard_NC80adis_H100_v5"  # of one and of two H100 NVL
HEAD = "provider,gpu,$/GPU/hr,date\n"


def write(workdir: Path, text: str, name: str = "ours.csv") -> None:
    (workdir / name).write_text(text, "utf-8")


def take(run: Run, *more: str, name: str = "ours.csv") -> str:
    """The report of the list written into `mine`, on one line."""
    result = run("catalog", "prices", name, "--to", "mine", *more)
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())


def usd(instance: str, purchase: str = "on-demand") -> float | None:
    price = Catalog("mine").instance(instance).price(purchase)
    return price.usd_per_hour if price else None


@pytest.mark.parametrize("per_gpu", [4.5, 12])  # below and above the list
def test_a_price_by_the_gpu_is_that_of_every_machine_of_the_provider(per_gpu: float, run: Run, workdir: Path) -> None:
    write(workdir, f"{HEAD}azure,H100 NVL,{per_gpu},2026-11-01\n")
    listed = {name: Catalog().instance(name).prices[0].usd_per_hour for name in (NC40, NC80)}
    report = take(run)
    assert [usd(NC40), usd(NC80)] == [per_gpu, 2 * per_gpu]
    assert Catalog("mine").brought == {NC40, NC80}  # no machine is made
    for name, times in ((NC40, 1), (NC80, 2)):
        assert f"{name} on-demand {listed[name]:g} {per_gpu * times:g}" in report
    asked = ("--catalogs", "mine", "--providers", "azure", "--gpus", "h100-nvl", "--as-of", "2026-12-01")
    text = " ".join(run("recommend", "--model", "70b", "--users", "2000", *asked).stdout.split())
    assert NC80 in text and "2026-11-01, from own price list ours.csv" in text
    answer = json.loads(run("recommend", "--model", "70b", "--users", "2000", *asked, "--json").stdout)
    hourly = {row["instance"]: row["hourly_usd"] for row in answer["candidates"]}
    assert hourly == {NC40: per_gpu, NC80: 2 * per_gpu}


def test_every_output_says_whose_price_it_is(run: Run, workdir: Path) -> None:
    write(workdir, f"{HEAD}azure,H100 NVL,4.5,2026-11-01\n")
    take(run)
    asked = ("--catalogs", "mine", "--as-of", "2026-12-01")
    of_sheet = ("--models", "70b", "--workloads", "rag", "--providers", "azure", "--gpus", "h100-nvl")
    assert run("build", *of_sheet, *asked, "--format", "json,md", "--name", "sheet").exit_code == 0
    for kind in ("json", "md"):
        assert "own price list ours.csv" in (workdir / "output" / f"sheet.{kind}").read_text("utf-8")
    mail = run("mail", "--to", "a@b.example", *of_sheet, *asked, "--dry-run").stdout
    assert "2026-11-01, from own price list ours.csv" in " ".join(mail.split())
    write(
        workdir,
        "plan: {start: 2027-Q1, quarters: 1, as_of: 2026-12-01}\n"
        "supply: {allowed: {providers: [azure], gpus: [h100-nvl]}}\n"
        "services: [{id: chat, demand: {at_once: 9}, model: [{from: 2027-Q1, id: llama-3.1-8b}]}]\n",
        "plan.yaml",
    )
    assert run("plan", "plan.yaml", "--catalogs", "mine", "--format", "md", "--name", "plan").exit_code == 0
    assert "own price list ours.csv, 2026-11-01" in (workdir / "output" / "plan.md").read_text("utf-8")
    mail = run("mail", "plan.yaml", "--to", "a@b.example", "--catalogs", "mine", "--dry-run").stdout
    assert "2026-11-01, from own price list ours.csv" in " ".join(mail.split())


def test_classes_by_column_and_by_line(run: Run, workdir: Path) -> None:
    write(workdir, "provider,gpu,$/GPU/hr,reserved 1 year $/GPU/hr,date\nazure,H100 NVL,5,4,2026-11-01\n")
    take(run)
    assert [usd(NC80), usd(NC80, "reserved-1yr")] == [10, 8]
    lines = "azure,H100 NVL,on demand,6,2026-11-02\nazure,H100 NVL,reserved 1 year,3,2026-11-02\n"
    write(workdir, f"provider,gpu,purchase,$/GPU/hr,date\n{lines}")
    take(run)
    assert [usd(NC80), usd(NC80, "reserved-1yr")] == [12, 6]
    write(workdir, "provider,gpu,reserved 3 years $/GPU/hr,date\nazure,H100 NVL,2,2026-11-02\n", "term.csv")
    take(run, name="term.csv")
    asked = ("recommend", "--model", "70b", "--users", "2000", "--providers", "azure", "--gpus", "h100-nvl")
    text = run(*asked, "--catalogs", "mine", "--purchase", "reserved-3yr", "--as-of", "2026-12-01").stdout
    assert "own price list term.csv" in " ".join(text.split())


def test_a_more_exact_line_holds_for_its_machine(run: Run, workdir: Path) -> None:
    """A line with the type before one with the number of GPUs, and that before a price by the GPU; class by class."""
    head = "provider,instance type,gpu,gpu count,$/GPU/hr,reserved 1 year $/GPU/hr,date\n"
    lines = (
        "azure,,H100 NVL,,5,3,2026-11-01\n",
        "azure,Standard_NC80adis_H100_v5,,,4.5,,2026-11-01\n",
        "azure,,H100 NVL,1,4,2.5,2026-11-01\n",
    )
    for order in (lines, lines[::-1]):
        write(workdir, head + "".join(order))
        report = take(run)
        assert [usd(NC80), usd(NC80, "reserved-1yr"), usd(NC40), usd(NC40, "reserved-1yr")] == [9, 6, 4, 2.5]
        assert f"not {NC40} on-demand, priced by ours.csv:" in report
        assert f"nor {NC80} on-demand, priced by ours.csv:" in report
        assert Catalog("mine").brought == {NC40, NC80}


def test_two_prices_of_one_gpu_are_refused(run: Run, workdir: Path) -> None:
    write(workdir, f"{HEAD}azure,H100 NVL,5,2026-11-01\nazure,NVIDIA H100 NVL 94GB,4,2026-11-01\n")
    result = run("catalog", "prices", "ours.csv", "--to", "mine")
    assert result.exit_code == 1 and f"{NC40} on-demand is 4 here and 5 in ours.csv:2" in result.stderr
    assert not (workdir / "mine").exists()


def test_a_part_of_a_gpu_costs_its_share(run: Run, workdir: Path) -> None:
    write(workdir, f"{HEAD}azure,A10,2,2026-11-01\n")
    take(run)
    rows = [row for row in Catalog("mine").instances() if (row.provider, row.gpu) == ("azure", "nvidia-a10-24gb")]
    assert len(rows) > 3 and any(row.gpu_count < 1 for row in rows)
    assert {row.id: row.prices[0].usd_per_hour for row in rows} == {
        row.id: pytest.approx(2 * row.gpu_count) for row in rows
    }


def test_a_provider_without_such_a_machine(run: Run, workdir: Path) -> None:
    write(workdir, f"{HEAD}azuer,H100 NVL,4,2026-11-01\n")
    report = take(run)
    assert "no machine with H100 NVL" in report and "1, 2, 4, 8" in report and "assumed shape" in report
    assert "Did you mean azure?" in report and "instance_type" in report
    asked = ("--users", "2000", "--catalogs", "mine", "--providers", "azuer", "--as-of", "2026-12-01", "--json")
    answer = json.loads(run("recommend", "--model", "70b", *asked).stdout)
    assert {row["gpu_count"] for row in answer["candidates"]} == {1, 2, 4, 8}
    write(workdir, f"{HEAD}someone,GH200 96GB,4,2026-11-01\n")
    assert "machines of 1, marked" in take(run)  # no machine has two


def test_a_number_of_gpus_that_the_provider_does_not_have_is_said(run: Run, workdir: Path) -> None:
    write(workdir, "provider,gpu,gpu count,price per hour,date\nazure,H100 NVL,4,16,2026-11-01\n")
    report = take(run)
    assert f"{NC40} (1), {NC80} (2)" in report and usd("azure/4x H100 NVL") == 16


def test_a_type_that_is_not_known_prices_no_other_machine(run: Run, workdir: Path) -> None:
    head = "provider,instance type,gpu,$/GPU/hr,date\n"
    write(workdir, f"{head}azure,Standard_NC41,H100 NVL,4,2026-11-01\n")
    result = run("catalog", "prices", "ours.csv", "--to", "mine")
    assert result.exit_code == 1 and NC40 in result.stderr and not (workdir / "mine").exists()


def test_the_gpu_of_a_short_name_is_one_that_the_provider_has(run: Run, workdir: Path) -> None:
    """A100 is the SXM part by itself; of a provider that has the PCIe part alone it is that one."""
    write(workdir, f"{HEAD}vultr,A100,2,2026-11-01\nsomeone,A100,2,2026-11-01\n")
    take(run)
    gpus = {name.partition("/")[0]: Catalog("mine").instance(name).gpu for name in Catalog("mine").brought}
    assert gpus == {"vultr": "nvidia-a100-pcie-80gb", "someone": "nvidia-a100-sxm4-80gb"}


def test_an_unknown_gpu_is_named_with_what_it_may_be(run: Run, workdir: Path) -> None:
    write(workdir, f"{HEAD}azure,H200 NLV,4,2026-11-01\n")
    result = run("catalog", "prices", "ours.csv", "--to", "mine")
    assert result.exit_code == 1 and "H200 NLV" in result.stderr and "h200-nvl" in result.stderr
    assert not (workdir / "mine").exists()


def test_another_currency(run: Run, workdir: Path) -> None:
    write(workdir, "provider,gpu,€/GPU/hr,date\nazure,H100 NVL,4,2026-11-01\n")
    assert run("catalog", "prices", "ours.csv", "--to", "mine").exit_code == 1
    take(run, "--usd-per", "EUR=1.5")
    assert usd(NC80) == 12
    assert "own price list ours.csv at 1.5 USD per EUR (on-demand)" in Catalog("mine").instance(NC80).source


def test_a_contract_holds_over_a_list_of_any_day_but_not_over_a_later_contract(run: Run, workdir: Path) -> None:
    for day, per_gpu, now in (("2025-12-01", 6, 12), ("2026-02-01", 5, 10), ("2026-01-01", 7, 10)):
        write(workdir, f"{HEAD}azure,H100 NVL,{per_gpu},{day}\n")
        take(run)
        assert usd(NC80) == now
    price = Catalog("mine").instance(NC80).price("on-demand")
    assert price is not None and {past.usd_per_hour for past in price.history} >= {12, 14, 13.96}


def test_a_contract_in_a_class_in_which_the_machine_is_not_listed_takes_part(run: Run, workdir: Path) -> None:
    row = next(row for row in Catalog().instances() if row.sold_as and "on-demand" not in row.sold_as and row.is_whole)
    write(workdir, f"provider,instance type,price per hour,date\n{row.provider},{row.type},20,2026-11-01\n")
    take(run, "--accept-large-changes")
    after = Catalog("mine").instance(row.id)
    assert [price.usd_per_hour for price in after.offered if price.purchase == "on-demand"] == [20]
    assert {*after.sold_as} == {*row.sold_as, "on-demand"}


def test_other_regions_stay_at_list_and_it_is_said(run: Run, workdir: Path) -> None:
    write(workdir, f"{HEAD}azure,H100 NVL,12,2026-11-01\n")
    assert "eastus" in take(run)
    before, after = (catalog.regions.of_row(catalog.instance(NC80)) for catalog in (Catalog(), Catalog("mine")))
    changed = {region for region in before if before[region] != after[region]}
    assert changed == {"eastus"} and len(before) > 1
    write(workdir, "provider,gpu,region,$/GPU/hr,date\nazure,H100 NVL,westus3,5,2026-11-01\n")
    take(run)
    assert (
        usd(NC80) == 24
        and Catalog("mine").regions.of_row(Catalog("mine").instance(NC80))["westus3"]["on-demand"][0].usd_per_hour == 10
    )


def test_a_priced_machine_that_takes_no_part_by_default_is_said_with_its_option(run: Run, workdir: Path) -> None:
    write(workdir, f"{HEAD}azure,MI300X,3,2026-11-01\nakash,H100 SXM,2,2026-11-01\n")
    report = take(run)
    assert "--vendors amd: azure/Standard_ND96isr_MI300X_v5" in report and "akash/H100 SXM5" in report
    asked = ("--catalogs", "mine", "--as-of", "2026-12-01", "--json", "--users", "2000", "--model", "70b")
    for option in (("--vendors", "amd"), ("--gpus", "h100")):
        assert f"Asked only with {' '.join(option)}: " in report
        answer = json.loads(run("recommend", *asked, *option).stdout)
        brought = {row["instance"] for row in answer["candidates"]}
        assert any(name.startswith(("akash/", "azure/Standard_ND96isr_MI300X")) for name in brought)
