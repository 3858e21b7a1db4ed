"""Why it is as fast as it is: topics at the left, what they look like at the right, and parameters above."""
