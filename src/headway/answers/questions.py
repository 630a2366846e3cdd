"""Questions about questions: `find` what answers, `ask` one that is kept in a file, `schema` of a verb's questions and answers."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

from headway import ACTS
from headway.core import user_file
from headway.core.errors import BadFile, UnknownName, clip
from headway.core.question import Question, field, question_of

WANTS = 'a question: verb = "serve", then its fields, such as model = "llama-3.1-8b"; headway schema VERB lists them'


class Find(Question):
    """What answers a question in plain words: laws, claims, verbs, models, chips, worked problems and pages, each with a command."""

    verb, answered_by = "find", "headway.answers.find"
    example = 'find "critical batch size"'
    refresh = "at once"
    subjects = ("words",)
    edits = ()
    words = field(kind="text", word="WORDS", place="+", help="what you look for, in your own words")
    most = field(word="N", integer=True, low=1, high=50, open_low=False, help="answers at most", default="5")


class Ask(Question):
    """A question kept in a file, any of its values replaced by a flag."""

    verb = "ask"
    example = "ask question.toml --batch 1..64*2"
    no_page = "it opens a file of yours; type the question in it, such as plan MODEL --on MACHINE"
    subjects = ("file",)
    edits = ()
    file_values: ClassVar[Mapping[str, Any]] = {}
    target: ClassVar[type[Question]] = Question
    file = field(kind="file", word="FILE.toml|FILE.json", place="1", help="a file that says verb and fields of a question")

    @classmethod
    def of_words(cls, words: Sequence[str]) -> type[Question]:
        """The question about what the file holds, with the flags of its verb."""
        path = next((word for word in words if not word.startswith("-")), "")
        return cls if not path else _about(path)

    def meant(self) -> Question:
        """The question of the file, with the values that were given beside it."""
        values = {name: value for name, value in self.entries().items() if name != "file"}
        return self.target.from_values({**self.file_values, **values})


def _about(path: str) -> type[Question]:
    file_values = dict(question_file(path))
    verb = file_values.pop("verb")
    target = question_of(verb).of_words([str(file_values["of"])] if "of" in file_values else [])
    unknown = [name for name in file_values if name not in target.flags()]
    if unknown:
        raise UnknownName(f"field of {verb} in {Path(path).name}", unknown[0], target.flags())
    cls = _asking(target)
    return type(cls.__name__, (cls,), {"__annotations__": {}, "file_values": file_values})


@functools.cache
def _asking(target: type[Question]) -> type[Ask]:
    """The class of questions kept in files about one verb: none of its fields must be given beside the file."""
    flags = {name: flag for name, flag in target.flags().items() if not flag.group}
    kinds = {"file": Ask.__annotations__["file"]}
    kinds |= {
        name: Annotated[Any, replace(flag.field, place="?" if flag.field.place == "1" else flag.field.place.replace("+", "*"))]
        for name, flag in flags.items()
        if name != "where"
    }
    usual = {name: None if flag.default is MISSING else flag.default for name, flag in flags.items()}
    of_target = {"groups": target.groups, "edits": target.edits, "target": target}
    return type(f"Ask{target.__name__}", (Ask,), {"__annotations__": kinds, **usual, **of_target})


def question_file(path: str) -> Mapping[str, Any]:
    """What a file of a question holds; BadFile for anything else."""
    text = user_file.text_of(path, user_file.QUESTION)
    if Path(path).suffix.lower() == ".json":
        values = user_file.json_of(text, path, user_file.QUESTION)
    else:
        try:
            values = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise BadFile(path, f"is no TOML ({error}); wants {WANTS}") from None
    if not isinstance(values, dict) or not isinstance(values.get("verb"), str):
        raise BadFile(path, f"wants {WANTS}")
    if values["verb"] in ACTS:
        raise BadFile(path, f"verb is {clip(values['verb'])}; wants a verb that answers")  # a file that somebody sent acts on nothing
    return values


class SchemaOf(Question):
    """JSON Schema of a verb's questions and answers."""

    verb, answered_by = "schema", "headway.answers.schema"
    example = "schema serve"
    no_page = "it describes questions to programs; `headway schema VERB` prints it"
    subjects = ("of",)
    edits = ()
    of = field(kind="word", word="VERB", place="1", help="any verb of `headway --help`")
