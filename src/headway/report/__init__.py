"""Presentation of answers, for people and programs: sentences, tables, pictures and files.

Holds        output (text, Markdown, CSV, JSON, Parquet, the order of notes): rows chosen, sentence made, result (of a Python call),
             printed (the flags of every verb), words (sentences of thirty words), pictures/ (the kinds of picture, in Vega-Lite), and a
             module for each verb that has many words or pictures, in which each picture is declared: plan, serving, sim, price, cache,
             train, scale, lecture and so on; those of one layout, which many verbs draw, in layout_pictures.
Import       result.Result, output.Answer, output.Summary, output.Help, output.write, words.sentence, output.draw, pictures.frame.View,
             pictures.frame.Picture. Its modules load at first use.
May import   every package below. Its users: answers, cli, web.
Reads        no file.
"""

from __future__ import annotations

from headway.core.lazy import at_first_use

__getattr__ = at_first_use(__name__)
