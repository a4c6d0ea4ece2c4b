"""Local validation: what would be refused, found before it is sent.

One file per subject, each a function that appends `Problem`s: `settings` (parameters against each other and the model), `tools` and
`schemas`, `turns` (messages, blocks, tool calls and their results), `media` (bytes), `marks` (prompt-cache marks); `dialect` says which
of it a wire demands, `repair` mends what can be mended. `dragoman.history` is the way in. Paths point into the Request; texts never
quote content, only names and ids.
"""
