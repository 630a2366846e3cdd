"""A view as one HTML file that opens anywhere, without a server: its words, its table and its pictures, under a policy of its own; and the
script that draws them, there and in the page."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from collections.abc import Iterable
from html import escape
from importlib.metadata import version
from typing import Any

from headway.core import code_store
from headway.core.errors import MissingExtra

STYLE = """
:root { color-scheme: light dark; } body { font: 17px/1.55 Charter, Georgia, serif;
  max-width: 62rem; margin: 3rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.5rem; line-height: 1.3; } h2 { font-size: 1.1rem; margin: 1.6rem 0 .4rem; }
pre { white-space: pre-wrap; } code, pre { font: .82rem/1.5 ui-monospace, Menlo, Consolas, monospace; }
table { border-collapse: collapse; font: .82rem/1.5 system-ui, sans-serif; } td, th { padding: .2rem .7rem; text-align: right; }
tr { border-bottom: 1px solid #8884; } .wide { overflow-x: auto; }
figure { margin: 2rem 0; background: #fff; padding: .6rem 1rem; color: #222; }
figure h2 { margin-top: .2rem; } .quiet { color: #666; margin: .1rem 0 .6rem; } figcaption { margin-top: .5rem; }
@media print { .wide { overflow: visible; } }
"""
SCRIPT = """
for (const [id, spec] of Object.entries(JSON.parse(document.getElementById('pictures').textContent)))
  vegaEmbed('#' + id, spec, {mode: 'vega-lite', ast: true, actions: false, defaultStyle: false, tooltip: () => {}, renderer: 'svg'});
"""


@functools.cache
def script() -> bytes:
    """Vega, Vega-Lite and vega-embed as one script: made at the first start by vl-convert, and kept where only its user can write."""
    try:
        import vl_convert
    except ImportError:
        raise MissingExtra("headway web", "web") from None
    folder = code_store.code_folder("scripts")
    path = folder and folder / f"vega-{version('vl-convert-python')}.js"
    script = path and code_store.load(path)
    if not script:
        converter: Any = vl_convert  # its stubs leave out that the argument is optional
        script = converter.javascript_bundle().encode()
        if path:
            code_store.save(path, script)
    return script


def document(answer: dict[str, Any]) -> str:
    """The file of an answer that has its figures, table, pictures and notes."""
    pictures = answer.get("pictures", ())
    specs = {f"picture{place}": {**picture["spec"], "datasets": picture["data"]} for place, picture in enumerate(pictures)}
    data = json.dumps(specs, allow_nan=False).replace("<", "\\u003c")
    library = script().decode().replace("</script", "<\\/script")
    scripts = [library, SCRIPT] if specs else []
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in scripts)
    style = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{style}'; img-src data:; script-src {hashes or chr(39) + 'none' + chr(39)}"
    notes = [line for line in (answer.get("checked"), *answer.get("notes", ())) if line]
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<meta name="viewport" content="width=device-width"><title>{escape(answer["answer"])}</title><style>{STYLE}</style>'
        f"<h1>{escape(answer['answer'])}</h1>{''.join(map(_figure, specs, pictures))}{_advice(answer)}"
        + _under("The numbers", _table(answer.get("table")))
        + _under("What was assumed", _elements("li", notes), "ul")
        + _under("The command", escape(answer["command"]), "pre")
        + f'<script type="application/json" id="pictures">{data}</script>'
        + "".join(f"<script>{text}</script>" for text in scripts)
        + "</html>"
    )


def _under(heading: str, body: str, tag: str = "") -> str:
    """A part of the file under its heading, in a tag; nothing without a body."""
    return (f"<h2>{heading}</h2>" + (f"<{tag}>{body}</{tag}>" if tag else body)) if body else ""


def _elements(tag: str, texts: Iterable[str]) -> str:
    return "".join(f"<{tag}>{escape(text)}</{tag}>" for text in texts)


def _figure(name: str, picture: dict[str, Any]) -> str:
    """A picture with its title, its subtitle, its sentence, and its words for those who do not see it."""
    subtitle = f'<p class="quiet">{escape(picture["subtitle"])}</p>' if picture["subtitle"] else ""
    drawing = f'<div id="{name}" role="img" aria-label="{escape(picture["alt"])}"></div>'
    return f"<figure><h2>{escape(picture['title'])}</h2>{subtitle}{drawing}<figcaption>{escape(picture['caption'])}</figcaption></figure>"


def _table(table: dict[str, Any] | None) -> str:
    """The table, and the lines that the command prints below it."""
    if not table:
        return ""
    head = "".join(f'<th title="{escape(column["doc"])}">{escape(column["name"])}</th>' for column in table["columns"])
    rows = "".join(f"<tr>{_elements('td', (cell['text'] for cell in row))}</tr>" for row in table["rows"])
    body = f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>' if table["rows"] else ""
    after = _elements("pre", (line for line in table["after"] if line.strip()))
    more = f"<p>and {table['more']:,} more rows in the CSV</p>" if table["more"] > 0 and (body or after) else ""
    return f"{body}{more}{after}"


def _advice(answer: dict[str, Any]) -> str:
    """What binds, what would help, and the launch lines, under the page's headings."""
    helps = _elements("li", (f"{change['change']}: {change['effect']}" for change in answer.get("helps", ())))
    return (
        _under("What binds", escape(answer.get("binds") or ""), "p")
        + _under("What would help, the most first", helps, "ol")
        + _under("Launch", _elements("pre", answer.get("launch", ())))
    )
