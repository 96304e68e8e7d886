"""The decoder of AMQP 1.0: a second framer, with values, performatives and deliveries."""
