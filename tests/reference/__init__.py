"""Independent models that tests and benches hold the package against."""
