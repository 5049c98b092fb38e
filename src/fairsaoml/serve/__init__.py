"""Learners in services: state kept between calls, labels that arrive late, saved models."""
