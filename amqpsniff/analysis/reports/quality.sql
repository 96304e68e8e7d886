WITH of_connections AS (
    SELECT
        capture,
        count(*) AS connections,
        count(*) FILTER (WHERE midstream) AS midstream,
        count(*) FILTER (WHERE client_packets = 0 OR server_packets = 0) AS one_sided,
        sum(client_packets + server_packets) AS packets,
        sum(retransmissions) AS retransmissions,
        sum(gaps) AS gaps,
        sum(lost_bytes) AS lost_bytes
    FROM {connections}
    GROUP BY capture
),
of_messages AS (
    SELECT
        capture,
        count(*) FILTER (WHERE status = 'truncated') AS truncated,
        count(*) FILTER (WHERE status = 'incomplete') AS incomplete
    FROM {messages}
    GROUP BY capture
),
of_files AS (
    SELECT
        path AS capture,
        array_join(array_sort(collect_list(kind)), '; ') AS error,
        CAST(sum(skipped_bytes) AS BIGINT) AS skipped_bytes
    FROM {errors}
    GROUP BY path
)
SELECT
    capture,
    coalesce(connections, 0) AS connections,
    coalesce(midstream, 0) AS midstream,
    coalesce(one_sided, 0) AS one_sided,
    CAST(coalesce(packets, 0) AS BIGINT) AS packets,
    CAST(coalesce(retransmissions, 0) AS BIGINT) AS retransmissions,
    CAST(coalesce(gaps, 0) AS BIGINT) AS gaps,
    CAST(coalesce(lost_bytes, 0) AS BIGINT) AS lost_bytes,
    coalesce(truncated, 0) AS truncated,
    coalesce(incomplete, 0) AS incomplete,
    error,
    skipped_bytes
FROM of_connections
FULL OUTER JOIN of_messages USING (capture)
FULL OUTER JOIN of_files USING (capture)
ORDER BY error IS NULL, lost_bytes DESC, gaps DESC, capture
