"""Archives: captures without number read by many tasks, with the rows that one reader would give.

A survey counts the conversations of each file (`survey`), a plan says who reads what (`plan`), and
a task (`task`) is the engine itself over the packets of its conversations, in the order of time: it
reads the files in which they occur, or what other tasks dealt out to it (`dealing`).
Nothing is stitched: a connection is followed by one engine from its first packet to its last,
however many files it crosses.

`batch` writes the tables of an archive to a folder, again and again as files come.

Nothing here knows Spark; `amqpsniff.spark_jobs` runs surveys and tasks on a cluster.
"""

from .batch import Batch, Summary
from .plan import Plan, Task, make_plan
from .surveys import Surveyed, survey
from .task import TaskRun

__all__ = ["Batch", "Plan", "Summary", "Surveyed", "Task", "TaskRun", "make_plan", "survey"]
