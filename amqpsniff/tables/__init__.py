"""The product's tables: schemas, and Arrow batches made from the decoder's rows."""
