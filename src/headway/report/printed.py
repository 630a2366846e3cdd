"""How an answer is printed or drawn: the flags that every verb has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.core import schema
from headway.core.errors import BadValue, UnknownName
from headway.core.question import FlagGroup, FlagRecord, Question, field
from headway.core.schema import Field
from headway.report.output import DEPTH, FORMATS
from headway.report.pictures import file, frame

if TYPE_CHECKING:
    from headway.report.pictures.frame import View

WIDTHS = (320, 1200)  # px
THEMES = ("light", "dark")
PICTURE = ("picture", "plot_width", "plot_theme")


class Printed(FlagRecord):
    """Form, picture, rows and depth of an answer."""

    format = field(
        kind="secret", word="|".join(FORMATS), spellings=("-o", "--format"), help="how to print the answer (default text)", default="text"
    )
    plot = field(kind="output", word="FILE", help="draw it to FILE.png, FILE.svg or FILE.html")
    picture = field(kind="secret", word="NAME", default="")  # report/pictures/names.py has its help
    plot_width = field(
        kind="secret", word="PX", help=f"width of the picture in px, {WIDTHS[0]} to {WIDTHS[1]} (default 760)", rare=True, default="760"
    )
    plot_theme = field(kind="secret", word="light|dark", help="colours of the picture (default light)", rare=True, default="light")
    where = field(kind="text", word="CONDITION", help="keep the rows for which it holds, such as 'tpot_s <= 20ms and tp = 8'")
    sort = field(kind="text", word="KEY", help="order by a column; -KEY for the largest first")
    explain = field(kind="secret", word="KEY", takes="again", help="the tree of equations behind this column of the first row", default=())
    depth = field(kind="number", word="N", help="levels of that tree (default 3; all)")
    verbose = field(kind="act", help="print every note, not only the first five", default=False)

    def check(self, question: Question) -> None:
        """Raise an error for what cannot be printed, before any work is done."""
        if self.format not in (*FORMATS, *question.documents):
            raise UnknownName("output format", self.format, FORMATS, "one of " + ", ".join(FORMATS))
        if self.format == "mermaid" and not self.explain:
            raise BadValue("-o", "mermaid", "--explain KEY beside it: the diagram is of one number")
        self.levels()
        changed = [name for name in PICTURE if getattr(self, name) != Printed.__dataclass_fields__[name].default]
        if self.plot or changed:
            self.view()
        if self.plot:
            file.check_path(self.plot)
        elif changed:
            raise BadValue(schema.flag(changed[0]), getattr(self, changed[0]), "--plot FILE.png beside it: nothing is drawn")
        question.check_printed(self)

    def view(self) -> View:
        """Width and colours of the picture."""
        if self.plot_theme not in THEMES:
            raise UnknownName("theme", self.plot_theme, THEMES, "light or dark")
        width = Field(integer=True, low=WIDTHS[0], open_low=False, high=WIDTHS[1])
        return frame.View(width=int(schema.scalar(self.plot_width, width, "--plot-width")), theme=self.plot_theme)

    def levels(self) -> int | None:
        """Levels of an explanation; None for all."""
        text = self.depth
        if text is None:
            return DEPTH
        if not self.explain:
            raise BadValue("--depth", text, "--explain KEY beside it")
        if text != "all" and not (text.isdecimal() and 1 <= int(text) <= 1000):
            raise BadValue("--depth", text, "a whole number of levels from 1 on, or all")
        return None if text == "all" else int(text)

    def keys(self) -> list[str]:
        """Columns that are explained."""
        return [key.strip().replace("-", "_") for text in self.explain for key in text.split(",")]


PRINTED = FlagGroup(Printed, "output, everywhere", is_brief=True)
