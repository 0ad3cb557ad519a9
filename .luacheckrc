std = "luajit"
max_line_length = 100
-- An annotation stands on one line, however long.
max_comment_line_length = 140
exclude_files = { "build" }
files["spec"] = { std = "+busted" }
-- What the assertions of the mock add to busted's.
files["examples/testing/*_spec.lua"] = { std = "+busted", globals = { "assert" } }
-- Annotations of what is written in C: tables that only a language server reads.
files["lua/meta"] = { ignore = { "211", "212", "241" } }
-- This module exists to replace functions of the coroutine library.
files["lua/rocketmq/runtime/coroutine.lua"] = { globals = { "coroutine" } }
-- This one, `next` and `pairs`.
files["lua/rocketmq/runtime/traversal.lua"] = { globals = { "next", "pairs" } }
