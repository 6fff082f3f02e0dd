"""What only Go's players need."""
