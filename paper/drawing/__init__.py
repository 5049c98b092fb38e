"""Drawing of the paper's figures."""
