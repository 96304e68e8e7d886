-- What `analysis/topology.py` makes the graph of: frames that declare, bind and consume (also by
-- requests to RabbitMQ's management), and messages counted by where they went.
SELECT
    packet_number,
    stream_offset,
    connection_id,
    client,
    sender,
    channel,
    method,
    arguments,
    response_packet_number,
    reply_code,
    exchange,
    routing_key,
    queue,
    CAST(NULL AS BIGINT) AS messages,
    CAST(NULL AS BIGINT) AS bytes,
    CAST(NULL AS BIGINT) AS sized
FROM {frames}
WHERE
    method IN {routing_methods}
    OR (
        method = '{transfer}'
        AND (response_packet_number IS NOT NULL OR reply_code IS NOT NULL)
    )
UNION ALL
SELECT
    NULL,
    NULL,
    connection_id,
    client,
    NULL,
    NULL,
    method,
    NULL,
    NULL,
    NULL,
    exchange,
    routing_key,
    queue,
    count(*),
    CAST(sum({sent}) AS BIGINT),
    count({sent})
FROM {messages}
WHERE method IN {publishes} OR method IN {deliveries}
GROUP BY connection_id, client, method, exchange, routing_key, queue
