"""What thinks: agents and analyses, on threads, once their code is compiled."""
