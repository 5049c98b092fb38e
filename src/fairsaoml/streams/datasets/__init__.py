"""Public data sets as streams, and getting them."""
