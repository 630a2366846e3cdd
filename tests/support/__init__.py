"""What several tests share: points to test at, small simulations, tables of measured rows made up, places on disk."""
