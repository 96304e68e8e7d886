"""The dashboard of `amqpsniff live`: the screen, and the keys that control it."""
