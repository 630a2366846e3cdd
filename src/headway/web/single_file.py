"""A view as one HTML file that opens anywhere, without a server: its words, its table and its pictures, under a policy of its own."""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from typing import Any

from headway.web import bundle

STYLE = """
:root { color-scheme: light dark; } body { font: 17px/1.55 Charter, Georgia, serif;
  max-width: 62rem; margin: 3rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.5rem; line-height: 1.3; } code, pre { font: .82rem/1.5 ui-monospace, Menlo, Consolas, monospace; }
table { border-collapse: collapse; font: .82rem/1.5 system-ui, sans-serif; } td, th { padding: .2rem .7rem; text-align: right; }
tr { border-bottom: 1px solid #8884; } .wide { overflow-x: auto; } figure { margin: 2rem 0; background: #fff; padding: .6rem; color: #222; }
"""
SCRIPT = """
for (const [id, spec] of Object.entries(JSON.parse(document.getElementById('pictures').textContent)))
  vegaEmbed('#' + id, spec, {mode: 'vega-lite', ast: true, actions: false, defaultStyle: false, tooltip: () => {}, renderer: 'svg'});
"""


def document(answer: dict[str, Any]) -> str:
    """The file of an answer that has its figures, table, pictures and notes."""
    pictures = answer.get("pictures", ())
    specs = {f"picture{place}": {**picture["spec"], "datasets": picture["data"]} for place, picture in enumerate(pictures)}
    data = json.dumps(specs, allow_nan=False).replace("<", "\\u003c")
    library = bundle.script().decode().replace("</script", "<\\/script")
    scripts = [library, SCRIPT] if specs else []
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in scripts)
    style = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{style}'; img-src data:; script-src {hashes or chr(39) + 'none' + chr(39)}"
    figures = "".join(f'<figure><div id="{name}"></div></figure>' for name in specs)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>{escape(answer['answer'])}</title><style>{STYLE}</style><h1>{escape(answer['answer'])}</h1>"
        f"<pre>{escape(answer['command'])}</pre>{figures}{_table(answer.get('table'))}{_lines(answer)}"
        f'<script type="application/json" id="pictures">{data}</script>'
        + "".join(f"<script>{text}</script>" for text in scripts)
        + "</html>"
    )


def _table(table: Any) -> str:
    if not table or not table["rows"]:
        return ""
    head = "".join(f'<th title="{escape(column["doc"])}">{escape(column["name"])}</th>' for column in table["columns"])
    rows = "".join("<tr>" + "".join(f"<td>{escape(cell['text'])}</td>" for cell in row) + "</tr>" for row in table["rows"])
    return f'<div class="wide"><table><tr>{head}</tr>{rows}</table></div>'


def _lines(answer: dict[str, Any]) -> str:
    lines = [
        *([answer["binds"]] if answer.get("binds") else []),
        *(f"{change['change']}: {change['effect']}" for change in answer.get("helps", ())),
    ]
    launch = "".join(f"<pre>{escape(line)}</pre>" for line in answer.get("launch", ()))
    return (
        "".join(f"<p>{escape(line)}</p>" for line in lines) + launch + "".join(f"<p>{escape(note)}</p>" for note in answer.get("notes", ()))
    )
