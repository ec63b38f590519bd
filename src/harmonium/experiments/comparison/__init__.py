"""Learning rules side by side on machines whose likelihood is counted."""
