"""The command line, installed as `amqpsniff.cli`: one command a module."""
