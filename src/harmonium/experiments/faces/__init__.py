"""Color faces from a deep belief network."""
