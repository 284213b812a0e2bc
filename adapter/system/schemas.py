"""The relations of the system schemas: which there are and what columns they have.  Data only.

Relations that Tidemark has nothing to say in (triggers, policies, publications…) exist and are empty, since clients
join with them.  Columns are those of Postgres 15 (postgres.bki, system_views.sql, information_schema.sql), in its
order; a column without a type is text.  A relation of pg_catalog begins with its oid, or with ``view``.
"""

# ruff: noqa: E501 - one relation a line is what makes this readable
from __future__ import annotations

from adapter.system.kinds import KIND_ROWS

_PG_CATALOG = """
pg_class: 1259 oid:oid relname relnamespace:oid reltype:oid reloftype:oid relowner:oid relam:oid relfilenode:oid reltablespace:oid relpages:int4 reltuples:float4 relallvisible:int4 reltoastrelid:oid relhasindex:bool relisshared:bool relpersistence relkind relnatts:int2 relchecks:int2 relhasrules:bool relhastriggers:bool relhassubclass:bool relrowsecurity:bool relforcerowsecurity:bool relispopulated:bool relreplident relispartition:bool relrewrite:oid relfrozenxid:int8 relminmxid:int8 relacl:list reloptions:list relpartbound
pg_namespace: 2615 oid:oid nspname nspowner:oid nspacl:list
pg_attribute: 1249 attrelid:oid attname atttypid:oid attstattarget:int4 attlen:int2 attnum:int2 attndims:int4 attcacheoff:int4 atttypmod:int4 attbyval:bool attalign attstorage attcompression attnotnull:bool atthasdef:bool atthasmissing:bool attidentity attgenerated attisdropped:bool attislocal:bool attinhcount:int4 attcollation:oid attacl:list attoptions:list attfdwoptions:list attmissingval
pg_attrdef: 2604 oid:oid adrelid:oid adnum:int2 adbin
pg_index: 2610 indexrelid:oid indrelid:oid indnatts:int2 indnkeyatts:int2 indisunique:bool indnullsnotdistinct:bool indisprimary:bool indisexclusion:bool indimmediate:bool indisclustered:bool indisvalid:bool indcheckxmin:bool indisready:bool indislive:bool indisreplident:bool indkey:int2vector indcollation:oidvector indclass:oidvector indoption:int2vector indexprs indpred
pg_type: 1247 oid:oid typname typnamespace:oid typowner:oid typlen:int2 typbyval:bool typtype typcategory typispreferred:bool typisdefined:bool typdelim typrelid:oid typsubscript typelem:oid typarray:oid typinput typoutput typreceive typsend typmodin typmodout typanalyze typalign typstorage typnotnull:bool typbasetype:oid typtypmod:int4 typndims:int4 typcollation:oid typdefaultbin typdefault typacl:list
pg_aggregate: 2600 aggfnoid:oid aggkind aggnumdirectargs:int2 aggtransfn aggfinalfn aggcombinefn aggserialfn aggdeserialfn aggmtransfn aggminvtransfn aggmfinalfn aggfinalextra:bool aggmfinalextra:bool aggfinalmodify aggmfinalmodify aggsortop:oid aggtranstype:oid aggtransspace:int4 aggmtranstype:oid aggmtransspace:int4 agginitval aggminitval
pg_am: 2601 oid:oid amname amhandler amtype
pg_amop: 2602 oid:oid amopfamily:oid amoplefttype:oid amoprighttype:oid amopstrategy:int2 amoppurpose amopopr:oid amopmethod:oid amopsortfamily:oid
pg_amproc: 2603 oid:oid amprocfamily:oid amproclefttype:oid amprocrighttype:oid amprocnum:int2 amproc
pg_auth_members: 1261 roleid:oid member:oid grantor:oid admin_option:bool
pg_authid: 1260 oid:oid rolname rolsuper:bool rolinherit:bool rolcreaterole:bool rolcreatedb:bool rolcanlogin:bool rolreplication:bool rolbypassrls:bool rolconnlimit:int4 rolpassword rolvaliduntil:timestamptz
pg_cast: 2605 oid:oid castsource:oid casttarget:oid castfunc:oid castcontext castmethod
pg_collation: 3456 oid:oid collname collnamespace:oid collowner:oid collprovider collisdeterministic:bool collencoding:int4 collcollate collctype colliculocale collversion
pg_constraint: 2606 oid:oid conname connamespace:oid contype condeferrable:bool condeferred:bool convalidated:bool conrelid:oid contypid:oid conindid:oid conparentid:oid confrelid:oid confupdtype confdeltype confmatchtype conislocal:bool coninhcount:int4 connoinherit:bool conkey:int2s confkey:int2s conpfeqop:oids conppeqop:oids conffeqop:oids confdelsetcols:int2s conexclop:oids conbin
pg_conversion: 2607 oid:oid conname connamespace:oid conowner:oid conforencoding:int4 contoencoding:int4 conproc condefault:bool
pg_database: 1262 oid:oid datname datdba:oid encoding:int4 datlocprovider datistemplate:bool datallowconn:bool datconnlimit:int4 datfrozenxid:int8 datminmxid:int8 dattablespace:oid datcollate datctype daticulocale datcollversion datacl:list
pg_db_role_setting: 2964 setdatabase:oid setrole:oid setconfig:list
pg_default_acl: 826 oid:oid defaclrole:oid defaclnamespace:oid defaclobjtype defaclacl:list
pg_depend: 2608 classid:oid objid:oid objsubid:int4 refclassid:oid refobjid:oid refobjsubid:int4 deptype
pg_description: 2609 objoid:oid classoid:oid objsubid:int4 description
pg_enum: 3501 oid:oid enumtypid:oid enumsortorder:float4 enumlabel
pg_event_trigger: 3466 oid:oid evtname evtevent evtowner:oid evtfoid:oid evtenabled evttags:list
pg_extension: 3079 oid:oid extname extowner:oid extnamespace:oid extrelocatable:bool extversion extconfig:oids extcondition:list
pg_foreign_data_wrapper: 2328 oid:oid fdwname fdwowner:oid fdwhandler:oid fdwvalidator:oid fdwacl:list fdwoptions:list
pg_foreign_server: 1417 oid:oid srvname srvowner:oid srvfdw:oid srvtype srvversion srvacl:list srvoptions:list
pg_foreign_table: 3118 ftrelid:oid ftserver:oid ftoptions:list
pg_inherits: 2611 inhrelid:oid inhparent:oid inhseqno:int4 inhdetachpending:bool
pg_init_privs: 3394 objoid:oid classoid:oid objsubid:int4 privtype initprivs:list
pg_language: 2612 oid:oid lanname lanowner:oid lanispl:bool lanpltrusted:bool lanplcallfoid:oid laninline:oid lanvalidator:oid lanacl:list
pg_largeobject: 2613 loid:oid pageno:int4 data:bytea
pg_largeobject_metadata: 2995 oid:oid lomowner:oid lomacl:list
pg_opclass: 2616 oid:oid opcmethod:oid opcname opcnamespace:oid opcowner:oid opcfamily:oid opcintype:oid opcdefault:bool opckeytype:oid
pg_operator: 2617 oid:oid oprname oprnamespace:oid oprowner:oid oprkind oprcanmerge:bool oprcanhash:bool oprleft:oid oprright:oid oprresult:oid oprcom:oid oprnegate:oid oprcode oprrest oprjoin
pg_opfamily: 2753 oid:oid opfmethod:oid opfname opfnamespace:oid opfowner:oid
pg_parameter_acl: 6243 oid:oid parname paracl:list
pg_partitioned_table: 3350 partrelid:oid partstrat partnatts:int2 partdefid:oid partattrs:int2vector partclass:oidvector partcollation:oidvector partexprs
pg_policy: 3256 oid:oid polname polrelid:oid polcmd polpermissive:bool polroles:oids polqual polwithcheck
pg_proc: 1255 oid:oid proname pronamespace:oid proowner:oid prolang:oid procost:float4 prorows:float4 provariadic:oid prosupport prokind prosecdef:bool proleakproof:bool proisstrict:bool proretset:bool provolatile proparallel pronargs:int2 pronargdefaults:int2 prorettype:oid proargtypes:oidvector proallargtypes:oids proargmodes:list proargnames:list proargdefaults protrftypes:oids prosrc probin prosqlbody proconfig:list proacl:list
pg_publication: 6104 oid:oid pubname pubowner:oid puballtables:bool pubinsert:bool pubupdate:bool pubdelete:bool pubtruncate:bool pubviaroot:bool
pg_publication_namespace: 6237 oid:oid pnpubid:oid pnnspid:oid
pg_publication_rel: 6106 oid:oid prpubid:oid prrelid:oid prqual prattrs:int2vector
pg_range: 3541 rngtypid:oid rngsubtype:oid rngmultitypid:oid rngcollation:oid rngsubopc:oid rngcanonical rngsubdiff
pg_replication_origin: 6000 roident:oid roname
pg_rewrite: 2618 oid:oid rulename ev_class:oid ev_type ev_enabled is_instead:bool ev_qual ev_action
pg_seclabel: 3596 objoid:oid classoid:oid objsubid:int4 provider label
pg_sequence: 2224 seqrelid:oid seqtypid:oid seqstart:int8 seqincrement:int8 seqmax:int8 seqmin:int8 seqcache:int8 seqcycle:bool
pg_shdepend: 1214 dbid:oid classid:oid objid:oid objsubid:int4 refclassid:oid refobjid:oid deptype
pg_shdescription: 2396 objoid:oid classoid:oid description
pg_shseclabel: 3592 objoid:oid classoid:oid provider label
pg_statistic: 2619 starelid:oid staattnum:int2 stainherit:bool stanullfrac:float4 stawidth:int4 stadistinct:float4 stakind1:int2 stakind2:int2 stakind3:int2 stakind4:int2 stakind5:int2 staop1:oid staop2:oid staop3:oid staop4:oid staop5:oid stacoll1:oid stacoll2:oid stacoll3:oid stacoll4:oid stacoll5:oid stanumbers1 stanumbers2 stanumbers3 stanumbers4 stanumbers5 stavalues1 stavalues2 stavalues3 stavalues4 stavalues5
pg_statistic_ext: 3381 oid:oid stxrelid:oid stxname stxnamespace:oid stxowner:oid stxstattarget:int4 stxkeys:int2vector stxkind:list stxexprs
pg_statistic_ext_data: 3429 stxoid:oid stxdinherit:bool stxdndistinct stxddependencies stxdmcv stxdexpr
pg_subscription: 6100 oid:oid subdbid:oid subskiplsn subname subowner:oid subenabled:bool subbinary:bool substream:bool subtwophasestate subdisableonerr:bool subconninfo subslotname subsynccommit subpublications:list
pg_subscription_rel: 6102 srsubid:oid srrelid:oid srsubstate srsublsn
pg_tablespace: 1213 oid:oid spcname spcowner:oid spcacl:list spcoptions:list
pg_transform: 3576 oid:oid trftype:oid trflang:oid trffromsql:oid trftosql:oid
pg_trigger: 2620 oid:oid tgrelid:oid tgparentid:oid tgname tgfoid:oid tgtype:int2 tgenabled tgisinternal:bool tgconstrrelid:oid tgconstrindid:oid tgconstraint:oid tgdeferrable:bool tginitdeferred:bool tgnargs:int2 tgattr:int2vector tgargs:bytea tgqual tgoldtable tgnewtable
pg_ts_config: 3602 oid:oid cfgname cfgnamespace:oid cfgowner:oid cfgparser:oid
pg_ts_config_map: 3603 mapcfg:oid maptokentype:int4 mapseqno:int4 mapdict:oid
pg_ts_dict: 3600 oid:oid dictname dictnamespace:oid dictowner:oid dicttemplate:oid dictinitoption
pg_ts_parser: 3601 oid:oid prsname prsnamespace:oid prsstart prstoken prsend prsheadline prslextype
pg_ts_template: 3764 oid:oid tmplname tmplnamespace:oid tmplinit tmpllexize
pg_user_mapping: 1418 oid:oid umuser:oid umserver:oid umoptions:list
pg_available_extension_versions: view name version installed:bool superuser:bool trusted:bool relocatable:bool schema requires:list comment
pg_available_extensions: view name default_version installed_version comment
pg_cursors: view name statement is_holdable:bool is_binary:bool is_scrollable:bool creation_time:timestamptz
pg_group: view groname grosysid:oid grolist:oids
pg_indexes: view schemaname tablename indexname tablespace indexdef
pg_locks: view locktype database:oid relation:oid page:int4 tuple:int2 virtualxid transactionid:int8 classid:oid objid:oid objsubid:int2 virtualtransaction pid:int4 mode granted:bool fastpath:bool waitstart:timestamptz
pg_matviews: view schemaname matviewname matviewowner tablespace hasindexes:bool ispopulated:bool definition
pg_policies: view schemaname tablename policyname permissive roles:list cmd qual with_check
pg_prepared_statements: view name statement prepare_time:timestamptz parameter_types:oids from_sql:bool generic_plans:int8 custom_plans:int8
pg_prepared_xacts: view transaction:int8 gid prepared:timestamptz owner database
pg_publication_tables: view pubname schemaname tablename attnames:list rowfilter
pg_replication_slots: view slot_name plugin slot_type datoid:oid database temporary:bool active:bool active_pid:int4 xmin:int8 catalog_xmin:int8 restart_lsn confirmed_flush_lsn wal_status safe_wal_size:int8 two_phase:bool
pg_roles: view rolname rolsuper:bool rolinherit:bool rolcreaterole:bool rolcreatedb:bool rolcanlogin:bool rolreplication:bool rolconnlimit:int4 rolpassword rolvaliduntil:timestamptz rolbypassrls:bool rolconfig:list oid:oid
pg_rules: view schemaname tablename rulename definition
pg_seclabels: view objoid:oid classoid:oid objsubid:int4 objtype objnamespace:oid objname provider label
pg_sequences: view schemaname sequencename sequenceowner data_type start_value:int8 min_value:int8 max_value:int8 increment_by:int8 cycle:bool cache_size:int8 last_value:int8
pg_settings: view name setting unit category short_desc extra_desc context vartype source min_val max_val enumvals:list boot_val reset_val sourcefile sourceline:int4 pending_restart:bool
pg_shadow: view usename usesysid:oid usecreatedb:bool usesuper:bool userepl:bool usebypassrls:bool passwd valuntil:timestamptz useconfig:list
pg_stat_activity: view datid:oid datname pid:int4 leader_pid:int4 usesysid:oid usename application_name client_addr client_hostname client_port:int4 backend_start:timestamptz xact_start:timestamptz query_start:timestamptz state_change:timestamptz wait_event_type wait_event state backend_xid:int8 backend_xmin:int8 query_id:int8 query backend_type
pg_stat_all_indexes: view relid:oid indexrelid:oid schemaname relname indexrelname idx_scan:int8 idx_tup_read:int8 idx_tup_fetch:int8
pg_stat_all_tables: view relid:oid schemaname relname seq_scan:int8 seq_tup_read:int8 idx_scan:int8 idx_tup_fetch:int8 n_tup_ins:int8 n_tup_upd:int8 n_tup_del:int8 n_tup_hot_upd:int8 n_live_tup:int8 n_dead_tup:int8 n_mod_since_analyze:int8 n_ins_since_vacuum:int8 last_vacuum:timestamptz last_autovacuum:timestamptz last_analyze:timestamptz last_autoanalyze:timestamptz vacuum_count:int8 autovacuum_count:int8 analyze_count:int8 autoanalyze_count:int8
pg_stat_bgwriter: view checkpoints_timed:int8 checkpoints_req:int8 checkpoint_write_time:float8 checkpoint_sync_time:float8 buffers_checkpoint:int8 buffers_clean:int8 maxwritten_clean:int8 buffers_backend:int8 buffers_backend_fsync:int8 buffers_alloc:int8 stats_reset:timestamptz
pg_stat_database: view datid:oid datname numbackends:int4 xact_commit:int8 xact_rollback:int8 blks_read:int8 blks_hit:int8 tup_returned:int8 tup_fetched:int8 tup_inserted:int8 tup_updated:int8 tup_deleted:int8 conflicts:int8 temp_files:int8 temp_bytes:int8 deadlocks:int8 checksum_failures:int8 checksum_last_failure:timestamptz blk_read_time:float8 blk_write_time:float8 session_time:float8 active_time:float8 idle_in_transaction_time:float8 sessions:int8 sessions_abandoned:int8 sessions_fatal:int8 sessions_killed:int8 stats_reset:timestamptz
pg_stat_replication: view pid:int4 usesysid:oid usename application_name client_addr client_hostname client_port:int4 backend_start:timestamptz backend_xmin:int8 state sent_lsn write_lsn flush_lsn replay_lsn write_lag flush_lag replay_lag sync_priority:int4 sync_state reply_time:timestamptz
pg_stat_ssl: view pid:int4 ssl:bool version cipher bits:int4 client_dn client_serial:float8 issuer_dn
pg_stat_subscription: view subid:oid subname pid:int4 relid:oid received_lsn last_msg_send_time:timestamptz last_msg_receipt_time:timestamptz latest_end_lsn latest_end_time:timestamptz
pg_stat_user_functions: view funcid:oid schemaname funcname calls:int8 total_time:float8 self_time:float8
pg_stat_user_indexes: view relid:oid indexrelid:oid schemaname relname indexrelname idx_scan:int8 idx_tup_read:int8 idx_tup_fetch:int8
pg_stat_user_tables: view relid:oid schemaname relname seq_scan:int8 seq_tup_read:int8 idx_scan:int8 idx_tup_fetch:int8 n_tup_ins:int8 n_tup_upd:int8 n_tup_del:int8 n_tup_hot_upd:int8 n_live_tup:int8 n_dead_tup:int8 n_mod_since_analyze:int8 n_ins_since_vacuum:int8 last_vacuum:timestamptz last_autovacuum:timestamptz last_analyze:timestamptz last_autoanalyze:timestamptz vacuum_count:int8 autovacuum_count:int8 analyze_count:int8 autoanalyze_count:int8
pg_statio_all_indexes: view relid:oid indexrelid:oid schemaname relname indexrelname idx_blks_read:int8 idx_blks_hit:int8
pg_statio_all_sequences: view relid:oid schemaname relname blks_read:int8 blks_hit:int8
pg_statio_all_tables: view relid:oid schemaname relname heap_blks_read:int8 heap_blks_hit:int8 idx_blks_read:int8 idx_blks_hit:int8 toast_blks_read:int8 toast_blks_hit:int8 tidx_blks_read:int8 tidx_blks_hit:int8
pg_statio_user_indexes: view relid:oid indexrelid:oid schemaname relname indexrelname idx_blks_read:int8 idx_blks_hit:int8
pg_statio_user_sequences: view relid:oid schemaname relname blks_read:int8 blks_hit:int8
pg_statio_user_tables: view relid:oid schemaname relname heap_blks_read:int8 heap_blks_hit:int8 idx_blks_read:int8 idx_blks_hit:int8 toast_blks_read:int8 toast_blks_hit:int8 tidx_blks_read:int8 tidx_blks_hit:int8
pg_stats: view schemaname tablename attname inherited:bool null_frac:float4 avg_width:int4 n_distinct:float4 most_common_vals most_common_freqs:list histogram_bounds correlation:float4 most_common_elems most_common_elem_freqs:list elem_count_histogram:list
pg_stats_ext: view schemaname tablename statistics_schemaname statistics_name statistics_owner attnames:list exprs:list kinds:list inherited:bool n_distinct dependencies most_common_vals:list most_common_val_nulls:list most_common_freqs:list most_common_base_freqs:list
pg_tables: view schemaname tablename tableowner tablespace hasindexes:bool hasrules:bool hastriggers:bool rowsecurity:bool
pg_timezone_abbrevs: view abbrev utc_offset is_dst:bool
pg_timezone_names: view name abbrev utc_offset is_dst:bool
pg_user: view usename usesysid:oid usecreatedb:bool usesuper:bool userepl:bool usebypassrls:bool passwd valuntil:timestamptz useconfig:list
pg_user_mappings: view umid:oid srvid:oid srvname umuser:oid usename umoptions:list
pg_views: view schemaname viewname viewowner definition
"""

_INFORMATION_SCHEMA = """
administrable_role_authorizations: grantee role_name is_grantable
applicable_roles: grantee role_name is_grantable
attributes: udt_catalog udt_schema udt_name attribute_name ordinal_position:int4 attribute_default is_nullable data_type character_maximum_length:int4 character_octet_length:int4 character_set_catalog character_set_schema character_set_name collation_catalog collation_schema collation_name numeric_precision:int4 numeric_precision_radix:int4 numeric_scale:int4 datetime_precision:int4 interval_type interval_precision:int4 attribute_udt_catalog attribute_udt_schema attribute_udt_name scope_catalog scope_schema scope_name maximum_cardinality:int4 dtd_identifier is_derived_reference_attribute
character_sets: character_set_catalog character_set_schema character_set_name character_repertoire form_of_use default_collate_catalog default_collate_schema default_collate_name
check_constraint_routine_usage: constraint_catalog constraint_schema constraint_name specific_catalog specific_schema specific_name
check_constraints: constraint_catalog constraint_schema constraint_name check_clause
collation_character_set_applicability: collation_catalog collation_schema collation_name character_set_catalog character_set_schema character_set_name
collations: collation_catalog collation_schema collation_name pad_attribute
column_column_usage: table_catalog table_schema table_name column_name dependent_column
column_domain_usage: domain_catalog domain_schema domain_name table_catalog table_schema table_name column_name
column_options: table_catalog table_schema table_name column_name option_name option_value
column_privileges: grantor grantee table_catalog table_schema table_name column_name privilege_type is_grantable
column_udt_usage: udt_catalog udt_schema udt_name table_catalog table_schema table_name column_name
columns: table_catalog table_schema table_name column_name ordinal_position:int4 column_default is_nullable data_type character_maximum_length:int4 character_octet_length:int4 numeric_precision:int4 numeric_precision_radix:int4 numeric_scale:int4 datetime_precision:int4 interval_type interval_precision:int4 character_set_catalog character_set_schema character_set_name collation_catalog collation_schema collation_name domain_catalog domain_schema domain_name udt_catalog udt_schema udt_name scope_catalog scope_schema scope_name maximum_cardinality:int4 dtd_identifier is_self_referencing is_identity identity_generation identity_start identity_increment identity_maximum identity_minimum identity_cycle is_generated generation_expression is_updatable
constraint_column_usage: table_catalog table_schema table_name column_name constraint_catalog constraint_schema constraint_name
constraint_table_usage: table_catalog table_schema table_name constraint_catalog constraint_schema constraint_name
data_type_privileges: object_catalog object_schema object_name object_type dtd_identifier
domain_constraints: constraint_catalog constraint_schema constraint_name domain_catalog domain_schema domain_name is_deferrable initially_deferred
domain_udt_usage: udt_catalog udt_schema udt_name domain_catalog domain_schema domain_name
domains: domain_catalog domain_schema domain_name data_type character_maximum_length:int4 character_octet_length:int4 character_set_catalog character_set_schema character_set_name collation_catalog collation_schema collation_name numeric_precision:int4 numeric_precision_radix:int4 numeric_scale:int4 datetime_precision:int4 interval_type interval_precision:int4 domain_default udt_catalog udt_schema udt_name scope_catalog scope_schema scope_name maximum_cardinality:int4 dtd_identifier
element_types: object_catalog object_schema object_name object_type collection_type_identifier data_type character_maximum_length:int4 character_octet_length:int4 character_set_catalog character_set_schema character_set_name collation_catalog collation_schema collation_name numeric_precision:int4 numeric_precision_radix:int4 numeric_scale:int4 datetime_precision:int4 interval_type interval_precision:int4 domain_default udt_catalog udt_schema udt_name scope_catalog scope_schema scope_name maximum_cardinality:int4 dtd_identifier
enabled_roles: role_name
foreign_data_wrapper_options: foreign_data_wrapper_catalog foreign_data_wrapper_name option_name option_value
foreign_data_wrappers: foreign_data_wrapper_catalog foreign_data_wrapper_name authorization_identifier library_name foreign_data_wrapper_language
foreign_server_options: foreign_server_catalog foreign_server_name option_name option_value
foreign_servers: foreign_server_catalog foreign_server_name foreign_data_wrapper_catalog foreign_data_wrapper_name foreign_server_type foreign_server_version authorization_identifier
foreign_table_options: foreign_table_catalog foreign_table_schema foreign_table_name option_name option_value
foreign_tables: foreign_table_catalog foreign_table_schema foreign_table_name foreign_server_catalog foreign_server_name
information_schema_catalog_name: catalog_name
key_column_usage: constraint_catalog constraint_schema constraint_name table_catalog table_schema table_name column_name ordinal_position:int4 position_in_unique_constraint:int4
parameters: specific_catalog specific_schema specific_name ordinal_position:int4 parameter_mode is_result as_locator parameter_name data_type character_maximum_length:int4 character_octet_length:int4 character_set_catalog character_set_schema character_set_name collation_catalog collation_schema collation_name numeric_precision:int4 numeric_precision_radix:int4 numeric_scale:int4 datetime_precision:int4 interval_type interval_precision:int4 udt_catalog udt_schema udt_name scope_catalog scope_schema scope_name maximum_cardinality:int4 dtd_identifier parameter_default
referential_constraints: constraint_catalog constraint_schema constraint_name unique_constraint_catalog unique_constraint_schema unique_constraint_name match_option update_rule delete_rule
role_column_grants: grantor grantee table_catalog table_schema table_name column_name privilege_type is_grantable
role_routine_grants: grantor grantee specific_catalog specific_schema specific_name routine_catalog routine_schema routine_name privilege_type is_grantable
role_table_grants: grantor grantee table_catalog table_schema table_name privilege_type is_grantable with_hierarchy
role_udt_grants: grantor grantee udt_catalog udt_schema udt_name privilege_type is_grantable
role_usage_grants: grantor grantee object_catalog object_schema object_name object_type privilege_type is_grantable
routine_column_usage: specific_catalog specific_schema specific_name routine_catalog routine_schema routine_name table_catalog table_schema table_name column_name
routine_privileges: grantor grantee specific_catalog specific_schema specific_name routine_catalog routine_schema routine_name privilege_type is_grantable
routine_routine_usage: specific_catalog specific_schema specific_name routine_catalog routine_schema routine_name
routine_sequence_usage: specific_catalog specific_schema specific_name routine_catalog routine_schema routine_name sequence_catalog sequence_schema sequence_name
routine_table_usage: specific_catalog specific_schema specific_name routine_catalog routine_schema routine_name table_catalog table_schema table_name
routines: specific_catalog specific_schema specific_name routine_catalog routine_schema routine_name routine_type module_catalog module_schema module_name udt_catalog udt_schema udt_name data_type character_maximum_length:int4 character_octet_length:int4 character_set_catalog character_set_schema character_set_name collation_catalog collation_schema collation_name numeric_precision:int4 numeric_precision_radix:int4 numeric_scale:int4 datetime_precision:int4 interval_type interval_precision:int4 type_udt_catalog type_udt_schema type_udt_name scope_catalog scope_schema scope_name maximum_cardinality:int4 dtd_identifier routine_body routine_definition external_name external_language parameter_style is_deterministic sql_data_access is_null_call sql_path schema_level_routine max_dynamic_result_sets:int4 is_user_defined_cast is_implicitly_invocable security_type to_sql_specific_catalog to_sql_specific_schema to_sql_specific_name as_locator created:timestamptz last_altered:timestamptz new_savepoint_level is_udt_dependent result_cast_from_data_type result_cast_as_locator result_cast_char_max_length:int4 result_cast_char_octet_length:int4 result_cast_char_set_catalog result_cast_char_set_schema result_cast_char_set_name result_cast_collation_catalog result_cast_collation_schema result_cast_collation_name result_cast_numeric_precision:int4 result_cast_numeric_precision_radix:int4 result_cast_numeric_scale:int4 result_cast_datetime_precision:int4 result_cast_interval_type result_cast_interval_precision:int4 result_cast_type_udt_catalog result_cast_type_udt_schema result_cast_type_udt_name result_cast_scope_catalog result_cast_scope_schema result_cast_scope_name result_cast_maximum_cardinality:int4 result_cast_dtd_identifier
schemata: catalog_name schema_name schema_owner default_character_set_catalog default_character_set_schema default_character_set_name sql_path
sequences: sequence_catalog sequence_schema sequence_name data_type numeric_precision:int4 numeric_precision_radix:int4 numeric_scale:int4 start_value minimum_value maximum_value increment cycle_option
table_constraints: constraint_catalog constraint_schema constraint_name table_catalog table_schema table_name constraint_type is_deferrable initially_deferred enforced nulls_distinct
table_privileges: grantor grantee table_catalog table_schema table_name privilege_type is_grantable with_hierarchy
tables: table_catalog table_schema table_name table_type self_referencing_column_name reference_generation user_defined_type_catalog user_defined_type_schema user_defined_type_name is_insertable_into is_typed commit_action
transforms: udt_catalog udt_schema udt_name specific_catalog specific_schema specific_name group_name transform_type
triggered_update_columns: trigger_catalog trigger_schema trigger_name event_object_catalog event_object_schema event_object_table event_object_column
triggers: trigger_catalog trigger_schema trigger_name event_manipulation event_object_catalog event_object_schema event_object_table action_order:int4 action_condition action_statement action_orientation action_timing action_reference_old_table action_reference_new_table action_reference_old_row action_reference_new_row created:timestamptz
udt_privileges: grantor grantee udt_catalog udt_schema udt_name privilege_type is_grantable
usage_privileges: grantor grantee object_catalog object_schema object_name object_type privilege_type is_grantable
user_defined_types: user_defined_type_catalog user_defined_type_schema user_defined_type_name user_defined_type_category is_instantiable is_final ordering_form ordering_category ordering_routine_catalog ordering_routine_schema ordering_routine_name reference_type data_type character_maximum_length:int4 character_octet_length:int4 character_set_catalog character_set_schema character_set_name collation_catalog collation_schema collation_name numeric_precision:int4 numeric_precision_radix:int4 numeric_scale:int4 datetime_precision:int4 interval_type interval_precision:int4 source_dtd_identifier ref_dtd_identifier
user_mapping_options: authorization_identifier foreign_server_catalog foreign_server_name option_name option_value
user_mappings: authorization_identifier foreign_server_catalog foreign_server_name
view_column_usage: view_catalog view_schema view_name table_catalog table_schema table_name column_name
view_routine_usage: table_catalog table_schema table_name specific_catalog specific_schema specific_name
view_table_usage: view_catalog view_schema view_name table_catalog table_schema table_name
views: table_catalog table_schema table_name view_definition check_option is_updatable is_insertable_into is_trigger_updatable is_trigger_deletable is_trigger_insertable_into
"""

_TM_CATALOG = """
databases: id name
schemas: id database_id name
clusters: id name gear
nodes: kind cluster address incarnation started:timestamptz
objects: id database_name schema_name name kind cluster_id topic definition
columns: object_id schema_name object_name position:int4 name type nullable:bool default_expression
dependencies: object_id object_name referenced_id referenced_name
indexes: id name relation_id relation_name cluster_id key_columns
sources: id name topic format envelope errors_id
settings: name value
ddl_requests: request_id catalog_ts:int8 status message
comments: object_id object_kind object_name column_name comment
ddl_audit: catalog_ts:int8 ordinal:int4 at:timestamptz role database_name tag statement request_id object_ids:list
"""
"""Beside those of one kind of object, which are :attr:`~adapter.system.kinds.kind.KindRows.columns` of it."""

_OF_KINDS = "".join(f"{name}: {columns}\n" for said in KIND_ROWS.values() for name, columns in said.columns.items())


KINDS = ("oid", "list", "oids", "int2s", "int2vector", "oidvector")
"""Kinds of columns beside the types of ``values.types``: an oid; arrays of text, oid and int2; and Postgres's two
vectors, whose text form is separated by spaces and whose subscripts begin at 0."""

HIDDEN = "tableoid"
"""What every relation of pg_catalog also has, but ``*`` does not show: the oid of the relation itself."""


_TM_INTERNAL = """
controllers: name address incarnation answers:bool error catalog_frontier:int8 catalog_lag_ms:int8 table_ts:int8 told_by told_at:timestamptz
frontiers: object_id object_name object_kind upper:int8 complete_through:int8 since:int8 last_change:int8 lag_ms:int8 told_by told_at:timestamptz
hydration: object_id object_name object_kind cluster_id hydrated:bool rows:int8 seconds:float8 percent:int8 seconds_left:float8 told_by told_at:timestamptz
source_status: id name topic status error good_rows:int8 bad_rows:int8 commits:int8 last_ts:int8 positions ends behind:int8 lag_ms:int8 told_by told_at:timestamptz
view_status: id name cluster_id status strategy gear gear_reason process_ticks:int8 spark_ticks:int8 state_values:int8 error told_by told_at:timestamptz
storage: object_id object_name object_kind rows:int8 runs:int8 carried_batches:int8 carried_bytes:int8 sealing_error told_by told_at:timestamptz
sessions: adapter session_id:int4 role database_name application_name isolation in_block:bool catalog_ts_seen:int8 told_by told_at:timestamptz
segments: object_id object_name object_kind path bytes:int8 changes:int8 rows:int8 through:int8 columns:jsonb told_by told_at:timestamptz
"""


def _read(text: str, base: int, marked: bool = False) -> tuple[dict[str, dict[str, str]], dict[str, int]]:
    """``(columns by relation, oid by relation)``; oids that Postgres does not fix are counted from ``base``."""
    found, oids = {}, {}
    for number, line in enumerate(text.strip().splitlines()):
        name, _, rest = line.partition(":")
        words = rest.split()
        mark = words.pop(0) if marked else "view"
        found[name] = {column: kind or "text" for column, _, kind in (each.partition(":") for each in words)}
        oids[name] = base + number if mark == "view" else int(mark)
    return found, oids


_FOUND = {
    "pg_catalog": _read(_PG_CATALOG, 12_000, marked=True),
    "information_schema": _read(_INFORMATION_SCHEMA, 13_100),
    "tm_catalog": _read(_TM_CATALOG + _OF_KINDS, 13_300),
    "tm_internal": _read(_TM_INTERNAL, 13_400),
}

SYSTEM: dict[str, dict[str, dict[str, str]]] = {schema: columns for schema, (columns, _) in _FOUND.items()}
"""Schema -> relation -> column -> kind: a type of ``values.types`` or one of :data:`KINDS`."""

SYSTEM_OIDS: dict[str, dict[str, int]] = {schema: oids for schema, (_, oids) in _FOUND.items()}
"""Schema -> relation -> its oid: below 16384, where the oids of a user's objects begin."""

CLASS_OIDS = SYSTEM_OIDS["pg_catalog"]
"""What ``'pg_class'::regclass`` means."""

TABLES = frozenset(line.partition(":")[0] for line in _PG_CATALOG.split("\n") if ": view " not in line)
"""The relations of pg_catalog that are tables in Postgres; every other system relation is a view."""

SCHEMA_OIDS = {"pg_catalog": 11, "information_schema": 13_000, "tm_catalog": 13_001, "tm_internal": 13_002}

RELATIONS = SYSTEM
"""What :class:`sql.objects.names.Names` needs to know."""
