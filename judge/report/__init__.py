"""One HTML file that tells what happened."""
