"""Reports of training runs: data, figures and pages. Start at `run_report.py`."""
