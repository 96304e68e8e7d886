WITH closes AS (
    SELECT 'connection' AS kind, client, closed_by, close_code, close_text, close_method
    FROM {connections}
    UNION ALL
    SELECT 'channel', client, closed_by, close_code, close_text, close_method
    FROM {channels}
),
counts AS (
    SELECT
        kind,
        closed_by,
        close_code AS code,
        close_method AS method,
        {host} AS client,
        count(*) AS closes,
        min(close_text) AS example_text
    FROM closes
    WHERE closed_by IS NOT NULL
    GROUP BY ALL
)
SELECT *
FROM counts
ORDER BY
    coalesce(code, 0) >= {first_error_code} DESC, closes DESC, code, client, kind, closed_by, method
