"""The web server: what browsers say, what they are answered, and who looks at which table."""
