"""Text for the built-in model: a grammar that writes chats, every one decided by a seed. No third-party data."""
