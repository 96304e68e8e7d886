WITH deliveries AS (
    SELECT
        vhost, coalesce(queue, routing_key) AS queue, {host} AS client, redelivered, outcome,
        message_id
    FROM {messages}
    LEFT JOIN {vhosts} USING (connection_id)
    WHERE method IN {deliveries}
),
counts AS (
    SELECT
        vhost,
        queue,
        client,
        count(*) AS delivered,
        count(*) FILTER (WHERE redelivered) AS redelivered,
        count(*) FILTER (WHERE outcome = 'requeued') AS requeued,
        count(*) FILTER (WHERE outcome = 'discarded') AS discarded
    FROM deliveries
    GROUP BY vhost, queue, client
),
again AS (
    SELECT vhost, queue, client, message_id, count(*) AS times
    FROM deliveries
    WHERE message_id IS NOT NULL
    GROUP BY vhost, queue, client, message_id
    HAVING count(*) FILTER (WHERE redelivered) > 0
),
ranked AS (
    SELECT
        vhost, queue, client, message_id, times,
        row_number() OVER (
            PARTITION BY vhost, queue, client ORDER BY times DESC, message_id
        ) AS place
    FROM again
),
worst AS (
    SELECT
        vhost,
        queue,
        client,
        count(*) FILTER (WHERE times >= {poison_deliveries}) AS poison_messages,
        max(times) AS most_deliveries,
        max(CASE WHEN place = 1 THEN message_id END) AS worst_message_id
    FROM ranked
    GROUP BY vhost, queue, client
)
SELECT
    counts.vhost AS vhost,
    counts.queue AS queue,
    counts.client AS client,
    delivered,
    redelivered,
    requeued,
    discarded,
    redelivered / delivered AS redelivered_share,
    coalesce(poison_messages, 0) AS poison_messages,
    most_deliveries,
    worst_message_id
FROM counts
LEFT JOIN worst ON
    counts.vhost IS NOT DISTINCT FROM worst.vhost
    AND counts.queue = worst.queue AND counts.client = worst.client
WHERE redelivered + requeued + discarded > 0
ORDER BY redelivered DESC, requeued DESC, vhost, queue, client
