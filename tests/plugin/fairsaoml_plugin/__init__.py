"""A package of somebody else: it adds names to fairsaoml by entry points alone."""
