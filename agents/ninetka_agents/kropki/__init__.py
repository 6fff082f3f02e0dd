"""What only Kropki's players need."""
