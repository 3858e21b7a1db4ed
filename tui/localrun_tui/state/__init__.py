"""The session: the engine client, the chats and the answer under way, without a widget."""
