-- Each message is outstanding from `ts_ns` until its outcome, or until its channel ends. These
-- changes of +1 and -1 are added up in the order of time, channel by channel; a message whose
-- outcome is not known adds nothing. What is outstanding counts in every bucket until the next change.
WITH outstanding AS (
    SELECT
        connection_id, client, channel, ts_ns, outcome, outcome_ns,
        method IN {deliveries} AS is_delivery
    FROM {messages}
    WHERE (method IN {deliveries}
            AND (outcome IS NULL OR outcome <> 'automatic'))
        OR (method IN {publishes} AND publish_number IS NOT NULL)
        OR (method = 'send' AND outcome IS NOT NULL)
),
ended AS (
    SELECT
        connection_id, client, channel, end_ns,
        lag(end_ns) OVER (PARTITION BY connection_id, client, channel ORDER BY end_ns)
            AS before_ns
    FROM {channels}
    WHERE end_ns IS NOT NULL
),
changes AS (
    SELECT
        connection_id, client, channel, is_delivery, ts_ns,
        CASE WHEN outcome IS NOT NULL THEN 1 ELSE 0 END AS change
    FROM outstanding
    UNION ALL
    SELECT connection_id, client, channel, is_delivery, ts_ns + outcome_ns, -1
    FROM outstanding
    WHERE outcome IS NOT NULL AND outcome_ns IS NOT NULL
    UNION ALL
    SELECT
        outstanding.connection_id, outstanding.client, outstanding.channel, is_delivery, end_ns, -1
    FROM outstanding
    JOIN ended
        ON outstanding.connection_id = ended.connection_id
        AND outstanding.client = ended.client
        AND outstanding.channel = ended.channel
    WHERE outcome IN ('unsettled', 'unconfirmed')
        AND ts_ns <= end_ns
        AND (before_ns IS NULL OR before_ns < ts_ns)
),
sums AS (
    SELECT
        connection_id, client, channel, ts_ns,
        sum(CASE WHEN is_delivery THEN change ELSE 0 END) OVER (
            PARTITION BY connection_id, client, channel ORDER BY ts_ns, change, is_delivery
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS unsettled,
        sum(CASE WHEN is_delivery THEN 0 ELSE change END) OVER (
            PARTITION BY connection_id, client, channel ORDER BY ts_ns, change, is_delivery
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS unconfirmed,
        change, is_delivery
    FROM changes
),
spans AS (
    SELECT
        connection_id, client, channel, ts_ns, unsettled, unconfirmed,
        ts_ns - pmod(ts_ns, {bucket_ns}) AS first_ns,
        lead(ts_ns) OVER (
            PARTITION BY connection_id, client, channel ORDER BY ts_ns, change, is_delivery
        ) AS next_ns
    FROM sums
    WHERE ts_ns IS NOT NULL
),
levels AS (
    SELECT connection_id, client, channel, unsettled, unconfirmed, ts_ns
    FROM spans
    UNION ALL
    SELECT
        connection_id, client, channel, unsettled, unconfirmed,
        explode(sequence(
            first_ns + {bucket_ns},
            least(next_ns, first_ns + CAST({most_buckets} AS BIGINT) * {bucket_ns}),
            CAST({bucket_ns} AS BIGINT)
        )) AS ts_ns
    FROM spans
    WHERE next_ns >= first_ns + {bucket_ns} AND (unsettled > 0 OR unconfirmed > 0)
),
most AS (
    SELECT
        connection_id, client, channel, {bucket} AS time,
        greatest(max(unsettled), 0) AS unsettled,
        greatest(max(unconfirmed), 0) AS unconfirmed
    FROM levels
    GROUP BY connection_id, client, channel, {bucket}
),
limits AS (
    SELECT
        connection_id,
        channel,
        max(CASE WHEN prefetch_count > 0 THEN prefetch_count END) AS prefetch,
        bool_or(delivered > 0 AND unsettled_end IS NULL) AS unsettled_unknown,
        bool_or(published > 0 AND unconfirmed_end IS NULL) AS unconfirmed_unknown
    FROM {channels}
    GROUP BY connection_id, channel
),
limited AS (
    SELECT
        time,
        {host} AS client,
        CASE WHEN unsettled_unknown AND unsettled = 0 THEN NULL ELSE unsettled END AS unsettled,
        CASE WHEN unconfirmed_unknown AND unconfirmed = 0 THEN NULL ELSE unconfirmed END
            AS unconfirmed,
        prefetch,
        prefetch IS NOT NULL AND NOT unsettled_unknown AS is_known,
        unsettled_unknown OR unconfirmed_unknown AS is_unknown
    FROM most
    LEFT JOIN limits
        ON most.connection_id = limits.connection_id AND most.channel = limits.channel
)
SELECT
    time,
    client,
    count(*) AS channels,
    count(*) FILTER (WHERE is_unknown) AS unknown_channels,
    CAST(sum(unsettled) AS BIGINT) AS unsettled,
    CAST(sum(unconfirmed) AS BIGINT) AS unconfirmed,
    CAST(sum(prefetch) AS BIGINT) AS prefetch,
    CAST(sum(CASE WHEN is_known THEN unsettled END) AS DOUBLE)
        / sum(CASE WHEN is_known THEN prefetch END) AS saturation,
    count(*) FILTER (WHERE unsettled >= {full_share} * prefetch) AS full_channels
FROM limited
GROUP BY time, client
ORDER BY time, client
