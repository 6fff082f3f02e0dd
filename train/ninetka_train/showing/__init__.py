"""What a training run looks like: its data, pictures and pages."""
