WITH joined AS (
    SELECT DISTINCT connection_id, channel, true AS may_confirm
    FROM {channels}
    WHERE mode IS NULL AND opened_packet_number IS NULL
)
SELECT
    exchange,
    {host} AS client,
    count(*) AS published,
    count(*) FILTER (WHERE outcome = 'confirmed') AS confirmed,
    count(*) FILTER (
        WHERE publish_number IS NULL AND outcome IS NULL AND may_confirm IS NULL
    ) AS unprotected,
    count(*) FILTER (WHERE outcome = 'rejected') AS rejected,
    count(*) FILTER (WHERE outcome = 'returned') AS returned,
    count(*) FILTER (WHERE outcome = 'unconfirmed') AS unconfirmed,
    count(*) FILTER (WHERE status = 'incomplete') AS incomplete
FROM {messages}
LEFT JOIN joined USING (connection_id, channel)
WHERE method IN {publishes}
GROUP BY ALL
ORDER BY
    rejected + returned + unconfirmed + incomplete DESC, unprotected DESC, exchange, client
