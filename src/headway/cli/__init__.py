"""The command line: verbs, flags from the schema, and the words of an answer. No arithmetic here."""
