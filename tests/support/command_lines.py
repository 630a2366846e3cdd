"""Launch lines read as a shell would, and checked against the kept flags, variables and options of their engine."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field

from headway.serving.launch.launch import Flags, flags

PROGRAMS = {"vllm": ["vllm", "serve"], "sglang": ["python3", "-m", "sglang.launch_server"], "trtllm": ["trtllm-serve"]}
AROUND = ("trtllm-llmapi-launch",)  # starts its arguments on every task
ARITHMETIC = re.compile(r"\$\(\((.*?)\)\)")


@dataclass(slots=True)
class CommandLine:
    """One command: variables of its environment, its program, words without a flag, and the value of each flag ("" for a switch)."""

    variables: dict[str, str] = field(default_factory=dict)
    program: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    flags: dict[str, str] = field(default_factory=dict)

    @property
    def model(self) -> str:
        """The checkpoint that the command serves."""
        return self.flags.get("--model-path") or self.words[0]


def parsed(engine: str, line: str) -> CommandLine:
    """The command of one line; AssertionError where the program is not the engine's or a flag stands twice."""
    command, parts = CommandLine(), shlex.split(ARITHMETIC.sub(lambda match: f"$(({match[1].replace(' ', '')}))", line))
    while re.match(r"[A-Z_]+=", parts[0]):
        name, _, value = parts.pop(0).partition("=")
        command.variables[name] = value
    parts = parts[1:] if parts[0] in AROUND else parts
    size = len(PROGRAMS[engine])
    command.program, parts = parts[:size], parts[size:]
    assert command.program == PROGRAMS[engine], line
    while parts:
        part = parts.pop(0)
        if not part.startswith("--"):
            command.words.append(part)
            continue
        assert part not in command.flags, f"{part} twice in {line}"
        command.flags[part] = parts.pop(0) if parts and not parts[0].startswith("--") else ""
    return command


def options(line: str) -> dict[str, str]:
    """Keys of the options file that a `printf` line writes, nested keys with dots."""
    text = line.removeprefix("printf '").partition("' > ")[0].replace("\\n", "\n")
    keys, path = {}, []
    for row in text.splitlines():
        depth, (key, _, value) = (len(row) - len(row.lstrip())) // 2, row.strip().partition(":")
        path = [*path[:depth], key]
        if value:
            keys[".".join(path)] = value.strip()
    return keys


def faults(engine: str, line: str) -> list[str]:
    """What is not in the kept lists of the engine: a flag, variable or option, or a value that it does not take."""
    known: Flags = flags(engine)
    if line.startswith("printf "):
        pairs = [(key, value, known.keys) for key, value in options(line).items()]
    else:
        command = parsed(engine, line)
        pairs = [(key, value, known.flags) for key, value in command.flags.items()]
        pairs += [(key, value, known.variables) for key, value in command.variables.items()]
    wrong = [f"{key}: not kept" for key, _, table in pairs if key not in table]
    checked = [(key, value, table[key].values) for key, value, table in pairs if key in table]
    return wrong + [f"{key}={value}: not legal" for key, value, values in checked if values and value not in values]
