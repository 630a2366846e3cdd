"""What users may rely on: the command line, JSON, one clear line for bad input, answers that stay as they were."""
