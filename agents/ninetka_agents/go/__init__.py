"""What only Go brings to agents."""
