WITH counts AS (
    SELECT
        DATE '1970-01-01' + CAST((ts_ns - pmod(ts_ns, {day_ns})) / {day_ns} AS INT) AS day,
        {host} AS client,
        severity,
        code,
        title,
        count(*) AS findings,
        CAST(sum(count) AS BIGINT) AS occurrences,
        count(DISTINCT connection_id) AS connections,
        count(cause_code) AS consequences
    FROM {findings}
    GROUP BY ALL
)
SELECT *
FROM counts
ORDER BY
    CASE severity WHEN 'error' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END,
    occurrences DESC,
    code,
    day,
    client
