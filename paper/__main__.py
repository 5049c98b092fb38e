"""`python -m paper`: repeat the paper's evaluation, or search for settings."""

from fairsaoml.cli import run_app
from paper.commands import app

if __name__ == "__main__":
    run_app(app)
