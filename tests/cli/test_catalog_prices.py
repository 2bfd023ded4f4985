"""`sheetgen catalog prices`: what it shows, what it writes, and that it writes all or nothing."""

from __future__ import annotations

import http.server
import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_lines import Run

from sheetgen.catalog import Catalog, default_folder
from sheetgen.catalog.check import faults_of
from sheetgen.catalog.prices import list_files
from sheetgen.catalog.prices.known_columns import FORMATS

LISTS = Path(__file__).parents[1] / "data" / "prices"
AWS_HEAD = "region,instance_type,on_demand_usd_hr,accelerator_count,accelerator_name\n"
DAY = ("--as-of", "2026-11-20")


@pytest.fixture
def aws(workdir: Path) -> Path:
    (workdir / "aws.csv").write_text(AWS_HEAD + "us-east-1,p5.48xlarge,60,8,h100\nus-east-1,g6.xlarge,0.8048,1,l4\n")
    return workdir / "aws.csv"


def left_in(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_it_shows_what_changes_and_writes_nothing(run: Run, aws: Path, workdir: Path) -> None:
    result = run("catalog", "prices", "aws.csv", *DAY)
    assert result.exit_code == 0 and result.stderr == ""
    lines = result.stdout.splitlines()
    assert lines[3].split() == ["aws/p5.48xlarge", "on-demand", "55.04", "60", "+9.0%", "2026-07-20", "2026-11-20"]
    n_others = len([row for row in Catalog().instances() if row.provider == "aws"]) - 2
    assert f"{n_others} catalog rows" in result.stdout and "--to DIR" in lines[-1]
    assert left_in(workdir) == ["aws.csv"]
    dry = run("catalog", "prices", "aws.csv", *DAY, "--to", "mine", "--dry-run")
    assert dry.stdout.splitlines()[-1].endswith(" mine/instances/aws.yaml.")
    assert left_in(workdir) == ["aws.csv"]


def test_a_written_price_is_the_one_that_recommend_uses(run: Run, aws: Path, workdir: Path) -> None:
    asked = ("recommend", "--model", "8b", "--instances", "aws/p5.48xlarge", "--as-of", "2026-11-20", "--json")
    before = json.loads(run(*asked).stdout)
    result = run("catalog", "prices", "aws.csv", *DAY, "--to", "mine")
    assert result.exit_code == 0, result.output
    assert result.stdout.endswith(" --catalogs mine.\n")
    assert left_in(workdir) == ["aws.csv", "mine/instances/aws.yaml"]
    after = json.loads(run(*asked, "--catalogs", "mine").stdout)
    hourly = [answer["candidates"][0]["hourly_usd"] for answer in (before, after)]
    assert hourly == [55.04, 60]
    assert "(on-demand); aws/karpenter" in run(*asked, "--catalogs", "mine").stdout
    assert run("check", "mine").exit_code == 0
    assert run("catalog", "prices", "aws.csv", *DAY, "--to", "mine").stdout.endswith("Nothing to write.\n")


def test_show_has_the_history(run: Run, aws: Path) -> None:
    run("catalog", "prices", "aws.csv", *DAY, "--to", "mine")
    aws.write_text(aws.read_text().replace(",60,", ",66,"))
    run("catalog", "prices", "aws.csv", "--as-of", "2026-12-01", "--to", "mine")
    lines = run("show", "aws/p5.48xlarge", "--catalogs", "mine").stdout.splitlines()
    start = lines.index("prices:")
    assert lines[start + 1 : start + 5] == [
        "  - purchase on-demand, usd_per_hour 66, as_of 2026-12-01, kind –",
        "    before: usd_per_hour 60, as_of 2026-11-20, source price list aws.csv",
        "    before: usd_per_hour 55.04, as_of 2026-07-20",
        "  - purchase reserved-3yr, usd_per_hour 23.7773, as_of 2026-06-15, kind Standard RI, No Upfront",
    ]
    data = json.loads(run("show", "aws/p5.48xlarge", "--catalogs", "mine", "--json").stdout)
    assert [past["usd_per_hour"] for past in data["prices"][0]["history"]] == [60, 55.04]


def test_an_older_price_is_said_and_left(run: Run, aws: Path) -> None:
    result = run("catalog", "prices", "aws.csv", "--as-of", "2026-01-05", "--to", "mine")
    told = "1 price older than the catalog's, which stays; kept as history: aws/p5.48xlarge on-demand 60 of 2026-01-05."
    assert told in result.stdout and "Prices: 1 unchanged." in result.stdout
    price = Catalog("mine").instance("aws/p5.48xlarge").price("on-demand")
    assert price is not None and price.usd_per_hour == 55.04 and price.history[0].usd_per_hour == 60
    again = run("catalog", "prices", "aws.csv", "--as-of", "2026-01-05", "--to", "mine").stdout
    assert "(1 there" in again and again.endswith("Nothing to write.\n")


def test_nothing_is_applied_half(run: Run, aws: Path, workdir: Path) -> None:
    aws.write_text(aws.read_text() + "us-east-1,g5.xlarge,abc,1,a10g\n")
    shutil.copy(LISTS / "azure_n_series_on_demand.csv", workdir / "azure.csv")
    arguments = ("catalog", "prices", "azure.csv", "aws.csv", *DAY, "--to", "mine")
    result = run(*arguments)
    assert result.exit_code == 1 and result.stdout == ""
    assert result.stderr.startswith("aws.csv:4: on_demand_usd_hr is 'abc'. ")
    assert left_in(workdir) == ["aws.csv", "azure.csv"]
    (workdir / "azure.csv").write_text("a,b\n")
    result = run(*arguments, "--skip-broken")  # that skips lines; what is no price list at all is refused still
    assert result.exit_code == 1 and result.stderr.count("\n") == 1 and left_in(workdir) == ["aws.csv", "azure.csv"]
    result = run("catalog", "prices", "aws.csv", *DAY, "--to", "mine", "--skip-broken")
    assert result.exit_code == 0 and result.stderr.endswith(" Skipped.\n")
    assert ", 3 lines, 1 broken." in result.stdout and "mine/instances/aws.yaml" in left_in(workdir)


def test_nothing_is_written_where_a_file_cannot_be(run: Run, aws: Path, workdir: Path) -> None:
    shutil.copy(LISTS / "azure_n_series_on_demand.csv", workdir / "azure.csv")
    (workdir / "mine" / "instances" / "azure.yaml").mkdir(parents=True)
    result = run("catalog", "prices", "aws.csv", "azure.csv", *DAY, "--to", "mine")
    assert result.exit_code == 1 and result.stderr.count("\n") == 1 and result.stdout == ""
    assert left_in(workdir) == ["aws.csv", "azure.csv"]
    (workdir / "file").write_text("")
    result = run("catalog", "prices", "aws.csv", *DAY, "--to", "file")
    assert result.exit_code == 1 and "cannot be written (" in result.stderr and "--to" in result.stderr
    (workdir / "broken" / "instances").mkdir(parents=True)
    (workdir / "broken" / "instances" / "aws.yaml").write_text("provider: [\n")
    result = run("catalog", "prices", "aws.csv", *DAY, "--to", "broken")
    assert result.exit_code == 1 and result.stderr.startswith("broken/instances/aws.yaml:2: ")
    assert (workdir / "broken" / "instances" / "aws.yaml").read_text() == "provider: [\n"


def test_one_line_and_exit_1(run: Run, aws: Path, workdir: Path) -> None:
    for arguments, told in (
        (("none.csv",), "none.csv: cannot be read (No such file or directory)."),
        (("aws.csv",), "aws.csv: says no date."),
        (("aws.csv", "--as-of", "20.11.2026"), "as_of is '20.11.2026'. Write a date such as 2026-11-20."),
        (
            ("aws.csv", *DAY, "--region", "us-eats-1"),
            "region is 'us-eats-1', which none of the lists has. Did you mean",
        ),
        (("aws.csv", *DAY, "--to", " "), "to is blank. Name a folder, or leave it out."),
        (("aws.csv", *DAY, "--catalogs", "none"), "none: cannot be read (No such file or directory)."),
        (("file:///etc/passwd", *DAY), "file:///etc/passwd: is neither a file nor an address of http or https."),
    ):
        result = run("catalog", "prices", *arguments)
        assert result.exit_code == 1 and result.stdout == "" and result.stderr.count("\n") == 1, result.output
        assert result.stderr.startswith(told), result.stderr
    assert run("catalog", "prices").exit_code == 2 and run("catalog", "prices", "aws.csv", "--as-of").exit_code == 2
    assert left_in(workdir) == ["aws.csv"]


def test_json_has_everything(run: Run, workdir: Path) -> None:
    lists = [LISTS / name for name in ("aws_gpu_on_demand.csv", "gcp_accelerator_prices.csv")]
    neocloud = LISTS / "neocloud_offerings_2026-05-24.csv"
    to = ("--to", "mine", "--add-new", "--accept-large-changes")
    result = run("catalog", "prices", *lists, neocloud, *DAY, "--json", *to)
    data = json.loads(result.stdout)
    large = {change.split(" is ")[0] for change in data["large_changes"]}
    assert large >= {"dataoorts/A100 40GB SXM spot", "vast.ai/A10 on-demand"}
    assert {row.rpartition(" ")[0] for row in large} <= {
        f"{words['provider']}/{words['type']}" for words in data["new"]
    }
    assert [listed["format"] for listed in data["lists"]] == ["AWS on demand", "GCP accelerators", "neocloud offerings"]
    whats = [change["what"] for change in data["changes"]]
    assert set(whats) == {"confirmed", "older", "added"} and whats.count("confirmed") >= 58 + 96
    assert data["n_unchanged"] >= 63 and len(data["new"]) > 60 and all(row["added"] for row in data["new"])
    assert {row["reason"] for row in data["not_matched"]} >= {
        "of a provider that could be runpod-secure or runpod-community"
    }
    assert "mine/instances/akash.yaml" in data["written"] and result.stderr == ""
    assert run("check", "mine").exit_code == 0


def test_long_lists_are_cut(run: Run, workdir: Path) -> None:
    head, *lines = (LISTS / "aws_gpu_on_demand.csv").read_text().splitlines()
    cells = [line.split(",") for line in lines if line.startswith("us-east-1,")]
    dearer = [",".join([c[0], c[1], str(4 * float(c[2])) if c[2] else "", *c[3:]]) for c in cells]
    (workdir / "aws.csv").write_text("\n".join([head, *dearer]))
    shown = run("catalog", "prices", "aws.csv", *DAY).stdout
    assert shown.count("+300.0%") == 40 and "\nand 18 more; --json has all\n" in shown
    assert "58 implausible prices, " in shown and "\n  aws.csv:" in shown
    assert shown.count(", 4 times more than ") == 40 and "\n  and 18 more; " in shown
    assert len(json.loads(run("catalog", "prices", "aws.csv", *DAY, "--json").stdout)["changes"]) == 58


def test_prices_that_hardly_can_be_are_refused(run: Run, aws: Path, workdir: Path) -> None:
    """A list a thousand times too low, and one by the GPU instead of the machine; confirmed, all say so."""
    text = aws.read_text()
    for wrong, why in (
        ("0.06", "917 times less than 55.04 before; 0.0075 a GPU-hour, where providers take 2.11 to 12.29"),
        ("6.88", "8 times less than 55.04 before"),
        ("301", "5.47 times more than 55.04 before; 37.62 a GPU-hour, where providers take 2.11 to 12.29"),
    ):
        aws.write_text(text.replace(",60,", f",{wrong},"))
        for more in ((), ("--dry-run",), ("--json",), ("--quiet",)):
            result = run("catalog", "prices", "aws.csv", *DAY, "--to", "mine", *more)
            assert result.exit_code == 1 and result.stdout == "" and left_in(workdir) == ["aws.csv"]
            first, last = result.stderr.splitlines()
            assert first == f"aws.csv:2: aws/p5.48xlarge on-demand is {wrong} $/h, {why}."
            assert "--accept-large-changes" in last
        seen = run("catalog", "prices", "aws.csv", *DAY)
        assert seen.exit_code == 0 and why in seen.stdout and "--accept-large-changes alone" in seen.stdout
    aws.write_text(text.replace(",60,", ",0.06,"))
    taken = run("catalog", "prices", "aws.csv", *DAY, "--to", "mine", "--accept-large-changes")
    assert taken.exit_code == 0 and "1 implausible price, " in taken.stdout
    checked = run("check", "mine")
    assert checked.exit_code == 0 and "is 0.06 $/h, 917 times less" in checked.stderr
    assert checked.stderr.startswith("mine/instances/aws.yaml:") and run("check", "mine", "-q").stderr == ""
    (remark,) = json.loads(run("check", "--catalogs", "mine", "--json").stdout)["remarks"]
    assert remark == checked.stderr.strip()
    asked = run("recommend", "--model", "8b", "--catalogs", "mine").stdout
    assert "917 times less than 55.04 before; 0.0075" in asked


def test_a_hosted_list_a_thousand_times_too_low(run: Run, workdir: Path) -> None:
    line = "nebius/meta-llama/Meta-Llama-3.1-70B-Instruct,nebius,2e-10,4e-10,,128000,\n"
    (workdir / "hosted.csv").write_text(HOSTED_HEAD + line)
    result = run("catalog", "prices", "hosted.csv", *DAY, "--to", "mine")
    assert result.exit_code == 1 and left_in(workdir) == ["hosted.csv"] and result.stderr.count("\n") == 3
    assert "input_usd_per_million is 0.0002, 650" in (result.stderr)
    assert run("catalog", "prices", "hosted.csv", *DAY, "--to", "mine", "--accept-large-changes").exit_code == 0


def test_quiet(run: Run, aws: Path, workdir: Path) -> None:
    assert run("catalog", "prices", "aws.csv", *DAY, "--to", "mine", "--quiet").output == ""
    assert "mine/instances/aws.yaml" in left_in(workdir)


def test_into_catalogs_with_an_index(run: Run, aws: Path, workdir: Path) -> None:
    """Only the rows that change differ from the shipped file, and the folder is named: prices are in no index."""
    shutil.copytree(default_folder(), workdir / "catalogs")
    result = run("catalog", "prices", "aws.csv", *DAY, "--to", "catalogs")
    assert result.stdout.endswith(" --catalogs catalogs.\n")
    old = (default_folder() / "instances" / "aws.yaml").read_text().splitlines()
    new = (workdir / "catalogs" / "instances" / "aws.yaml").read_text().splitlines()
    assert len(new) == len(old) + 4 and len(set(old) - set(new)) <= 3
    assert faults_of(Catalog(base=workdir / "catalogs")) == []


def test_comments_are_not_lost_in_silence(run: Run, aws: Path, workdir: Path) -> None:
    run("catalog", "prices", "aws.csv", *DAY, "--to", "mine")
    target = workdir / "mine" / "instances" / "aws.yaml"
    target.write_text("# ours\n" + target.read_text().replace("instances:\n", "instances:\n  # the big one\n"))
    aws.write_text(aws.read_text().replace(",60,", ",66,"))
    result = run("catalog", "prices", "aws.csv", "--as-of", "2026-12-01", "--to", "mine")
    assert result.stdout.count("comments") == 1
    assert target.read_text().startswith("# ours\nprovider: aws\n")


def test_hostile_text_does_not_reach_the_terminal(run: Run, workdir: Path) -> None:
    name = "a\x1b[31m\u202e.csv"
    (workdir / name).write_text(AWS_HEAD + "us-east-1,p5\x1b[31m\u202e,60,8,h100\nus-east-1,new.large,1,1,zzz\n")
    for more in ((), ("--skip-broken",), ("--skip-broken", "--json")):
        result = run("catalog", "prices", name, *DAY, *more)
        assert not {"\x1b", "\u202e"} & set(result.output) and r"\x1b" in result.output


def test_help_names_the_columns(run: Run) -> None:
    shown = " ".join(run("catalog", "prices", "--help").stdout.split())
    for form in FORMATS:
        assert ", ".join(form.required) in shown, form.title


# From the web


class Server(http.server.BaseHTTPRequestHandler):
    """Answers by the path alone."""

    body = (AWS_HEAD + "us-east-1,p5.48xlarge,60,8,h100\n").encode()
    asked: list[str] = []  # noqa: RUF012

    def do_GET(self) -> None:
        self.asked.append(self.path)
        path = self.path.split("?")[0]
        moved = {
            "/moved": "/aws.csv",
            "/to-file": "file:///etc/passwd",
            "/to-ftp": "ftp://127.0.0.1/a",
            "/round": "/round",
        }
        if path in moved:
            self.send_response(302)
            self.send_header("Location", moved[path])
            self.end_headers()
            return
        self.send_response(200 if path in ("/aws.csv", "/large", "/short", "/page") else 404)
        body = b"<html>" if path == "/page" else self.body
        self.send_header("Content-Length", str({"/large": 10**9, "/short": 10**6}.get(path, len(body))))
        self.end_headers()
        self.wfile.write(b"x" * 4096 if path == "/large" else body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    Server.asked.clear()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_list_from_the_web(run: Run, workdir: Path, address: str) -> None:
    for path in ("/aws.csv?token=secret", "/moved"):
        result = run("catalog", "prices", address + path, *DAY, "--to", "mine")
        assert result.exit_code == 0, result.output
        assert result.stdout.startswith(f"{address}{path.split('?')[0]}: AWS on demand, 1 line.")
    text = (workdir / "mine" / "instances" / "aws.yaml").read_text()
    assert f"source: 'price list {address}/aws.csv (on-demand); aws/" in text and "secret" not in text
    assert run("check", "mine").exit_code == 0
    assert Server.asked == ["/aws.csv?token=secret", "/moved", "/aws.csv"]


def test_what_the_web_may_do_wrong(run: Run, workdir: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_files, "MAX_BYTES", 2**20)
    for url, told in (
        (f"{address}/none?token=secret", f"{address}/none: cannot be fetched (404 Not Found)."),
        (f"{address}/page", f"{address}/page: is a web page or XML, not CSV. Name the file itself."),
        (f"{address}/short", "bytes)."),
        (f"{address}/to-file", "is not allowed"),
        (f"{address}/to-ftp", "cannot be fetched ("),
        (f"{address}/round", "cannot be fetched ("),
        ("http://127.0.0.1:1/a.csv", "http://127.0.0.1:1/a.csv: cannot be fetched (Connection refused)."),
        (address.replace("//", "//me:secret@") + "/aws.csv", "has a user or a password before the host"),
        ("http://", "http://: cannot be fetched (no host given)."),
        ("http://a b\x1b/x", "cannot be fetched ("),
        ("http://[::1/x", "cannot be fetched (Invalid IPv6 URL)."),
    ):
        result = run("catalog", "prices", url, *DAY, "--to", "mine")
        assert result.exit_code == 1 and result.stdout == "" and result.stderr.count("\n") == 1, result.output
        assert told in result.stderr and "secret" not in result.stderr and "\x1b" not in result.stderr, result.stderr
    assert left_in(workdir) == []


def test_more_than_a_list_may_have(run: Run, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_files, "MAX_BYTES", 64)
    for place in (f"{address}/aws.csv", f"{address}/large", str(LISTS / "aws_gpu_on_demand.csv")):
        result = run("catalog", "prices", place, *DAY)
        assert result.exit_code == 1 and "is larger than" in result.stderr and result.stderr.count("\n") == 1


def test_a_server_that_drips(run: Run, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_files, "FETCH_SECONDS", -1)
    result = run("catalog", "prices", f"{address}/aws.csv", *DAY)
    assert result.exit_code == 1 and "not all of it came within" in result.stderr


def test_nothing_is_fetched_unasked(run: Run, aws: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was touched")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("socket.getaddrinfo", refuse)
    assert run("catalog", "prices", "aws.csv", *DAY, "--to", "mine").exit_code == 0


HOSTED_HEAD = (
    "model,provider,input_usd_per_token,output_usd_per_token,cache_read_usd_per_token,max_input_tokens,source\n"
)


def test_a_list_of_hosted_tokens_makes_the_file_anew(run: Run, workdir: Path) -> None:
    (workdir / "hosted.csv").write_text(
        HOSTED_HEAD
        + "nebius/meta-llama/Meta-Llama-3.1-70B-Instruct,nebius,2e-07,4e-07,1e-07,128000,https://nebius.com\n"
        "nebius/nobody/a-model,nebius,2e-07,4e-07,,,\nnebius/meta-llama/Llama-3.3-70B-Instruct,nebius,0,0,,,\n"
    )
    shown = run("catalog", "prices", "hosted.csv", *DAY)
    assert shown.exit_code == 0 and left_in(workdir) == ["hosted.csv"]
    assert ", 3 lines." in shown.stdout and "1 changed, 0 new" in shown.stdout
    assert ": 0.13/0.4 to 0.2/0.4 $" in shown.stdout
    assert "Left out, 1 " in shown.stdout
    written = run("catalog", "prices", "hosted.csv", *DAY, "--to", "mine", "--json")
    answer = json.loads(written.stdout)
    assert answer["written"] == ["mine/hosted.yaml"] and answer["n_lines"] == 3 and len(answer["changed"]) == 1
    assert run("check", "mine").exit_code == 0
    asked = run(
        "recommend", "--model", "70b", "--context", "16k", "--concurrent-requests", 32, "--catalogs", "mine", "--json"
    )
    (hosted,) = json.loads(asked.stdout)["cells"][0]["hosted"]
    assert (hosted["host"], hosted["input_usd_per_million"], hosted["cached_usd_per_million"]) == ("nebius", 0.2, 0.1)


def test_hosted_prices_are_listed(run: Run) -> None:
    listed = json.loads(run("list", "hosts", "llama-3.1-70b", "--json").stdout)
    assert {row["model"] for row in listed} == {"llama-3.1-70b", "hermes-3-llama-3.1-70b"}
    by_host = {row["host"]: row for row in listed if row["model"] == "llama-3.1-70b"}
    day = {"read_on": "2026-11-28", "deprecation_date": None}
    assert {"input_usd_per_million": 0.13, "source": "https://nebius.com/prices", **day}.items() <= by_host[
        "nebius"
    ].items()
    assert by_host["bedrock"]["deprecation_date"] == "2027-03-30" and by_host["fireworks"]["source"] is None
