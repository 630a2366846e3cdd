"""The answers of every verb and mode, stored, and the commands that give them."""
