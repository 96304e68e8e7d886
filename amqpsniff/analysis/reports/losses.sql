-- A channel number is opened again and again: a publish belongs to the last opening before it.
WITH openings AS (
    SELECT
        connection_id AS of_connection,
        channel AS of_channel,
        start_ns,
        lead(start_ns) OVER (PARTITION BY connection_id, channel ORDER BY start_ns) AS next_ns,
        bool_or(mode = 'tx' OR mode IS NULL AND opened_packet_number IS NULL) AS may_be
    FROM {channels}
    GROUP BY connection_id, channel, start_ns
)
SELECT
    vhost,
    exchange,
    {host} AS client,
    count(*) AS published,
    count(*) FILTER (WHERE outcome = 'confirmed') AS confirmed,
    count(*) FILTER (
        WHERE publish_number IS NULL AND outcome IS NULL AND may_be IS NULL
    ) AS unprotected,
    count(*) FILTER (WHERE outcome = 'rejected') AS rejected,
    count(*) FILTER (WHERE outcome = 'returned') AS returned,
    count(*) FILTER (WHERE outcome = 'unconfirmed') AS unconfirmed,
    count(*) FILTER (WHERE status = 'incomplete') AS incomplete
FROM {messages}
LEFT JOIN openings
    ON may_be
    AND connection_id = of_connection
    AND channel = of_channel
    AND (start_ns IS NULL OR start_ns <= ts_ns)
    AND (next_ns IS NULL OR ts_ns < next_ns)
LEFT JOIN {vhosts} USING (connection_id)
WHERE method IN {publishes}
GROUP BY ALL
ORDER BY
    rejected + returned + unconfirmed + incomplete DESC, unprotected DESC, vhost, exchange, client
