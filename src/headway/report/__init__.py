"""Presentation of answers, for people and programs: sentences, tables, figures and files.

Holds        output (text, Markdown, CSV, JSON, Parquet), figures (Vega-Lite), and sentences and figures in a module for each verb that has
             many: serving, sim, price, cache, train, scale, lecture (its pages), lecture_claim, lecture_card.
Import       output.Answer, output.Summary, output.write, figures.save, figures.table, figures.listing, serving.grid.
May import   every package below. Its users: cli alone.
Reads        no file.
"""
