"""Reports: the page and the picture of one run, or of several overlaid."""

from fairsaoml.report.html import write_picture, write_report

__all__ = ["write_picture", "write_report"]
