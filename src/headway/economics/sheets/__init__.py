"""Price sheets from files: the project's own schema, and readers of what others publish."""
