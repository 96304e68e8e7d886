"""The rules that raise findings about sessions.

A rule is a function of a `RuleContext`. Each module here has a table `RULES`: event → rules;
`registry` puts them together and imports all of them, only if findings are requested. An event is
the name of a method that the tracker hands to a handler (asked after the handler), or one of
`occasions.EVENTS`. Rules keep their state in `RuleContext.memory`, which lives as long as the
connection, or in `RuleContext.shared`, which lives as long as the tracker.
"""
