"""Side by side with the floor of the bare products and with other packages: `python -m benchmarks`."""
