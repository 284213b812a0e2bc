SELECT pg_advisory_unlock_all();

SELECT
    t.oid,
    t.typelem     AS elemtype,
    t.typtype     AS kind
FROM
    pg_catalog.pg_type AS t
    INNER JOIN pg_catalog.pg_namespace AS ns ON (ns.oid = t.typnamespace)
WHERE
    t.typname = 'int4'
    AND ns.nspname = 'pg_catalog';
