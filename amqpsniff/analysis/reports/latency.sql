WITH answered AS (
    SELECT
        CASE
            WHEN method IN {publishes} AND outcome IN ('confirmed', 'rejected') THEN 'confirm'
            WHEN outcome IN ('acked', 'requeued', 'discarded') THEN 'settle'
        END AS kind,
        vhost,
        {host} AS client,
        exchange,
        {bucket} AS time,
        outcome_ns / 1e6 AS ms
    FROM {messages}
    LEFT JOIN {vhosts} USING (connection_id)
    WHERE outcome_ns IS NOT NULL
)
SELECT
    kind,
    client,
    vhost,
    exchange,
    time,
    count(*) AS messages,
    percentile_approx(ms, 0.5, {accuracy}) AS p50_ms,
    percentile_approx(ms, 0.9, {accuracy}) AS p90_ms,
    percentile_approx(ms, 0.95, {accuracy}) AS p95_ms,
    percentile_approx(ms, 0.99, {accuracy}) AS p99_ms,
    max(ms) AS max_ms
FROM answered
WHERE kind IS NOT NULL
GROUP BY kind, client, vhost, exchange, time
ORDER BY kind, p99_ms DESC, client, vhost, exchange, time
