"""Presentation of answers, for people and programs: sentences, tables, figures and files.

Holds        output (text, Markdown, CSV, JSON, Parquet), notes (their order), words (sentences of thirty words), figures (Vega-Lite), and
             words and figures in a module for each verb that has many: plan, serving, sim, price, cache, train, scale, lecture (its pages),
             lecture_claim, lecture_card.
Import       output.Answer, output.Summary, output.Help, output.write, words.sentence, figures.save, figures.table, figures.listing.
May import   every package below. Its users: cli alone.
Reads        no file.
"""
