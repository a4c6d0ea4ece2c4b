"""OpenAI Chat Completions: the protocol that most hosts of models speak, each in its own dialect (`dialects.py`)."""
