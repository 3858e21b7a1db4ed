"""The explain screen: topics at the left, their reports at the right, parameters above."""
