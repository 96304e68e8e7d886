WITH lives AS (
    SELECT
        {host} AS client,
        coalesce(connection_name, client_product, '') AS application,
        midstream,
        start_ns,
        (end_ns - start_ns) / 1e9 AS life,
        closed_by IS NOT NULL AND NOT midstream AS ended,
        closed_by,
        channels
    FROM {connections}
),
counts AS (
    SELECT
        client,
        application,
        count(*) AS connections,
        count(*) FILTER (WHERE midstream) AS midstream,
        CASE
            WHEN count(*) > 2 AND max(start_ns) > min(start_ns)
            THEN (count(*) - 1) / ((max(start_ns) - min(start_ns)) / 60e9)
        END AS per_minute,
        percentile_approx(CASE WHEN ended THEN life END, 0.5, {accuracy}) AS p50_life_s,
        percentile_approx(CASE WHEN ended THEN life END, 0.95, {accuracy}) AS p95_life_s,
        count(*) FILTER (WHERE ended AND life < {short_ns} / 1e9) AS short,
        count(*) FILTER (WHERE closed_by IS NULL) AS left_open,
        CAST(sum(channels) AS BIGINT) AS channels,
        avg(channels) AS channels_each
    FROM lives
    GROUP BY client, application
),
found AS (
    SELECT {host} AS client, code, count
    FROM {findings}
),
said AS (
    SELECT
        client,
        sum(count) FILTER (WHERE code = 'reconnect-loop') AS reconnect_loops,
        sum(count) FILTER (WHERE code IN ('connection-churn', 'php-short-connections'))
            AS connection_churn,
        sum(count) FILTER (WHERE code IN ('channel-churn', 'spring-channel-cache'))
            AS channel_churn,
        sum(count) FILTER (WHERE code IN ('connections-leaking', 'channels-leaking')) AS leaks
    FROM found
    GROUP BY client
)
SELECT
    counts.*,
    CAST(coalesce(reconnect_loops, 0) AS BIGINT) AS reconnect_loops,
    CAST(coalesce(connection_churn, 0) AS BIGINT) AS connection_churn,
    CAST(coalesce(channel_churn, 0) AS BIGINT) AS channel_churn,
    CAST(coalesce(leaks, 0) AS BIGINT) AS leaks
FROM counts
LEFT JOIN said ON counts.client = said.client
ORDER BY connections DESC, counts.client, application
