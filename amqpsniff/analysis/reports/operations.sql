WITH worked AS (
    SELECT
        *,
        CASE WHEN outcome IN ('acked', 'requeued', 'discarded') THEN outcome_ns / 1e6 END AS work_ms
    FROM {messages}
)
SELECT
    framework,
    operation,
    count(*) FILTER (WHERE method IN {publishes}) AS published,
    (count(*) FILTER (WHERE method IN {publishes}) - 1) * 1e9 / nullif(
        max(ts_ns) FILTER (WHERE method IN {publishes})
        - min(ts_ns) FILTER (WHERE method IN {publishes}), 0
    ) AS per_second,
    count(*) FILTER (WHERE method IN {deliveries}) AS delivered,
    count(*) FILTER (WHERE method IN {publishes} AND retry_count > 0) AS retried,
    max(retry_count) FILTER (WHERE method IN {publishes}) AS most_retries,
    count(*) FILTER (WHERE method IN {publishes} AND error_type IS NOT NULL) AS failed,
    mode(error_type) AS error_type,
    count(*) FILTER (WHERE outcome IN ('requeued', 'discarded')) AS refused,
    percentile_approx(published_ns / 1e6, 0.5, {accuracy}) AS queue_p50_ms,
    percentile_approx(published_ns / 1e6, 0.95, {accuracy}) AS queue_p95_ms,
    percentile_approx(work_ms, 0.5, {accuracy}) AS work_p50_ms,
    percentile_approx(work_ms, 0.95, {accuracy}) AS work_p95_ms
FROM worked
GROUP BY ALL
ORDER BY failed DESC, published + delivered DESC, framework, operation
