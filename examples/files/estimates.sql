-- Reads the files that `gqlstream run --parquet estimates` writes. From the folder that
-- holds `estimates`:
--
--     duckdb < examples/files/estimates.sql
--
-- Lists count from 1: prevalence[1] is the first class of the configuration.

CREATE VIEW estimates AS
SELECT * FROM 'estimates/*.parquet';

-- The latest of each community: the share of the first class with its interval.
SELECT community, time, members,
       round(prevalence[1], 3) AS share, round(low[1], 3) AS low, round(high[1], 3) AS high, flags
FROM estimates
WHERE method = 'auto'
QUALIFY row_number() OVER (PARTITION BY community ORDER BY position DESC) = 1
ORDER BY community;

-- By hour, as a line for a chart.
SELECT community, time_bucket(INTERVAL '1 hour', time) AS hour,
       avg(prevalence[1]) AS share, avg(high[1] - low[1]) AS width, count(*) AS records
FROM estimates
WHERE method = 'auto'
GROUP BY ALL
ORDER BY hour, community;

-- The movements that are largest beside their standard error. What labels and coefficients
-- taught meanwhile is in revised; moved + revised is the change since the record before.
SELECT community, time, round(moved[1], 4) AS moved, round(revised[1], 4) AS revised,
       round(moved[1] / nullif(se_change[1], 0), 1) AS errors
FROM estimates
WHERE method = 'auto'
ORDER BY abs(errors) DESC NULLS LAST
LIMIT 10;

-- The difference of two communities at the end, with the error that the page and alerts give
-- it: what both records' influence has in common cancels. Where the posterior's versions
-- differ nothing does.
WITH latest AS (
    SELECT * FROM estimates
    WHERE method = 'auto' AND NOT suppressed
    QUALIFY row_number() OVER (PARTITION BY community ORDER BY position DESC) = 1
), pair AS (
    SELECT a.prevalence[1] - b.prevalence[1] AS difference, a.se[1] AS se, b.se[1] AS other,
           CASE WHEN a.posterior = b.posterior THEN list_sum([
               a.influence[i] * b.influence[i]
               FOR i IN range(1, least(len(a.influence), len(b.influence)) + 1, len(a.prevalence))
           ]) ELSE 0 END AS shared
    FROM latest a, latest b
    WHERE a.community = 'berlin' AND b.community = 'everyone'
)
SELECT round(difference, 4) AS difference,
       round(greatest(sqrt(greatest(se * se + other * other - 2 * coalesce(shared, 0), 0)),
                      abs(se - other)), 4) AS error
FROM pair;

-- What is doubtful, and why.
SELECT flag, count(*) AS records, count(DISTINCT community) AS communities
FROM (SELECT community, unnest(flags) AS flag FROM estimates)
GROUP BY flag
ORDER BY records DESC;

-- Files that are missing: each must begin one after the end of the one before.
SELECT file, first, previous + 1 AS expected
FROM (
    SELECT file,
           regexp_extract(file, 'estimates-(\d+)-(\d+)', 1)::UBIGINT AS first,
           lag(regexp_extract(file, 'estimates-(\d+)-(\d+)', 2)::UBIGINT)
               OVER (ORDER BY file) AS previous
    FROM glob('estimates/*.parquet'))
WHERE first <> previous + 1;
