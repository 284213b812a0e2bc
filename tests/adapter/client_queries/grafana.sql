SELECT
  CASE WHEN
      quote_ident(table_schema) IN (
        SELECT
          CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
        FROM
          generate_series(
            array_lower(string_to_array(current_setting('search_path'),','),1),
            array_upper(string_to_array(current_setting('search_path'),','),1)
          ) as i,
          string_to_array(current_setting('search_path'),',') s
      )
      THEN quote_ident(table_name)
      ELSE quote_ident(table_schema) || '.' || quote_ident(table_name)
    END AS "table"
  FROM information_schema.tables
  WHERE quote_ident(table_schema) NOT IN ('information_schema',
                               'pg_catalog',
                               '_prometheus_catalog',
                               'prom_info',
                               'timescaledb_information')
    ORDER BY CASE WHEN
      quote_ident(table_schema) IN (
        SELECT
          CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
        FROM
          generate_series(
            array_lower(string_to_array(current_setting('search_path'),','),1),
            array_upper(string_to_array(current_setting('search_path'),','),1)
          ) as i,
          string_to_array(current_setting('search_path'),',') s
      ) THEN 0 ELSE 1 END, 1;

select quote_ident(table_name) as "table" from information_schema.tables
    where quote_ident(table_schema) not in ('information_schema',
                             'pg_catalog',
                             '_prometheus_catalog',
                             'prom_info',
                             'timescaledb_information')
      and table_type = 'BASE TABLE';

select quote_ident(column_name) as "column", data_type as "type"
    from information_schema.columns
    where
      CASE WHEN array_length(parse_ident('public.items'),1) = 2
        THEN quote_ident(table_schema) = (parse_ident('public.items'))[1]
          AND quote_ident(table_name) = (parse_ident('public.items'))[2]
        ELSE quote_ident(table_name) = 'public.items'
          AND
          quote_ident(table_schema) IN (
          SELECT
          CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
          FROM
            generate_series(
              array_lower(string_to_array(current_setting('search_path'),','),1),
              array_upper(string_to_array(current_setting('search_path'),','),1)
            ) as i,
            string_to_array(current_setting('search_path'),',') s
          )
      END;

SELECT extversion FROM pg_extension WHERE extname = 'timescaledb';

SELECT TRUE FROM pg_extension WHERE extname='timescaledb';

SELECT current_setting('server_version_num')::int/100 as version;

SELECT 'items', quote_ident(column_name) as "column", data_type FROM information_schema.columns WHERE table_schema = 'public' AND data_type LIKE '%timestamp%' ORDER BY ordinal_position;
