"""Wire-level analysis of AMQP traffic: captures in, rows of frames and messages out."""

__version__ = "0.1.0"
