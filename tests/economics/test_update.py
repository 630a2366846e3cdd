"""Price tables of the user's own: what a newer package changes and nothing else, what is refused, what an answer says of its tables."""

from __future__ import annotations

import datetime
import re
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headway.core.age import age, last_day, limits, today
from headway.core.catalog import PACKAGED, open_catalog
from headway.core.errors import BadFile, HeadwayError, MissingExtra
from headway.economics.sheets import packages, update
from headway.economics.sheets.catalogue import sheets
from headway.economics.sheets.packages import Packages, lines
from headway.economics.sheets.sheet import PriceSheet, Rates
from support.command import Cli

MTOK = 1e-6
BILL = "bill --sheet {} --prompt 8k --output 500 --requests 100 --rate 2/min --mode standard --cache none"


def sheet_of(line: Any, usd_in: float, usd_out: float, as_of: str) -> PriceSheet:
    """A sheet as a package would have it."""
    _, _, path = line.sources[0].partition(":")
    provider, _, model = path.partition("/")
    return PriceSheet(provider=provider, model=model, as_of=as_of, source="test", rates=Rates(input=usd_in * MTOK, output=usd_out * MTOK))


CHANGED = next(line for line in lines() if line.sources[0].startswith("genai-prices:") and line.provider == "openai")


def newer(version: str = "99.0", as_of: str = "2026-11-20") -> Packages:
    """A package that has one model of ours, at $1 in and $2 out."""
    model = CHANGED.sources[0].partition(":")[2]
    return Packages({"genai-prices": {model: [sheet_of(CHANGED, 1.0, 2.0, as_of)]}}, {"genai-prices": version})


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder with nothing in it, and a package that is newer than the tables that ship."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(update, "read_packages", newer)
    return tmp_path / "headway"


def rates(which: tuple[PriceSheet, ...]) -> dict[tuple[str, str, str], tuple[float, ...]]:
    """Rates of sheets by provider, model and date."""
    return {(one.provider, one.model, one.as_of): (float(one.rates.input), float(one.rates.output)) for one in which}


def test_update__changes_what_the_package_changes_and_nothing_else(home: Path, cli: Cli) -> None:
    before, name = rates(sheets(open_catalog())), f"{CHANGED.provider}/{CHANGED.model}"
    answer = cli.rows("update")
    assert {row["table"]: row["file"] for row in answer if row["file"]} == {  # every table that was read from the package is of it now
        line.file: str(home / "sheets" / f"{line.file}.toml") for line in lines()
    }
    assert {row["table"] for row in answer if row["changed"]} == {CHANGED.file}
    own = sheets(open_catalog())
    now = rates(own)
    assert now[CHANGED.provider, CHANGED.model, "2026-11-20"] == pytest.approx((1 * MTOK, 2 * MTOK))
    rest = {key: value for key, value in now.items() if key[:2] != (CHANGED.provider, CHANGED.model)}
    assert rest == {key: value for key, value in before.items() if key[:2] != (CHANGED.provider, CHANGED.model)}
    assert rates(sheets(open_catalog((), ("sheets",)))) == before, "--shipped"
    row, shipped = cli.rows(BILL.format(name))[0], cli.rows(f"{BILL.format(name)} --shipped")[0]
    assert row["usd"] == pytest.approx(100 * (8_000 * 1 + 500 * 2) * MTOK) != shipped["usd"]
    assert "yours; genai-prices 99.0" in cli(BILL.format(name)).text
    assert "shipped; genai-prices" in cli(f"{BILL.format(name)} --shipped").text
    again = (home / "sheets" / f"{CHANGED.file}.toml").read_bytes()
    assert "none of" in cli("update").text.splitlines()[0]
    assert (home / "sheets" / f"{CHANGED.file}.toml").read_bytes() == again


def test_update__keeps_our_additions_and_what_packages_that_are_absent_had(home: Path) -> None:
    """With the package as it was, nothing changes: modes, caches and prefixes of litellm and of documents stay."""
    pytest.importorskip("genai_prices", reason="the extra prices is not installed")
    here = packages.read_packages()
    alone = Packages({"genai-prices": here.sheets["genai-prices"]}, {"genai-prices": here.versions["genai-prices"]})
    if f"genai-prices {alone.versions['genai-prices']}" not in (PACKAGED / "sheets" / "openai.toml").read_text(encoding="utf-8"):
        pytest.skip("sheets are of another version: make sheets")
    tables = update.update(home, alone)
    assert [table.changes for table in tables] == [()] * len(tables) and not any(table.text for table in tables)


def test_update__check_writes_nothing_and_no_socket_is_opened(home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("the network is touched")

    monkeypatch.setattr(socket, "socket", refuse)
    told = cli("update --check").text
    assert "to write" in told.splitlines()[0] and f"{CHANGED.provider}/{CHANGED.model}@" in told
    assert not home.exists()


def test_update__refuses_an_older_package_and_asks_for_one(home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(update, "read_packages", lambda: newer("0.0.1"))
    answer = cli("update")
    assert answer.status == 2 and "genai-prices 0.0.1 is older than " in answer.err and "pip install --upgrade" in answer.err
    monkeypatch.setattr(update, "read_packages", lambda: Packages({}, {}))
    answer = cli("update")
    assert answer.status == 2 and "headway[prices]" in answer.err and len(answer.err.splitlines()) == 1
    with pytest.raises(MissingExtra):
        update.installed()


def test_update__leaves_what_another_hand_wrote_and_mends_what_is_broken(home: Path, cli: Cli) -> None:
    path, name = home / "sheets" / f"{CHANGED.file}.toml", f"{CHANGED.provider}/{CHANGED.model}"
    path.parent.mkdir(parents=True)
    text = 'currency = "USD"\nprovider = "openai"\nmodel = "mine"\nas_of = "2026-11-01"\nrates = { input = 1, output = 2 }\n'
    path.write_text(text, encoding="utf-8")
    answer = cli("update")
    assert answer.status == 2 and str(path) in answer.err and "by hand" in answer.err and path.read_text(encoding="utf-8") == text
    path.write_text("currency = \n", encoding="utf-8")
    answer = cli(BILL.format(name))
    assert answer.status == 2 and len(answer.err.splitlines()) == 1 and str(path) in answer.err and "--shipped" in answer.err
    assert cli(f"{BILL.format(name)} --shipped").status == 0
    assert "made anew" in cli("update").text and cli(BILL.format(name)).status == 0


@pytest.mark.parametrize("read", ["broken", "1999-01-01", "2099-02-30"])
def test_update__writes_what_is_not_in_force_though_no_price_changes(home: Path, read: str, cli: Cli) -> None:
    """A user's table that is broken, behind the shipped one or of no day is written again: else each answer would advise it for ever."""
    ships, same = (PACKAGED / "sheets" / f"{CHANGED.file}.toml").read_text(encoding="utf-8"), Packages({}, {})
    assert not any(table.text for table in update.update(home, same))
    path = home / "sheets" / f"{CHANGED.file}.toml"
    path.parent.mkdir(parents=True)
    path.write_text("currency =" if read == "broken" else re.sub('read = ".*"', f'read = "{read}"', ships), encoding="utf-8")
    if read != "1999-01-01":
        assert re.search(rf"{re.escape(str(path))}.*headway update", cli(BILL.format(f"{CHANGED.provider}/{CHANGED.model}")).err)
    tables = update.update(home, same)
    assert [table.name for table in tables if table.text] == [CHANGED.file] and not any(table.changes for table in tables)
    update.write(tables)
    assert not any(table.text for table in update.update(home, same))


def test_update__a_folder_that_cannot_be_written_is_one_line(home: Path, cli: Cli) -> None:
    home.mkdir()
    (home / "sheets").write_text("in its place", encoding="utf-8")
    with pytest.raises(BadFile, match="cannot be written"):
        update.write(update.update(home, newer()))
    assert cli("update").status == 2


def test_update__a_table_behind_the_shipped_one_is_told_and_not_taken(home: Path, cli: Cli) -> None:
    """After headway itself was updated: an answer says that the user's table is behind, and `update` begins with the shipped one."""
    cli("update")
    for path in (home / "sheets").iterdir():
        path.write_text(path.read_text(encoding="utf-8").replace('read = "2026', 'read = "2020').replace("99.0", "0.1"), encoding="utf-8")
    told = cli(BILL.format(f"{CHANGED.provider}/{CHANGED.model}")).text
    assert "older than the shipped" in told and "years old" in told
    rest = [table for table in update.update(home, newer("98.0")) if table.name == CHANGED.file]
    assert "98.0" in rest[0].text


def test_age__of_each_kind_is_marked_from_its_limit_on(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    read = last_day((PACKAGED / "sheets" / "openai.toml").read_text(encoding="utf-8").partition('read = "')[2][:10])
    for days, mark in ((limits()["price sheets"], ""), (limits()["price sheets"] + 1, "3 months old"), (365, "12 months old")):
        moment = datetime.datetime.combine(read + datetime.timedelta(days), datetime.time(), datetime.UTC)
        monkeypatch.setenv("SOURCE_DATE_EPOCH", str(int(moment.timestamp())))
        assert age("price sheets", read.isoformat()) == mark
        notes = [line for line in cli(f"{BILL.format('gpt-5.4,claude-opus')} --verbose").text.splitlines() if "months old" in line]
        assert len(notes) == bool(mark) and all(mark in line for line in notes)
    assert age("price sheets", "undated") == age("chip prices", "2099-01") == ""


def test_day__that_is_none_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HeadwayError, match="date: got '2026-02-30'; wants a day"):
        last_day("2026-02-30")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "99999999999999999")
    with pytest.raises(HeadwayError, match="SOURCE_DATE_EPOCH: got"):
        today()


def test_tables__of_another_folder_are_no_matter_of_update(home: Path, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """`update` does not write a folder of $HEADWAY_CATALOG and --shipped does not leave it out: neither is advised."""
    path = tmp_path / "ours" / "sheets" / f"{CHANGED.file}.toml"
    path.parent.mkdir(parents=True)
    ships = (PACKAGED / "sheets" / path.name).read_text(encoding="utf-8")
    path.write_text(ships.replace('read = "2026', 'read = "2020'), encoding="utf-8")
    monkeypatch.setenv("HEADWAY_CATALOG", str(tmp_path / "ours"))
    told = cli(BILL.format(f"{CHANGED.provider}/{CHANGED.model}")).text
    assert "older than the shipped" in told and "headway update" not in told and "--shipped" not in told


def test_shipped__says_nothing_without_a_sheet(cli: Cli) -> None:
    for words in ("price llama-3.1-8b --on h200 --prompt 500 --output 50 --shipped", "list chips --shipped"):
        answer = cli(words)
        assert answer.status == 2 and "--shipped" in answer.err


def test_sheets__a_slot_of_an_addition_is_free(home: Path) -> None:
    """No rate of our additions stands beside one that a package states now."""
    assert list(packages.overtaken()) == []
    with pytest.raises(HeadwayError):
        update.update(home, newer("0.0.1"))


def test_tables__replaced_sheets_are_of_the_users_table(home: Path, cli: Cli) -> None:
    cli("update")
    whose = {one.table.name: one.table.ships for one in sheets(open_catalog()) if one.table}
    assert whose == {line.file: False for line in lines()} | {"unpackaged": True}
    assert all(replace(one, table=None).table is None for one in sheets(open_catalog()))
