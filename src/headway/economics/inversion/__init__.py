"""A price sheet read backwards: what it implies about the model and the machine behind it, by intervals, and what it does not."""
