"""The dashboard of `amqpsniff live`: what a terminal shows, and the keys that steer it."""
