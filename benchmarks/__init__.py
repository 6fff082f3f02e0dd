"""Speed, measured side by side with a peer in the same run."""
