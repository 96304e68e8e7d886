"""Meanings of messages to the framework that sent them: facts as rows, and their reader."""

from amqpsniff.packs.catalogue import COLUMNS, PackFile, Packs, load

__all__ = ["COLUMNS", "PackFile", "Packs", "load"]
