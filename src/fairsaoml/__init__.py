"""Online learners that stay accurate and fair while the world changes under them.

The public names are those of `__init__.pyi`. Each is imported when it is first used, so that
`import fairsaoml` and the command start fast.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = "0.1.0"
