WITH protected AS (
    SELECT DISTINCT connection_id, channel, true AS may_be
    FROM {channels}
    WHERE mode = 'tx' OR mode IS NULL AND opened_packet_number IS NULL
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
LEFT JOIN protected USING (connection_id, channel)
LEFT JOIN {vhosts} USING (connection_id)
WHERE method IN {publishes}
GROUP BY ALL
ORDER BY
    rejected + returned + unconfirmed + incomplete DESC, unprotected DESC, vhost, exchange, client
