WITH counted AS (
    SELECT method, vhost, exchange, routing_key, queue, {host} AS client, {sent} AS sent
    FROM {messages}
    LEFT JOIN {vhosts} USING (connection_id)
)
SELECT
    vhost,
    exchange,
    routing_key,
    queue,
    client,
    count(*) FILTER (WHERE method IN {publishes}) AS published,
    CAST(coalesce(sum(sent) FILTER (WHERE method IN {publishes}), 0) AS BIGINT)
        AS published_bytes,
    count(*) FILTER (WHERE method IN {deliveries}) AS delivered,
    CAST(coalesce(sum(sent) FILTER (WHERE method IN {deliveries}), 0)
        AS BIGINT) AS delivered_bytes,
    count(*) FILTER (WHERE method = 'basic.return') AS returned,
    CAST(coalesce(sum(sent) FILTER (WHERE method = 'basic.return'), 0) AS BIGINT)
        AS returned_bytes,
    avg(sent) AS mean_bytes,
    max(sent) AS max_bytes
FROM counted
GROUP BY vhost, exchange, routing_key, queue, client
ORDER BY published + delivered DESC, vhost, exchange, routing_key, queue, client
