"""Presentation of answers, for people and programs: sentences, tables, pictures and files.

Holds        output (text, Markdown, CSV, JSON, Parquet), arrow (its table), complete (rows chosen, sentence made), result (of a Python
             call) and explanation (of a number), printed (the flags of every verb), notes (their order), words (sentences of thirty
             words), pictures/ (Vega-Lite), and words in a module for each verb that has many: plan, serving, sim, price, cache, train,
             scale, lecture (its pages), lecture_claim, lecture_card.
Import       result.Result, output.Answer, output.Summary, output.Help, output.write, words.sentence, complete.draw, pictures.frame.View,
             pictures.frame.Picture.
May import   every package below. Its users: answers, cli, web.
Reads        no file.
"""
