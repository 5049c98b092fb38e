"""Several learners or alternatives on one stream, in this process, in several, or on a cluster."""
