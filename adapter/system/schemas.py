"""The relations of the system schemas: which there are and what columns they have.  Data only.

Relations that Tidemark has nothing to say in (triggers, policies, publications…) exist and are empty, since clients
join with them.  Columns are those of Postgres 15 (postgres.bki, system_views.sql, information_schema.sql), in its
order; a column without a type is text, others have Postgres's types (of domains, what they are of).  A relation of pg_catalog begins with its oid, or with ``view``.
"""

# ruff: noqa: E501 - one relation a line is what makes this readable
from __future__ import annotations

from adapter.system.kinds import KIND_ROWS

_PG_CATALOG = """
pg_class: 1259 oid:oid relname:name relnamespace:oid reltype:oid reloftype:oid relowner:oid relam:oid relfilenode:oid reltablespace:oid relpages:int4 reltuples:float4 relallvisible:int4 reltoastrelid:oid relhasindex:bool relisshared:bool relpersistence:char relkind:char relnatts:int2 relchecks:int2 relhasrules:bool relhastriggers:bool relhassubclass:bool relrowsecurity:bool relforcerowsecurity:bool relispopulated:bool relreplident:char relispartition:bool relrewrite:oid relfrozenxid:xid relminmxid:xid relacl:_aclitem reloptions:_text relpartbound:pg_node_tree
pg_namespace: 2615 oid:oid nspname:name nspowner:oid nspacl:_aclitem
pg_attribute: 1249 attrelid:oid attname:name atttypid:oid attstattarget:int4 attlen:int2 attnum:int2 attndims:int4 attcacheoff:int4 atttypmod:int4 attbyval:bool attalign:char attstorage:char attcompression:char attnotnull:bool atthasdef:bool atthasmissing:bool attidentity:char attgenerated:char attisdropped:bool attislocal:bool attinhcount:int4 attcollation:oid attacl:_aclitem attoptions:_text attfdwoptions:_text attmissingval:anyarray
pg_attrdef: 2604 oid:oid adrelid:oid adnum:int2 adbin:pg_node_tree
pg_index: 2610 indexrelid:oid indrelid:oid indnatts:int2 indnkeyatts:int2 indisunique:bool indnullsnotdistinct:bool indisprimary:bool indisexclusion:bool indimmediate:bool indisclustered:bool indisvalid:bool indcheckxmin:bool indisready:bool indislive:bool indisreplident:bool indkey:int2vector indcollation:oidvector indclass:oidvector indoption:int2vector indexprs:pg_node_tree indpred:pg_node_tree
pg_type: 1247 oid:oid typname:name typnamespace:oid typowner:oid typlen:int2 typbyval:bool typtype:char typcategory:char typispreferred:bool typisdefined:bool typdelim:char typrelid:oid typsubscript:regproc typelem:oid typarray:oid typinput:regproc typoutput:regproc typreceive:regproc typsend:regproc typmodin:regproc typmodout:regproc typanalyze:regproc typalign:char typstorage:char typnotnull:bool typbasetype:oid typtypmod:int4 typndims:int4 typcollation:oid typdefaultbin:pg_node_tree typdefault typacl:_aclitem
pg_aggregate: 2600 aggfnoid:regproc aggkind:char aggnumdirectargs:int2 aggtransfn:regproc aggfinalfn:regproc aggcombinefn:regproc aggserialfn:regproc aggdeserialfn:regproc aggmtransfn:regproc aggminvtransfn:regproc aggmfinalfn:regproc aggfinalextra:bool aggmfinalextra:bool aggfinalmodify:char aggmfinalmodify:char aggsortop:oid aggtranstype:oid aggtransspace:int4 aggmtranstype:oid aggmtransspace:int4 agginitval aggminitval
pg_am: 2601 oid:oid amname:name amhandler:regproc amtype:char
pg_amop: 2602 oid:oid amopfamily:oid amoplefttype:oid amoprighttype:oid amopstrategy:int2 amoppurpose:char amopopr:oid amopmethod:oid amopsortfamily:oid
pg_amproc: 2603 oid:oid amprocfamily:oid amproclefttype:oid amprocrighttype:oid amprocnum:int2 amproc:regproc
pg_auth_members: 1261 roleid:oid member:oid grantor:oid admin_option:bool
pg_authid: 1260 oid:oid rolname:name rolsuper:bool rolinherit:bool rolcreaterole:bool rolcreatedb:bool rolcanlogin:bool rolreplication:bool rolbypassrls:bool rolconnlimit:int4 rolpassword rolvaliduntil:timestamptz
pg_cast: 2605 oid:oid castsource:oid casttarget:oid castfunc:oid castcontext:char castmethod:char
pg_collation: 3456 oid:oid collname:name collnamespace:oid collowner:oid collprovider:char collisdeterministic:bool collencoding:int4 collcollate collctype colliculocale collversion
pg_constraint: 2606 oid:oid conname:name connamespace:oid contype:char condeferrable:bool condeferred:bool convalidated:bool conrelid:oid contypid:oid conindid:oid conparentid:oid confrelid:oid confupdtype:char confdeltype:char confmatchtype:char conislocal:bool coninhcount:int4 connoinherit:bool conkey:_int2 confkey:_int2 conpfeqop:_oid conppeqop:_oid conffeqop:_oid confdelsetcols:_int2 conexclop:_oid conbin:pg_node_tree
pg_conversion: 2607 oid:oid conname:name connamespace:oid conowner:oid conforencoding:int4 contoencoding:int4 conproc:regproc condefault:bool
pg_database: 1262 oid:oid datname:name datdba:oid encoding:int4 datlocprovider:char datistemplate:bool datallowconn:bool datconnlimit:int4 datfrozenxid:xid datminmxid:xid dattablespace:oid datcollate datctype daticulocale datcollversion datacl:_aclitem
pg_db_role_setting: 2964 setdatabase:oid setrole:oid setconfig:_text
pg_default_acl: 826 oid:oid defaclrole:oid defaclnamespace:oid defaclobjtype:char defaclacl:_aclitem
pg_depend: 2608 classid:oid objid:oid objsubid:int4 refclassid:oid refobjid:oid refobjsubid:int4 deptype:char
pg_description: 2609 objoid:oid classoid:oid objsubid:int4 description
pg_enum: 3501 oid:oid enumtypid:oid enumsortorder:float4 enumlabel:name
pg_event_trigger: 3466 oid:oid evtname:name evtevent:name evtowner:oid evtfoid:oid evtenabled:char evttags:_text
pg_extension: 3079 oid:oid extname:name extowner:oid extnamespace:oid extrelocatable:bool extversion extconfig:_oid extcondition:_text
pg_foreign_data_wrapper: 2328 oid:oid fdwname:name fdwowner:oid fdwhandler:oid fdwvalidator:oid fdwacl:_aclitem fdwoptions:_text
pg_foreign_server: 1417 oid:oid srvname:name srvowner:oid srvfdw:oid srvtype srvversion srvacl:_aclitem srvoptions:_text
pg_foreign_table: 3118 ftrelid:oid ftserver:oid ftoptions:_text
pg_inherits: 2611 inhrelid:oid inhparent:oid inhseqno:int4 inhdetachpending:bool
pg_init_privs: 3394 objoid:oid classoid:oid objsubid:int4 privtype:char initprivs:_aclitem
pg_language: 2612 oid:oid lanname:name lanowner:oid lanispl:bool lanpltrusted:bool lanplcallfoid:oid laninline:oid lanvalidator:oid lanacl:_aclitem
pg_largeobject: 2613 loid:oid pageno:int4 data:bytea
pg_largeobject_metadata: 2995 oid:oid lomowner:oid lomacl:_aclitem
pg_opclass: 2616 oid:oid opcmethod:oid opcname:name opcnamespace:oid opcowner:oid opcfamily:oid opcintype:oid opcdefault:bool opckeytype:oid
pg_operator: 2617 oid:oid oprname:name oprnamespace:oid oprowner:oid oprkind:char oprcanmerge:bool oprcanhash:bool oprleft:oid oprright:oid oprresult:oid oprcom:oid oprnegate:oid oprcode:regproc oprrest:regproc oprjoin:regproc
pg_opfamily: 2753 oid:oid opfmethod:oid opfname:name opfnamespace:oid opfowner:oid
pg_parameter_acl: 6243 oid:oid parname paracl:_aclitem
pg_partitioned_table: 3350 partrelid:oid partstrat:char partnatts:int2 partdefid:oid partattrs:int2vector partclass:oidvector partcollation:oidvector partexprs:pg_node_tree
pg_policy: 3256 oid:oid polname:name polrelid:oid polcmd:char polpermissive:bool polroles:_oid polqual:pg_node_tree polwithcheck:pg_node_tree
pg_proc: 1255 oid:oid proname:name pronamespace:oid proowner:oid prolang:oid procost:float4 prorows:float4 provariadic:oid prosupport:regproc prokind:char prosecdef:bool proleakproof:bool proisstrict:bool proretset:bool provolatile:char proparallel:char pronargs:int2 pronargdefaults:int2 prorettype:oid proargtypes:oidvector proallargtypes:_oid proargmodes:_char proargnames:_text proargdefaults:pg_node_tree protrftypes:_oid prosrc probin prosqlbody:pg_node_tree proconfig:_text proacl:_aclitem
pg_publication: 6104 oid:oid pubname:name pubowner:oid puballtables:bool pubinsert:bool pubupdate:bool pubdelete:bool pubtruncate:bool pubviaroot:bool
pg_publication_namespace: 6237 oid:oid pnpubid:oid pnnspid:oid
pg_publication_rel: 6106 oid:oid prpubid:oid prrelid:oid prqual:pg_node_tree prattrs:int2vector
pg_range: 3541 rngtypid:oid rngsubtype:oid rngmultitypid:oid rngcollation:oid rngsubopc:oid rngcanonical:regproc rngsubdiff:regproc
pg_replication_origin: 6000 roident:oid roname
pg_rewrite: 2618 oid:oid rulename:name ev_class:oid ev_type:char ev_enabled:char is_instead:bool ev_qual:pg_node_tree ev_action:pg_node_tree
pg_seclabel: 3596 objoid:oid classoid:oid objsubid:int4 provider label
pg_sequence: 2224 seqrelid:oid seqtypid:oid seqstart:int8 seqincrement:int8 seqmax:int8 seqmin:int8 seqcache:int8 seqcycle:bool
pg_shdepend: 1214 dbid:oid classid:oid objid:oid objsubid:int4 refclassid:oid refobjid:oid deptype:char
pg_shdescription: 2396 objoid:oid classoid:oid description
pg_shseclabel: 3592 objoid:oid classoid:oid provider label
pg_statistic: 2619 starelid:oid staattnum:int2 stainherit:bool stanullfrac:float4 stawidth:int4 stadistinct:float4 stakind1:int2 stakind2:int2 stakind3:int2 stakind4:int2 stakind5:int2 staop1:oid staop2:oid staop3:oid staop4:oid staop5:oid stacoll1:oid stacoll2:oid stacoll3:oid stacoll4:oid stacoll5:oid stanumbers1:_float4 stanumbers2:_float4 stanumbers3:_float4 stanumbers4:_float4 stanumbers5:_float4 stavalues1:anyarray stavalues2:anyarray stavalues3:anyarray stavalues4:anyarray stavalues5:anyarray
pg_statistic_ext: 3381 oid:oid stxrelid:oid stxname:name stxnamespace:oid stxowner:oid stxstattarget:int4 stxkeys:int2vector stxkind:_char stxexprs:pg_node_tree
pg_statistic_ext_data: 3429 stxoid:oid stxdinherit:bool stxdndistinct:pg_ndistinct stxddependencies:pg_dependencies stxdmcv:pg_mcv_list stxdexpr
pg_subscription: 6100 oid:oid subdbid:oid subskiplsn:pg_lsn subname:name subowner:oid subenabled:bool subbinary:bool substream:bool subtwophasestate:char subdisableonerr:bool subconninfo subslotname:name subsynccommit subpublications:_text
pg_subscription_rel: 6102 srsubid:oid srrelid:oid srsubstate:char srsublsn:pg_lsn
pg_tablespace: 1213 oid:oid spcname:name spcowner:oid spcacl:_aclitem spcoptions:_text
pg_transform: 3576 oid:oid trftype:oid trflang:oid trffromsql:regproc trftosql:regproc
pg_trigger: 2620 oid:oid tgrelid:oid tgparentid:oid tgname:name tgfoid:oid tgtype:int2 tgenabled:char tgisinternal:bool tgconstrrelid:oid tgconstrindid:oid tgconstraint:oid tgdeferrable:bool tginitdeferred:bool tgnargs:int2 tgattr:int2vector tgargs:bytea tgqual:pg_node_tree tgoldtable:name tgnewtable:name
pg_ts_config: 3602 oid:oid cfgname:name cfgnamespace:oid cfgowner:oid cfgparser:oid
pg_ts_config_map: 3603 mapcfg:oid maptokentype:int4 mapseqno:int4 mapdict:oid
pg_ts_dict: 3600 oid:oid dictname:name dictnamespace:oid dictowner:oid dicttemplate:oid dictinitoption
pg_ts_parser: 3601 oid:oid prsname:name prsnamespace:oid prsstart:regproc prstoken:regproc prsend:regproc prsheadline:regproc prslextype:regproc
pg_ts_template: 3764 oid:oid tmplname:name tmplnamespace:oid tmplinit:regproc tmpllexize:regproc
pg_user_mapping: 1418 oid:oid umuser:oid umserver:oid umoptions:_text
pg_available_extension_versions: view name:name version installed:bool superuser:bool trusted:bool relocatable:bool schema:name requires:_name comment
pg_available_extensions: view name:name default_version installed_version comment
pg_cursors: view name statement is_holdable:bool is_binary:bool is_scrollable:bool creation_time:timestamptz
pg_group: view groname:name grosysid:oid grolist:_oid
pg_indexes: view schemaname:name tablename:name indexname:name tablespace:name indexdef
pg_locks: view locktype database:oid relation:oid page:int4 tuple:int2 virtualxid transactionid:xid classid:oid objid:oid objsubid:int2 virtualtransaction pid:int4 mode granted:bool fastpath:bool waitstart:timestamptz
pg_matviews: view schemaname:name matviewname:name matviewowner:name tablespace:name hasindexes:bool ispopulated:bool definition
pg_policies: view schemaname:name tablename:name policyname:name permissive roles:_name cmd qual with_check
pg_prepared_statements: view name statement prepare_time:timestamptz parameter_types:_oid from_sql:bool generic_plans:int8 custom_plans:int8
pg_prepared_xacts: view transaction:xid gid prepared:timestamptz owner:name database:name
pg_publication_tables: view pubname:name schemaname:name tablename:name attnames:_name rowfilter
pg_replication_slots: view slot_name:name plugin:name slot_type datoid:oid database:name temporary:bool active:bool active_pid:int4 xmin:xid catalog_xmin:xid restart_lsn:pg_lsn confirmed_flush_lsn:pg_lsn wal_status safe_wal_size:int8 two_phase:bool
pg_roles: view rolname:name rolsuper:bool rolinherit:bool rolcreaterole:bool rolcreatedb:bool rolcanlogin:bool rolreplication:bool rolconnlimit:int4 rolpassword rolvaliduntil:timestamptz rolbypassrls:bool rolconfig:_text oid:oid
pg_rules: view schemaname:name tablename:name rulename:name definition
pg_seclabels: view objoid:oid classoid:oid objsubid:int4 objtype objnamespace:oid objname provider label
pg_sequences: view schemaname:name sequencename:name sequenceowner:name data_type start_value:int8 min_value:int8 max_value:int8 increment_by:int8 cycle:bool cache_size:int8 last_value:int8
pg_settings: view name setting unit category short_desc extra_desc context vartype source min_val max_val enumvals:_text boot_val reset_val sourcefile sourceline:int4 pending_restart:bool
pg_shadow: view usename:name usesysid:oid usecreatedb:bool usesuper:bool userepl:bool usebypassrls:bool passwd valuntil:timestamptz useconfig:_text
pg_stat_activity: view datid:oid datname:name pid:int4 leader_pid:int4 usesysid:oid usename:name application_name client_addr:inet client_hostname client_port:int4 backend_start:timestamptz xact_start:timestamptz query_start:timestamptz state_change:timestamptz wait_event_type wait_event state backend_xid:xid backend_xmin:xid query_id:int8 query backend_type
pg_stat_all_indexes: view relid:oid indexrelid:oid schemaname:name relname:name indexrelname:name idx_scan:int8 idx_tup_read:int8 idx_tup_fetch:int8
pg_stat_all_tables: view relid:oid schemaname:name relname:name seq_scan:int8 seq_tup_read:int8 idx_scan:int8 idx_tup_fetch:int8 n_tup_ins:int8 n_tup_upd:int8 n_tup_del:int8 n_tup_hot_upd:int8 n_live_tup:int8 n_dead_tup:int8 n_mod_since_analyze:int8 n_ins_since_vacuum:int8 last_vacuum:timestamptz last_autovacuum:timestamptz last_analyze:timestamptz last_autoanalyze:timestamptz vacuum_count:int8 autovacuum_count:int8 analyze_count:int8 autoanalyze_count:int8
pg_stat_bgwriter: view checkpoints_timed:int8 checkpoints_req:int8 checkpoint_write_time:float8 checkpoint_sync_time:float8 buffers_checkpoint:int8 buffers_clean:int8 maxwritten_clean:int8 buffers_backend:int8 buffers_backend_fsync:int8 buffers_alloc:int8 stats_reset:timestamptz
pg_stat_database: view datid:oid datname:name numbackends:int4 xact_commit:int8 xact_rollback:int8 blks_read:int8 blks_hit:int8 tup_returned:int8 tup_fetched:int8 tup_inserted:int8 tup_updated:int8 tup_deleted:int8 conflicts:int8 temp_files:int8 temp_bytes:int8 deadlocks:int8 checksum_failures:int8 checksum_last_failure:timestamptz blk_read_time:float8 blk_write_time:float8 session_time:float8 active_time:float8 idle_in_transaction_time:float8 sessions:int8 sessions_abandoned:int8 sessions_fatal:int8 sessions_killed:int8 stats_reset:timestamptz
pg_stat_progress_copy: view pid:int4 datid:oid datname:name relid:oid command type bytes_processed:int8 bytes_total:int8 tuples_processed:int8 tuples_excluded:int8
pg_stat_replication: view pid:int4 usesysid:oid usename:name application_name client_addr:inet client_hostname client_port:int4 backend_start:timestamptz backend_xmin:xid state sent_lsn:pg_lsn write_lsn:pg_lsn flush_lsn:pg_lsn replay_lsn:pg_lsn write_lag flush_lag replay_lag sync_priority:int4 sync_state reply_time:timestamptz
pg_stat_ssl: view pid:int4 ssl:bool version cipher bits:int4 client_dn client_serial:numeric issuer_dn
pg_stat_subscription: view subid:oid subname:name pid:int4 relid:oid received_lsn:pg_lsn last_msg_send_time:timestamptz last_msg_receipt_time:timestamptz latest_end_lsn:pg_lsn latest_end_time:timestamptz
pg_stat_user_functions: view funcid:oid schemaname:name funcname:name calls:int8 total_time:float8 self_time:float8
pg_stat_user_indexes: view relid:oid indexrelid:oid schemaname:name relname:name indexrelname:name idx_scan:int8 idx_tup_read:int8 idx_tup_fetch:int8
pg_stat_user_tables: view relid:oid schemaname:name relname:name seq_scan:int8 seq_tup_read:int8 idx_scan:int8 idx_tup_fetch:int8 n_tup_ins:int8 n_tup_upd:int8 n_tup_del:int8 n_tup_hot_upd:int8 n_live_tup:int8 n_dead_tup:int8 n_mod_since_analyze:int8 n_ins_since_vacuum:int8 last_vacuum:timestamptz last_autovacuum:timestamptz last_analyze:timestamptz last_autoanalyze:timestamptz vacuum_count:int8 autovacuum_count:int8 analyze_count:int8 autoanalyze_count:int8
pg_statio_all_indexes: view relid:oid indexrelid:oid schemaname:name relname:name indexrelname:name idx_blks_read:int8 idx_blks_hit:int8
pg_statio_all_sequences: view relid:oid schemaname:name relname:name blks_read:int8 blks_hit:int8
pg_statio_all_tables: view relid:oid schemaname:name relname:name heap_blks_read:int8 heap_blks_hit:int8 idx_blks_read:int8 idx_blks_hit:int8 toast_blks_read:int8 toast_blks_hit:int8 tidx_blks_read:int8 tidx_blks_hit:int8
pg_statio_user_indexes: view relid:oid indexrelid:oid schemaname:name relname:name indexrelname:name idx_blks_read:int8 idx_blks_hit:int8
pg_statio_user_sequences: view relid:oid schemaname:name relname:name blks_read:int8 blks_hit:int8
pg_statio_user_tables: view relid:oid schemaname:name relname:name heap_blks_read:int8 heap_blks_hit:int8 idx_blks_read:int8 idx_blks_hit:int8 toast_blks_read:int8 toast_blks_hit:int8 tidx_blks_read:int8 tidx_blks_hit:int8
pg_stats: view schemaname:name tablename:name attname:name inherited:bool null_frac:float4 avg_width:int4 n_distinct:float4 most_common_vals:anyarray most_common_freqs:_float4 histogram_bounds:anyarray correlation:float4 most_common_elems:anyarray most_common_elem_freqs:_float4 elem_count_histogram:_float4
pg_stats_ext: view schemaname:name tablename:name statistics_schemaname:name statistics_name:name statistics_owner:name attnames:_name exprs:_text kinds:_char inherited:bool n_distinct:pg_ndistinct dependencies:pg_dependencies most_common_vals:_text most_common_val_nulls:_bool most_common_freqs:_float8 most_common_base_freqs:_float8
pg_tables: view schemaname:name tablename:name tableowner:name tablespace:name hasindexes:bool hasrules:bool hastriggers:bool rowsecurity:bool
pg_timezone_abbrevs: view abbrev utc_offset is_dst:bool
pg_timezone_names: view name abbrev utc_offset is_dst:bool
pg_user: view usename:name usesysid:oid usecreatedb:bool usesuper:bool userepl:bool usebypassrls:bool passwd valuntil:timestamptz useconfig:_text
pg_user_mappings: view umid:oid srvid:oid srvname:name umuser:oid usename:name umoptions:_text
pg_views: view schemaname:name viewname:name viewowner:name definition
"""

_INFORMATION_SCHEMA = """
administrable_role_authorizations: grantee:name role_name:name is_grantable:varchar
applicable_roles: grantee:name role_name:name is_grantable:varchar
attributes: udt_catalog:name udt_schema:name udt_name:name attribute_name:name ordinal_position:int4 attribute_default:varchar is_nullable:varchar data_type:varchar character_maximum_length:int4 character_octet_length:int4 character_set_catalog:name character_set_schema:name character_set_name:name collation_catalog:name collation_schema:name collation_name:name numeric_precision:int4 numeric_precision_radix:int4 numeric_scale:int4 datetime_precision:int4 interval_type:varchar interval_precision:int4 attribute_udt_catalog:name attribute_udt_schema:name attribute_udt_name:name scope_catalog:name scope_schema:name scope_name:name maximum_cardinality:int4 dtd_identifier:name is_derived_reference_attribute:varchar
character_sets: character_set_catalog:name character_set_schema:name character_set_name:name character_repertoire:name form_of_use:name default_collate_catalog:name default_collate_schema:name default_collate_name:name
check_constraint_routine_usage: constraint_catalog:name constraint_schema:name constraint_name:name specific_catalog:name specific_schema:name specific_name:name
check_constraints: constraint_catalog:name constraint_schema:name constraint_name:name check_clause:varchar
collation_character_set_applicability: collation_catalog:name collation_schema:name collation_name:name character_set_catalog:name character_set_schema:name character_set_name:name
collations: collation_catalog:name collation_schema:name collation_name:name pad_attribute:varchar
column_column_usage: table_catalog:name table_schema:name table_name:name column_name:name dependent_column:name
column_domain_usage: domain_catalog:name domain_schema:name domain_name:name table_catalog:name table_schema:name table_name:name column_name:name
column_options: table_catalog:name table_schema:name table_name:name column_name:name option_name:name option_value:varchar
column_privileges: grantor:name grantee:name table_catalog:name table_schema:name table_name:name column_name:name privilege_type:varchar is_grantable:varchar
column_udt_usage: udt_catalog:name udt_schema:name udt_name:name table_catalog:name table_schema:name table_name:name column_name:name
columns: table_catalog:name table_schema:name table_name:name column_name:name ordinal_position:int4 column_default:varchar is_nullable:varchar data_type:varchar character_maximum_length:int4 character_octet_length:int4 numeric_precision:int4 numeric_precision_radix:int4 numeric_scale:int4 datetime_precision:int4 interval_type:varchar interval_precision:int4 character_set_catalog:name character_set_schema:name character_set_name:name collation_catalog:name collation_schema:name collation_name:name domain_catalog:name domain_schema:name domain_name:name udt_catalog:name udt_schema:name udt_name:name scope_catalog:name scope_schema:name scope_name:name maximum_cardinality:int4 dtd_identifier:name is_self_referencing:varchar is_identity:varchar identity_generation:varchar identity_start:varchar identity_increment:varchar identity_maximum:varchar identity_minimum:varchar identity_cycle:varchar is_generated:varchar generation_expression:varchar is_updatable:varchar
constraint_column_usage: table_catalog:name table_schema:name table_name:name column_name:name constraint_catalog:name constraint_schema:name constraint_name:name
constraint_table_usage: table_catalog:name table_schema:name table_name:name constraint_catalog:name constraint_schema:name constraint_name:name
data_type_privileges: object_catalog:name object_schema:name object_name:name object_type:varchar dtd_identifier:name
domain_constraints: constraint_catalog:name constraint_schema:name constraint_name:name domain_catalog:name domain_schema:name domain_name:name is_deferrable:varchar initially_deferred:varchar
domain_udt_usage: udt_catalog:name udt_schema:name udt_name:name domain_catalog:name domain_schema:name domain_name:name
domains: domain_catalog:name domain_schema:name domain_name:name data_type:varchar character_maximum_length:int4 character_octet_length:int4 character_set_catalog:name character_set_schema:name character_set_name:name collation_catalog:name collation_schema:name collation_name:name numeric_precision:int4 numeric_precision_radix:int4 numeric_scale:int4 datetime_precision:int4 interval_type:varchar interval_precision:int4 domain_default:varchar udt_catalog:name udt_schema:name udt_name:name scope_catalog:name scope_schema:name scope_name:name maximum_cardinality:int4 dtd_identifier:name
element_types: object_catalog:name object_schema:name object_name:name object_type:varchar collection_type_identifier:name data_type:varchar character_maximum_length:int4 character_octet_length:int4 character_set_catalog:name character_set_schema:name character_set_name:name collation_catalog:name collation_schema:name collation_name:name numeric_precision:int4 numeric_precision_radix:int4 numeric_scale:int4 datetime_precision:int4 interval_type:varchar interval_precision:int4 domain_default:varchar udt_catalog:name udt_schema:name udt_name:name scope_catalog:name scope_schema:name scope_name:name maximum_cardinality:int4 dtd_identifier:name
enabled_roles: role_name:name
foreign_data_wrapper_options: foreign_data_wrapper_catalog:name foreign_data_wrapper_name:name option_name:name option_value:varchar
foreign_data_wrappers: foreign_data_wrapper_catalog:name foreign_data_wrapper_name:name authorization_identifier:name library_name:varchar foreign_data_wrapper_language:varchar
foreign_server_options: foreign_server_catalog:name foreign_server_name:name option_name:name option_value:varchar
foreign_servers: foreign_server_catalog:name foreign_server_name:name foreign_data_wrapper_catalog:name foreign_data_wrapper_name:name foreign_server_type:varchar foreign_server_version:varchar authorization_identifier:name
foreign_table_options: foreign_table_catalog:name foreign_table_schema:name foreign_table_name:name option_name:name option_value:varchar
foreign_tables: foreign_table_catalog:name foreign_table_schema:name foreign_table_name:name foreign_server_catalog:name foreign_server_name:name
information_schema_catalog_name: catalog_name:name
key_column_usage: constraint_catalog:name constraint_schema:name constraint_name:name table_catalog:name table_schema:name table_name:name column_name:name ordinal_position:int4 position_in_unique_constraint:int4
parameters: specific_catalog:name specific_schema:name specific_name:name ordinal_position:int4 parameter_mode:varchar is_result:varchar as_locator:varchar parameter_name:name data_type:varchar character_maximum_length:int4 character_octet_length:int4 character_set_catalog:name character_set_schema:name character_set_name:name collation_catalog:name collation_schema:name collation_name:name numeric_precision:int4 numeric_precision_radix:int4 numeric_scale:int4 datetime_precision:int4 interval_type:varchar interval_precision:int4 udt_catalog:name udt_schema:name udt_name:name scope_catalog:name scope_schema:name scope_name:name maximum_cardinality:int4 dtd_identifier:name parameter_default:varchar
referential_constraints: constraint_catalog:name constraint_schema:name constraint_name:name unique_constraint_catalog:name unique_constraint_schema:name unique_constraint_name:name match_option:varchar update_rule:varchar delete_rule:varchar
role_column_grants: grantor:name grantee:name table_catalog:name table_schema:name table_name:name column_name:name privilege_type:varchar is_grantable:varchar
role_routine_grants: grantor:name grantee:name specific_catalog:name specific_schema:name specific_name:name routine_catalog:name routine_schema:name routine_name:name privilege_type:varchar is_grantable:varchar
role_table_grants: grantor:name grantee:name table_catalog:name table_schema:name table_name:name privilege_type:varchar is_grantable:varchar with_hierarchy:varchar
role_udt_grants: grantor:name grantee:name udt_catalog:name udt_schema:name udt_name:name privilege_type:varchar is_grantable:varchar
role_usage_grants: grantor:name grantee:name object_catalog:name object_schema:name object_name:name object_type:varchar privilege_type:varchar is_grantable:varchar
routine_column_usage: specific_catalog:name specific_schema:name specific_name:name routine_catalog:name routine_schema:name routine_name:name table_catalog:name table_schema:name table_name:name column_name:name
routine_privileges: grantor:name grantee:name specific_catalog:name specific_schema:name specific_name:name routine_catalog:name routine_schema:name routine_name:name privilege_type:varchar is_grantable:varchar
routine_routine_usage: specific_catalog:name specific_schema:name specific_name:name routine_catalog:name routine_schema:name routine_name:name
routine_sequence_usage: specific_catalog:name specific_schema:name specific_name:name routine_catalog:name routine_schema:name routine_name:name sequence_catalog:name sequence_schema:name sequence_name:name
routine_table_usage: specific_catalog:name specific_schema:name specific_name:name routine_catalog:name routine_schema:name routine_name:name table_catalog:name table_schema:name table_name:name
routines: specific_catalog:name specific_schema:name specific_name:name routine_catalog:name routine_schema:name routine_name:name routine_type:varchar module_catalog:name module_schema:name module_name:name udt_catalog:name udt_schema:name udt_name:name data_type:varchar character_maximum_length:int4 character_octet_length:int4 character_set_catalog:name character_set_schema:name character_set_name:name collation_catalog:name collation_schema:name collation_name:name numeric_precision:int4 numeric_precision_radix:int4 numeric_scale:int4 datetime_precision:int4 interval_type:varchar interval_precision:int4 type_udt_catalog:name type_udt_schema:name type_udt_name:name scope_catalog:name scope_schema:name scope_name:name maximum_cardinality:int4 dtd_identifier:name routine_body:varchar routine_definition:varchar external_name:varchar external_language:varchar parameter_style:varchar is_deterministic:varchar sql_data_access:varchar is_null_call:varchar sql_path:varchar schema_level_routine:varchar max_dynamic_result_sets:int4 is_user_defined_cast:varchar is_implicitly_invocable:varchar security_type:varchar to_sql_specific_catalog:name to_sql_specific_schema:name to_sql_specific_name:name as_locator:varchar created:timestamptz last_altered:timestamptz new_savepoint_level:varchar is_udt_dependent:varchar result_cast_from_data_type:varchar result_cast_as_locator:varchar result_cast_char_max_length:int4 result_cast_char_octet_length:int4 result_cast_char_set_catalog:name result_cast_char_set_schema:name result_cast_char_set_name:name result_cast_collation_catalog:name result_cast_collation_schema:name result_cast_collation_name:name result_cast_numeric_precision:int4 result_cast_numeric_precision_radix:int4 result_cast_numeric_scale:int4 result_cast_datetime_precision:int4 result_cast_interval_type:varchar result_cast_interval_precision:int4 result_cast_type_udt_catalog:name result_cast_type_udt_schema:name result_cast_type_udt_name:name result_cast_scope_catalog:name result_cast_scope_schema:name result_cast_scope_name:name result_cast_maximum_cardinality:int4 result_cast_dtd_identifier:name
schemata: catalog_name:name schema_name:name schema_owner:name default_character_set_catalog:name default_character_set_schema:name default_character_set_name:name sql_path:varchar
sequences: sequence_catalog:name sequence_schema:name sequence_name:name data_type:varchar numeric_precision:int4 numeric_precision_radix:int4 numeric_scale:int4 start_value:varchar minimum_value:varchar maximum_value:varchar increment:varchar cycle_option:varchar
table_constraints: constraint_catalog:name constraint_schema:name constraint_name:name table_catalog:name table_schema:name table_name:name constraint_type:varchar is_deferrable:varchar initially_deferred:varchar enforced:varchar nulls_distinct:varchar
table_privileges: grantor:name grantee:name table_catalog:name table_schema:name table_name:name privilege_type:varchar is_grantable:varchar with_hierarchy:varchar
tables: table_catalog:name table_schema:name table_name:name table_type:varchar self_referencing_column_name:name reference_generation:varchar user_defined_type_catalog:name user_defined_type_schema:name user_defined_type_name:name is_insertable_into:varchar is_typed:varchar commit_action:varchar
transforms: udt_catalog:name udt_schema:name udt_name:name specific_catalog:name specific_schema:name specific_name:name group_name:name transform_type:varchar
triggered_update_columns: trigger_catalog:name trigger_schema:name trigger_name:name event_object_catalog:name event_object_schema:name event_object_table:name event_object_column:name
triggers: trigger_catalog:name trigger_schema:name trigger_name:name event_manipulation:varchar event_object_catalog:name event_object_schema:name event_object_table:name action_order:int4 action_condition:varchar action_statement:varchar action_orientation:varchar action_timing:varchar action_reference_old_table:name action_reference_new_table:name action_reference_old_row:name action_reference_new_row:name created:timestamptz
udt_privileges: grantor:name grantee:name udt_catalog:name udt_schema:name udt_name:name privilege_type:varchar is_grantable:varchar
usage_privileges: grantor:name grantee:name object_catalog:name object_schema:name object_name:name object_type:varchar privilege_type:varchar is_grantable:varchar
user_defined_types: user_defined_type_catalog:name user_defined_type_schema:name user_defined_type_name:name user_defined_type_category:varchar is_instantiable:varchar is_final:varchar ordering_form:varchar ordering_category:varchar ordering_routine_catalog:name ordering_routine_schema:name ordering_routine_name:name reference_type:varchar data_type:varchar character_maximum_length:int4 character_octet_length:int4 character_set_catalog:name character_set_schema:name character_set_name:name collation_catalog:name collation_schema:name collation_name:name numeric_precision:int4 numeric_precision_radix:int4 numeric_scale:int4 datetime_precision:int4 interval_type:varchar interval_precision:int4 source_dtd_identifier:name ref_dtd_identifier:name
user_mapping_options: authorization_identifier:name foreign_server_catalog:name foreign_server_name:name option_name:name option_value:varchar
user_mappings: authorization_identifier:name foreign_server_catalog:name foreign_server_name:name
view_column_usage: view_catalog:name view_schema:name view_name:name table_catalog:name table_schema:name table_name:name column_name:name
view_routine_usage: table_catalog:name table_schema:name table_name:name specific_catalog:name specific_schema:name specific_name:name
view_table_usage: view_catalog:name view_schema:name view_name:name table_catalog:name table_schema:name table_name:name
views: table_catalog:name table_schema:name table_name:name view_definition:varchar check_option:varchar is_updatable:varchar is_insertable_into:varchar is_trigger_updatable:varchar is_trigger_deletable:varchar is_trigger_insertable_into:varchar
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
ddl_audit: catalog_ts:int8 ordinal:int4 at:timestamptz role database_name tag statement request_id object_ids:_text
"""
"""Beside those of one kind of object, which are :attr:`~adapter.system.kinds.kind.KindRows.columns` of it."""

_OF_KINDS = "".join(f"{name}: {columns}\n" for said in KIND_ROWS.values() for name, columns in said.columns.items())


_TM_INTERNAL = """
controllers: name address incarnation answers:bool error catalog_frontier:int8 catalog_lag_ms:int8 table_ts:int8 told_by told_at:timestamptz
frontiers: object_id object_name object_kind upper:int8 complete_through:int8 since:int8 last_change:int8 lag_ms:int8 told_by told_at:timestamptz
hydration: object_id object_name object_kind cluster_id hydrated:bool rows:int8 seconds:float8 percent:int8 seconds_left:float8 told_by told_at:timestamptz
source_status: id name topic status error good_rows:int8 bad_rows:int8 commits:int8 last_ts:int8 positions ends behind:int8 lag_ms:int8 told_by told_at:timestamptz
sink_status: id name topic status error messages:int8 bytes:int8 transactions:int8 errors:int8 through:int8 complete_through:int8 lag_ms:int8 told_by told_at:timestamptz
view_status: id name cluster_id status strategy gear gear_reason process_ticks:int8 spark_ticks:int8 state_values:int8 error told_by told_at:timestamptz
storage: object_id object_name object_kind rows:int8 runs:int8 carried_batches:int8 carried_bytes:int8 files:int8 file_bytes:int8 file_changes:int8 file_rows:int8 amplification:float8 sealing_error told_by told_at:timestamptz
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
"""Schema -> relation -> column -> the name of its type in Postgres (:mod:`sql.system.types`)."""

SYSTEM_OIDS: dict[str, dict[str, int]] = {schema: oids for schema, (_, oids) in _FOUND.items()}
"""Schema -> relation -> its oid: below 16384, where the oids of a user's objects begin."""

CLASS_OIDS = SYSTEM_OIDS["pg_catalog"]
"""What ``'pg_class'::regclass`` means."""

TABLES = frozenset(line.partition(":")[0] for line in _PG_CATALOG.split("\n") if ": view " not in line)
"""The relations of pg_catalog that are tables in Postgres; every other system relation is a view."""

SCHEMA_OIDS = {"pg_catalog": 11, "information_schema": 13_000, "tm_catalog": 13_001, "tm_internal": 13_002}

RELATIONS = SYSTEM
"""What :class:`sql.objects.names.Names` needs to know."""
