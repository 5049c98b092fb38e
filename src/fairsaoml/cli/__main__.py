"""`python -m fairsaoml.cli` is the command `fairsaoml`."""

from fairsaoml.cli import main

if __name__ == "__main__":
    main()
