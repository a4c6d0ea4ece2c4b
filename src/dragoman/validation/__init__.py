"""Local validation: what would be refused, found before it is sent.

One file per subject, each a function that appends `Problem`s: `settings` (parameters against each other and the model), `tools`,
`turns` (messages, blocks, tool calls and their results), `media` (bytes), `marks` (prompt-cache marks). `dragoman.history.problems` runs
them all. Paths point into the Request; texts never quote content, only names and ids.
"""
