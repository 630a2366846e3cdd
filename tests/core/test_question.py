"""A question is a record: one declaration gives flag, help, keyword, schema, command and file; what says nothing is refused."""

from __future__ import annotations

import doctest
import json
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import headway as hw
from contract.golden.golden_answers import INPUTS, commands
from headway.answers.asked import question_of_call, signature
from headway.answers.questions import question_file
from headway.cli.main import parsed
from headway.cli.parser import Parser
from headway.core.errors import BadFile, BadValue, HeadwayError, UnknownName
from headway.core.question import WHAT_IF, Question, field, from_words, question_of, refuse_idle
from headway.core.question_schema import of_answer, of_question
from headway.core.schema import KINDS
from headway.serving.questions import Serve
from headway.web import permitted
from headway.web.pages import control
from headway.web.question import flags_of
from support.command import Cli, command
from support.each import for_each
from support.flag_walk import BASES, words_of
from support.followed import examples

SLOW = ("fit", "web", "mcp", "new", "plan", "sim", "train", "price", "speed")  # or they write, or serve
KEPT = str(INPUTS / "question.toml")
VERBS = sorted(hw.QUESTIONS)


class LaterServe(Serve):
    """`serve` with one more field."""

    patience = field("s", help="how long a user waits")


def test_field__of_a_question_appears_everywhere_with_no_second_line() -> None:
    question, _ = Parser(LaterServe, "").read(["llama-3.1-8b", "--on", "h200", "--patience", "3s"])
    assert question.patience == "3s" and question.command()[-2:] == ["--patience", "3s"]
    assert "--patience s" in Parser(LaterServe, "").every_flag() and "how long a user waits (such as" in Parser(LaterServe, "").every_flag()
    assert "patience" in signature(LaterServe).parameters
    assert of_question(LaterServe)["properties"]["patience"]["unit"] == "s"
    assert control(flags_of(LaterServe)["patience"])["kind"] == "number" and permitted.kind_of(flags_of(LaterServe)["patience"])


@for_each(VERBS)
def test_fields__have_a_sentence_and_a_unit_a_range_a_choice_or_a_kind(verb: str) -> None:
    question = question_of(verb)
    for name, flag in question.flags().items():
        assert flag.field.kind in ("", *KINDS) and (flag.field.help or flag.field.choices), name
        assert flag.field.kind or flag.field.choices or flag.field.is_number
    assert question.verb == verb and question.example.split()[0] == verb and question.__doc__
    assert set(question.flags()) & set(vars(Question)) == set(), "a field would hide what every question has"
    assert {*(question.probes or ()), *question.slow_with, *question.edits} <= question.flags().keys()


@for_each(VERBS)
def test_help__names_no_edit_that_is_always_refused(verb: str, cli: Cli) -> None:
    question, text = question_of(verb), cli(verb, "--help-all").text
    for flag in WHAT_IF.flags():
        assert (f"\n  {flag.word} " in text.partition("\nwhat if:")[2]) == (flag.name in question.edits), flag.word


@for_each([base for base in BASES if "INPUTS" not in base])
def test_command__asks_the_same_question(base: str) -> None:
    """Words to a record to words to a record; and by the plain reader of saved commands."""
    question, _ = parsed(words_of(base))
    again, _ = parsed(question.command())
    assert again == question == from_words(question.command())


@settings(max_examples=200, deadline=None)
@given(
    batch=st.one_of(st.integers(1, 10**6), st.lists(st.integers(1, 10**6), min_size=1, max_size=5)),
    rate=st.floats(1e-3, 1e6), strict=st.booleans(),
    edits=st.dictionaries(st.sampled_from(["chip.hbm", "chip.hbm_bw"]), st.floats(1, 1e15)),
)  # fmt: skip
def test_values__of_python_are_written_in_full(batch: Any, rate: float, strict: bool, edits: dict[str, float]) -> None:
    question = Serve.from_values({"model": "m", "on": "h200", "batch": batch, "rate": rate, "strict": strict, "set": edits or None})
    words = [int(word) for word in question.batch.split(",")]
    assert words == (batch if isinstance(batch, list) else [batch]) and float(question.rate) == rate and question.strict is strict
    assert {key: float(value) for key, _, value in (edit.partition("=") for edit in question.set)} == edits
    assert from_words(question.command()) == question


def test_call__records_stand_for_their_fields() -> None:
    question = question_of_call(question_of("plan"), ("m", "h200", hw.Load(prompt=10, output=20), hw.SLO(tpot=0.05)), {"tp": 2, "users": 3})
    assert (question.prompt, question.output, question.tpot, question.tp, question.users) == ("10", "20", "0.05", "2", "3")
    layouts = question_of_call(Serve, ("m", "h200", [hw.Layout(tp=2), hw.Layout(tp=4)]), {}).layouts
    assert [int(layout.tp) for layout in layouts] == [2, 4]
    with pytest.raises(BadValue, match="beside the Load"):
        question_of_call(question_of("plan"), ("m", "h200", hw.Load(prompt=10)), {"prompt": 3})


@pytest.mark.parametrize("verb", ["plan", "price", "speed"])
def test_choice__that_may_stand_bare(verb: str) -> None:
    """`--disaggregate` alone, before any word and after all; True and False of Python; a slip is told, not taken for a model."""
    base = ["m", "--on", "h200", "--prompt", "1k", "--output", "100"]
    ways = {"": "auto", "--disaggregate": "only", "--disaggregate never": "never", "--disaggregate=auto": "auto"}
    for words, way in ((text.split(), way) for text, way in ways.items()):
        before_a_flag = [verb, base[0], *words, *base[1:]]
        asked = (parsed([verb, *words, *base])[0], parsed([verb, *base, *words])[0], parsed(before_a_flag)[0], from_words(before_a_flag))
        assert {(question.disaggregate, question.model) for question in asked} == {(way, "m")}
        assert from_words(asked[0].command()).disaggregate == way
    values = {"model": "m", "on": "h200"}
    assert [question_of(verb).from_values(values | {"disaggregate": truth}).disaggregate for truth in (True, False)] == ["only", "never"]
    with pytest.raises(HeadwayError, match="only"):
        refuse_idle(parsed([verb, "--disaggregate", "onyl", *base])[0])
    permitted.check(question_of(verb).flags()["disaggregate"], True)
    assert control(question_of(verb).flags()["disaggregate"])["choices"] == ["auto", "only", "never"]


def test_values__that_are_none_of_a_field_are_errors() -> None:
    with pytest.raises(UnknownName, match="bacth"):
        Serve.from_values({"model": "m", "on": "h200", "bacth": 3})
    with pytest.raises(HeadwayError, match="required: model, --on"):
        Serve.from_values({})
    with pytest.raises(BadValue, match="--strict"):
        Serve.from_values({"model": "m", "on": "h200", "strict": "yes"})
    with pytest.raises(BadValue, match="one list"):
        Serve.from_values({"model": "m", "on": "h200", "batch": [[1]]})


def test_record__is_frozen_and_can_be_copied() -> None:
    question = Serve.from_values({"model": "m", "on": "h200", "batch": 4})
    with pytest.raises(AttributeError):
        question.batch = "5"  # type: ignore[misc]
    assert question.replace(batch="8").entries() == {"model": "m", "on": "h200", "batch": "8"}
    assert question.without("batch").entries() == {"model": "m", "on": "h200"}


def test_groups__the_first_of_two_fields_with_one_name_is_meant() -> None:
    cache = question_of("cache").flags()
    assert (cache["kv_bytes"].into, cache["layers"].into) == ("", "model")


# -- kept in a file -------------------------------------------------------------------------------------------------------------


def test_ask__is_the_question_of_the_file(cli: Cli) -> None:
    spoken = "serve llama-3.1-8b --on 8xh200-sxm --tp 4 --context 4k --batch 1,64"
    assert cli.rows(f"ask {KEPT}") == cli.rows(spoken)
    assert cli.rows(f"ask {KEPT} --batch 7 --tp 2") == cli.rows("serve llama-3.1-8b --on 8xh200-sxm --tp 2 --context 4k --batch 7")


def test_ask__json_and_toml_are_one_question(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "question.json"
    path.write_text(json.dumps(tomllib.loads(Path(KEPT).read_text(encoding="utf-8"))), encoding="utf-8")
    assert cli.rows(f"ask {path}") == cli.rows(f"ask {KEPT}")
    assert "--tp" in cli("ask", str(path), "--help").text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "wants a question"), ("verb = 3", "wants a question"), ("verb = 'serv'", "no verb named"),
        ("verb = 'ask'", "a verb that answers"), ("verb = 'web'", "a verb that answers"),
        ("verb = 'serve'\nmodel = 'llama-3.1-8b'\non = 'h200'\nbatch = [[1], [2]]", "--batch: got"),
        ("verb = 'serve'\nmodel = 'llama-3.1-8b'\non = 'h200'\ncontext = 2024-01-01", "--context: got"),
        ("verb = 'serve'\nbacth = 3", "no field of serve"), ("verb =", "no TOML"),
        ("verb = 'serve'\nmodel = 'llama-3.1-8b'", "required: --on"),
        ("verb = 'serve'\nmodel = 'llama-3.1-8b'\non = 'h200'\nbatch = -1", "--batch"),
        ("verb = 'serve'\nmodel = 'llama-3.1-8b'\non = 'h200'\nstrict = 'yes'", "--strict"),
    ],
)  # fmt: skip
def test_ask__a_wrong_file_is_one_line(cli: Cli, tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "question.toml"
    path.write_text(text, encoding="utf-8")
    answer = cli("ask", str(path))
    assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1) and says in answer.err, answer.err
    with pytest.raises(BadFile):
        question_file(str(tmp_path / "none.toml"))


def test_files__are_those_that_the_question_names(tmp_path: Path) -> None:
    trace, folder = tmp_path / "trace.csv", tmp_path / "own"
    trace.write_text("arrival_s,prompt,output\n0,1,1\n", encoding="utf-8")
    (folder / "chips").mkdir(parents=True)
    (folder / "chips" / "zeta_1.toml").write_text("x = 1", encoding="utf-8")
    question = question_of("sim").from_values({"model": "m", "on": "h200", "trace": trace, "catalog": folder, "prompt": f"trace:{trace}"})
    named = {Path(path).name: digest for path, digest in question.files().items()}
    assert {"trace.csv", "zeta_1.toml"} <= set(named) and all(len(digest) == 64 for digest in named.values())
    assert Serve.from_values({"model": "llama-3.1-8b", "on": "h200"}).files().keys() <= question.files().keys()


# -- schemas --------------------------------------------------------------------------------------------------------------------


@for_each(VERBS)
def test_schema__of_every_verb_is_one_and_holds_its_example(verb: str, cli: Cli) -> None:
    document = json.loads(cli("schema", verb).text)
    for part in document.values():
        Draft202012Validator.check_schema(part)
    if verb in ("ask", "web"):
        return
    question = from_words(parsed_words(verb))
    kept = {"verb": verb, **{name: list(value) if isinstance(value, tuple) else value for name, value in question.entries().items()}}
    Draft202012Validator(of_question(question_of(verb).of_words(parsed_words(verb)[1:]))).validate(kept)


def parsed_words(verb: str) -> list[str]:
    """The words of a verb's example."""
    return shlex.split(question_of(verb).example)


def quick_commands() -> list[str]:
    """A stored command of each verb that answers at once."""
    firsts: dict[str, str] = {}
    for line in commands():
        verb = line.split()[0].strip("'\"")
        is_simulated = verb == "breakeven" and "--no-check" not in line
        if verb in hw.QUESTIONS and "-o" not in line.split() and verb not in SLOW and not is_simulated:
            firsts.setdefault(verb, line)
    return list(firsts.values())


def test_schema__every_verb_s_json_is_valid() -> None:
    plan = "plan llama-3.1-8b --on h100-sxm --prompt 500 --output 50 --tp 1"
    lines = [*quick_commands(), plan, *(base for base in BASES if base[:3] == "sim")]
    assert len(lines) >= 15
    for line in lines:
        words = [str(INPUTS / word.removeprefix("inputs/")) if word.startswith("inputs/") else word for word in shlex.split(line)]
        answer = command(*words, "-o", "json")
        if answer.status == 0 and answer.out.startswith("{"):
            Draft202012Validator(of_answer(words[0])).validate(answer.json)


def test_schema__a_wrong_question_does_not_hold() -> None:
    validator = Draft202012Validator(of_question(Serve))
    right = {"verb": "serve", "model": "m", "on": "h200", "batch": [1, 2], "set": {"chip.hbm": "1TB"}, "strict": True}
    assert validator.is_valid(right)
    for wrong in ({"bacth": 3}, {"batch": True}, {"strict": "yes"}, {"verb": "plan"}, {"batch": []}):
        assert not validator.is_valid(right | wrong), wrong
    assert not validator.is_valid({"verb": "serve", "model": "m"})


def test_page__of_questions_is_true() -> None:
    test = examples("questions.md")
    assert len(test.examples) >= 5 and doctest.DocTestRunner().run(test).failed == 0
