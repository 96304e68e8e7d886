"""Archives: any number of captures read by many tasks, with the same rows as one reader.

A survey counts the conversations of each file (`survey`), a plan assigns them to tasks (`plan`),
and a task (`task`) runs the engine over the packets of its conversations, in time order: it reads
the files in which they occur, or packets that other tasks dealt out to it (`dealing`).
Nothing is stitched: a connection is followed by one engine from its first packet to its last,
however many files it crosses.

`batch` writes the tables of an archive to a folder, again and again as files come.

This package does not use Spark; `amqpsniff.spark_jobs` runs surveys and tasks on a cluster.
"""

from .batch import Batch, Summary
from .plan import Plan, Task, make_plan
from .surveys import Surveyed, survey
from .task import TaskRun

__all__ = ["Batch", "Plan", "Summary", "Surveyed", "Task", "TaskRun", "make_plan", "survey"]
