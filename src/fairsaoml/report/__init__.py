"""Reports: what one run did, or several over one another, as a page and as a picture."""

from fairsaoml.report.html import write_picture, write_report

__all__ = ["write_picture", "write_report"]
