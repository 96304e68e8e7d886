# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""What later stages ask of a method."""

import cython

from amqpsniff.columns import NULL

_NULL = cython.declare(cython.longlong, NULL)


class MethodFacts:
    """What later stages ask of a method, beside its arguments as JSON.

    `starts` and `lengths` say where its texts are, by role (`plan.roles`): counted from the first
    octet of its payload, -1 where it has none. Texts stay where they are, so that no object is made
    for them; `safe_text` is what may be shown of a reply text of which not all may be, else null.
    `written` says whether the JSON was. What a method does not have is -1, `NULL` or 0.
    """

    def __init__(self):
        if not cython.compiled:
            self.starts = [-1] * 6
            self.lengths = [0] * 6
        self.written = False
        self.clear()

    def clear(self):
        """Nothing is known of any method."""
        role: cython.int
        for role in range(6):
            self.starts[role] = -1
            self.lengths[role] = 0
        self.method = -1
        self.delivery_tag = _NULL
        self.reply_code = -1
        self.flags = 0
        self.frame_max = -1
        self.about_class = -1
        self.about_method = -1
        self.version_major = -1
        self.version_minor = -1
        self.safe_text = None
        return 0

    def copy(self, facts):
        """Take what is known of another method."""
        role: cython.int
        for role in range(6):
            self.starts[role] = facts.starts[role]
            self.lengths[role] = facts.lengths[role]
        self.method = facts.method
        self.class_id = facts.class_id
        self.method_id = facts.method_id
        self.delivery_tag = facts.delivery_tag
        self.reply_code = facts.reply_code
        self.flags = facts.flags
        self.frame_max = facts.frame_max
        self.about_class = facts.about_class
        self.about_method = facts.about_method
        self.version_major = facts.version_major
        self.version_minor = facts.version_minor
        self.safe_text = facts.safe_text
        self.written = facts.written
        return 0
