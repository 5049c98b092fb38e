"""The mathematics: pure JAX, no files, no clocks."""
