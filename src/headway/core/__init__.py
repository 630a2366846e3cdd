"""The ground floor: units, numbers that know their source, formulas that explain themselves, the catalogue, tables and errors.

Holds        units (text to SI and back), spellings (words of units), arithmetic (in values, as text), quantity (a number with its
             source), trace (numbers that record calls and operations), formula (laws, and replay of what was recorded), equation (what a
             law's source says about a call, recorded arithmetic as text), explain (the tree behind a number), mermaid (that tree as a
             diagram), files (written whole), user_file (files that users name, read through one guard), code_store (compiled code kept
             where nobody else can write), csv_text (rows of CSV), measured (ranges of measured cells), schema (fields of a record as
             flags), records (from declared data), catalog (facts from files), age (how old facts may be), table and listing (rows),
             text_table (one table that fits the terminal), filter (--where), columns (the JSON keys of all answers), interval, progress,
             notes (of one answer), errors, question (the record of a verb's question), question_schema (its JSON Schema), stems and
             search (in plain words, over everything that answers), question_files (what it depends on), law_index and law_values (a law
             by name, its arguments as text), lazy (modules that load at first use), cores (that this process may use).
Import       units.parse, units.show, quantity.known, quantity.user_input, formula.formula, trace.record, explain.explain, schema.Field,
             catalog.Catalog, question.Question, table.Table, listing.Listing, columns.Column, errors.HeadwayError and the errors beside
             it.
May import   nothing else of the project. Its users: every package.
Reads        data/search/ (search.py, stems.py), data/columns.csv (columns.py), data/ages.csv (age.py); catalog finds and parses the
             other files of data/ and of the user's folders, each read in a package above.
"""
