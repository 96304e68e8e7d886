"""The rules that raise findings about sessions.

A rule is a function of a `Scene`. Each module here has a table `RULES`: occasion → rules; they are
put together in `asking`, which imports all of them, for those who ask. An occasion is the name of a
method that the tracker hands to a handler (asked after the handler), or one of `scene.OCCASIONS`.
Rules keep what they need to remember in `Scene.memory`, which lives as long as the connection, or
in `Scene.everything`, which lives as long as the tracker.
"""
