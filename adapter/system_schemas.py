"""The relations of the system schemas: which there are and what columns they have.  Data only.

Relations that Tidemark has nothing to say in (triggers, policies, publications…) exist and are empty, since clients
join with them.  Column types are ours; ``oid`` columns are int8 and hold Postgres's numbers.
"""

# ruff: noqa: E501 - one relation a line is what makes this readable
from __future__ import annotations

_PG_CATALOG = """
pg_class: oid:int8 relname relnamespace:int8 reltype:int8 reloftype:int8 relowner:int8 relam:int8 relfilenode:int8 reltablespace:int8 relpages:int4 reltuples:float4 relallvisible:int4 reltoastrelid:int8 relhasindex:bool relisshared:bool relpersistence relkind relnatts:int2 relchecks:int2 relhasrules:bool relhastriggers:bool relhassubclass:bool relrowsecurity:bool relforcerowsecurity:bool relispopulated:bool relreplident relispartition:bool relrewrite:int8 relfrozenxid:int8 relminmxid:int8 relacl:list reloptions:list relpartbound tableoid:int8
pg_namespace: oid:int8 nspname nspowner:int8 nspacl:list tableoid:int8
pg_attribute: attrelid:int8 attname atttypid:int8 attstattarget:int4 attlen:int2 attnum:int2 attndims:int4 attcacheoff:int4 atttypmod:int4 attbyval:bool attalign attstorage attcompression attnotnull:bool atthasdef:bool atthasmissing:bool attidentity attgenerated attisdropped:bool attislocal:bool attinhcount:int4 attcollation:int8 attacl:list attoptions:list attfdwoptions:list
pg_attrdef: oid:int8 adrelid:int8 adnum:int2 adbin
pg_index: indexrelid:int8 indrelid:int8 indnatts:int2 indnkeyatts:int2 indisunique:bool indnullsnotdistinct:bool indisprimary:bool indisexclusion:bool indimmediate:bool indisclustered:bool indisvalid:bool indcheckxmin:bool indisready:bool indislive:bool indisreplident:bool indkey:ints indcollation:ints indclass:ints indoption:ints indexprs indpred
pg_type: oid:int8 typname typnamespace:int8 typowner:int8 typlen:int2 typbyval:bool typtype typcategory typispreferred:bool typisdefined:bool typdelim typrelid:int8 typsubscript typelem:int8 typarray:int8 typinput typoutput typreceive typsend typmodin typmodout typanalyze typalign typstorage typnotnull:bool typbasetype:int8 typtypmod:int4 typndims:int4 typcollation:int8 typdefault typacl:list tableoid:int8
pg_am: oid:int8 amname amhandler amtype
pg_database: oid:int8 datname datdba:int8 encoding:int4 datlocprovider datistemplate:bool datallowconn:bool datconnlimit:int4 datfrozenxid:int8 datminmxid:int8 dattablespace:int8 datcollate datctype daticulocale datcollversion datacl:list
pg_roles: rolname rolsuper:bool rolinherit:bool rolcreaterole:bool rolcreatedb:bool rolcanlogin:bool rolreplication:bool rolconnlimit:int4 rolpassword rolvaliduntil:timestamptz rolbypassrls:bool rolconfig:list oid:int8
pg_user: usename usesysid:int8 usecreatedb:bool usesuper:bool userepl:bool usebypassrls:bool passwd valuntil:timestamptz useconfig:list
pg_collation: oid:int8 collname collnamespace:int8 collowner:int8 collprovider collisdeterministic:bool collencoding:int4 collcollate collctype colliculocale collversion
pg_settings: name setting unit category short_desc extra_desc context vartype source min_val max_val enumvals:list boot_val reset_val sourcefile sourceline:int4 pending_restart:bool
pg_tables: schemaname tablename tableowner tablespace hasindexes:bool hasrules:bool hastriggers:bool rowsecurity:bool
pg_views: schemaname viewname viewowner definition
pg_matviews: schemaname matviewname matviewowner tablespace hasindexes:bool ispopulated:bool definition
pg_indexes: schemaname tablename indexname tablespace indexdef
pg_depend: classid:int8 objid:int8 objsubid:int4 refclassid:int8 refobjid:int8 refobjsubid:int4 deptype
pg_constraint: oid:int8 conname connamespace:int8 contype condeferrable:bool condeferred:bool convalidated:bool conrelid:int8 contypid:int8 conindid:int8 conparentid:int8 confrelid:int8 confupdtype confdeltype confmatchtype conislocal:bool coninhcount:int4 connoinherit:bool conkey:ints confkey:ints conpfeqop:ints conppeqop:ints conffeqop:ints confdelsetcols:ints conexclop:ints conbin tableoid:int8
pg_proc: oid:int8 proname pronamespace:int8 proowner:int8 prolang:int8 procost:float4 prorows:float4 provariadic:int8 prosupport prokind prosecdef:bool proleakproof:bool proisstrict:bool proretset:bool provolatile proparallel pronargs:int2 pronargdefaults:int2 prorettype:int8 proargtypes:ints proallargtypes:ints proargmodes:list proargnames:list proargdefaults protrftypes:ints prosrc probin prosqlbody proconfig:list proacl:list tableoid:int8
pg_description: objoid:int8 classoid:int8 objsubid:int4 description
pg_shdescription: objoid:int8 classoid:int8 description
pg_inherits: inhrelid:int8 inhparent:int8 inhseqno:int4 inhdetachpending:bool
pg_policy: oid:int8 polname polrelid:int8 polcmd polpermissive:bool polroles:ints polqual polwithcheck
pg_statistic_ext: oid:int8 stxrelid:int8 stxname stxnamespace:int8 stxowner:int8 stxstattarget:int4 stxkeys:ints stxkind:list stxexprs
pg_publication: oid:int8 pubname pubowner:int8 puballtables:bool pubinsert:bool pubupdate:bool pubdelete:bool pubtruncate:bool pubviaroot:bool
pg_publication_rel: oid:int8 prpubid:int8 prrelid:int8 prqual prattrs:ints
pg_publication_namespace: oid:int8 pnpubid:int8 pnnspid:int8
pg_publication_tables: pubname schemaname tablename attnames:list rowfilter
pg_subscription: oid:int8 subdbid:int8 subname subowner:int8 subenabled:bool
pg_enum: oid:int8 enumtypid:int8 enumsortorder:float4 enumlabel
pg_range: rngtypid:int8 rngsubtype:int8 rngmultitypid:int8 rngcollation:int8 rngsubopc:int8 rngcanonical rngsubdiff
pg_trigger: oid:int8 tgrelid:int8 tgparentid:int8 tgname tgfoid:int8 tgtype:int2 tgenabled tgisinternal:bool tgconstrrelid:int8 tgconstrindid:int8 tgconstraint:int8 tgdeferrable:bool tginitdeferred:bool tgnargs:int2 tgattr:ints tgargs tgqual tgoldtable tgnewtable tableoid:int8
pg_rewrite: oid:int8 rulename ev_class:int8 ev_type ev_enabled is_instead:bool ev_qual ev_action tableoid:int8
pg_sequence: seqrelid:int8 seqtypid:int8 seqstart:int8 seqincrement:int8 seqmax:int8 seqmin:int8 seqcache:int8 seqcycle:bool
pg_sequences: schemaname sequencename sequenceowner data_type start_value:int8 min_value:int8 max_value:int8 increment_by:int8 cycle:bool cache_size:int8 last_value:int8
pg_extension: oid:int8 extname extowner:int8 extnamespace:int8 extrelocatable:bool extversion extconfig:ints extcondition:list
pg_available_extensions: name default_version installed_version comment
pg_tablespace: oid:int8 spcname spcowner:int8 spcacl:list spcoptions:list
pg_cast: oid:int8 castsource:int8 casttarget:int8 castfunc:int8 castcontext castmethod
pg_opclass: oid:int8 opcmethod:int8 opcname opcnamespace:int8 opcowner:int8 opcfamily:int8 opcintype:int8 opcdefault:bool opckeytype:int8 tableoid:int8
pg_opfamily: oid:int8 opfmethod:int8 opfname opfnamespace:int8 opfowner:int8 tableoid:int8
pg_operator: oid:int8 oprname oprnamespace:int8 oprowner:int8 oprkind oprcanmerge:bool oprcanhash:bool oprleft:int8 oprright:int8 oprresult:int8 oprcom:int8 oprnegate:int8 oprcode oprrest oprjoin
pg_aggregate: aggfnoid:int8 aggkind aggnumdirectargs:int2
pg_language: oid:int8 lanname lanowner:int8 lanispl:bool lanpltrusted:bool lanplcallfoid:int8 laninline:int8 lanvalidator:int8 lanacl:list
pg_foreign_table: ftrelid:int8 ftserver:int8 ftoptions:list
pg_foreign_server: oid:int8 srvname srvowner:int8 srvfdw:int8 srvtype srvversion srvacl:list srvoptions:list
pg_foreign_data_wrapper: oid:int8 fdwname fdwowner:int8 fdwhandler:int8 fdwvalidator:int8 fdwacl:list fdwoptions:list
pg_user_mapping: oid:int8 umuser:int8 umserver:int8 umoptions:list
pg_partitioned_table: partrelid:int8 partstrat partnatts:int2 partdefid:int8 partattrs:ints partclass:ints partcollation:ints partexprs
pg_auth_members: roleid:int8 member:int8 grantor:int8 admin_option:bool
pg_db_role_setting: setdatabase:int8 setrole:int8 setconfig:list
pg_default_acl: oid:int8 defaclrole:int8 defaclnamespace:int8 defaclobjtype defaclacl:list
pg_event_trigger: oid:int8 evtname evtevent evtowner:int8 evtfoid:int8 evtenabled evttags:list
pg_shdepend: dbid:int8 classid:int8 objid:int8 objsubid:int4 refclassid:int8 refobjid:int8 deptype
pg_conversion: oid:int8 conname connamespace:int8 conowner:int8 conforencoding:int4 contoencoding:int4 conproc condefault:bool
pg_ts_config: oid:int8 cfgname cfgnamespace:int8 cfgowner:int8 cfgparser:int8
pg_ts_dict: oid:int8 dictname dictnamespace:int8 dictowner:int8 dicttemplate:int8 dictinitoption
pg_transform: oid:int8 trftype:int8 trflang:int8 trffromsql:int8 trftosql:int8
pg_parameter_acl: oid:int8 parname paracl:list
pg_stat_activity: datid:int8 datname pid:int4 usename application_name client_addr state query
pg_locks: locktype database:int8 relation:int8 pid:int4 mode granted:bool
pg_stat_user_tables: relid:int8 schemaname relname seq_scan:int8 n_live_tup:int8 n_dead_tup:int8
pg_timezone_names: name abbrev utc_offset is_dst:bool
"""

_INFORMATION_SCHEMA = """
schemata: catalog_name schema_name schema_owner default_character_set_catalog default_character_set_schema default_character_set_name sql_path
tables: table_catalog table_schema table_name table_type self_referencing_column_name reference_generation user_defined_type_catalog user_defined_type_schema user_defined_type_name is_insertable_into is_typed commit_action
columns: table_catalog table_schema table_name column_name ordinal_position:int4 column_default is_nullable data_type character_maximum_length:int4 character_octet_length:int4 numeric_precision:int4 numeric_precision_radix:int4 numeric_scale:int4 datetime_precision:int4 interval_type interval_precision:int4 character_set_catalog character_set_schema character_set_name collation_catalog collation_schema collation_name domain_catalog domain_schema domain_name udt_catalog udt_schema udt_name scope_catalog scope_schema scope_name maximum_cardinality:int4 dtd_identifier is_self_referencing is_identity identity_generation identity_start identity_increment identity_maximum identity_minimum identity_cycle is_generated generation_expression is_updatable
views: table_catalog table_schema table_name view_definition check_option is_updatable is_insertable_into is_trigger_updatable is_trigger_deletable is_trigger_insertable_into
information_schema_catalog_name: catalog_name
enabled_roles: role_name
applicable_roles: grantee role_name is_grantable
table_constraints: constraint_catalog constraint_schema constraint_name table_catalog table_schema table_name constraint_type is_deferrable initially_deferred enforced nulls_distinct
key_column_usage: constraint_catalog constraint_schema constraint_name table_catalog table_schema table_name column_name ordinal_position:int4 position_in_unique_constraint:int4
referential_constraints: constraint_catalog constraint_schema constraint_name unique_constraint_catalog unique_constraint_schema unique_constraint_name match_option update_rule delete_rule
constraint_column_usage: table_catalog table_schema table_name column_name constraint_catalog constraint_schema constraint_name
check_constraints: constraint_catalog constraint_schema constraint_name check_clause
routines: specific_catalog specific_schema specific_name routine_catalog routine_schema routine_name routine_type data_type routine_definition external_language
parameters: specific_catalog specific_schema specific_name ordinal_position:int4 parameter_mode parameter_name data_type
sequences: sequence_catalog sequence_schema sequence_name data_type start_value minimum_value maximum_value increment cycle_option
triggers: trigger_catalog trigger_schema trigger_name event_manipulation event_object_catalog event_object_schema event_object_table action_statement action_timing
table_privileges: grantor grantee table_catalog table_schema table_name privilege_type is_grantable with_hierarchy
role_table_grants: grantor grantee table_catalog table_schema table_name privilege_type is_grantable with_hierarchy
column_privileges: grantor grantee table_catalog table_schema table_name column_name privilege_type is_grantable
view_table_usage: view_catalog view_schema view_name table_catalog table_schema table_name
domains: domain_catalog domain_schema domain_name data_type
element_types: object_catalog object_schema object_name object_type collection_type_identifier data_type
character_sets: character_set_catalog character_set_schema character_set_name character_repertoire form_of_use default_collate_catalog default_collate_schema default_collate_name
collations: collation_catalog collation_schema collation_name pad_attribute
"""

_TM_CATALOG = """
databases: id name
schemas: id database_id name
clusters: id name
nodes: kind cluster address incarnation started:timestamptz
objects: id database_name schema_name name kind cluster_id topic definition
columns: object_id schema_name object_name position:int4 name type nullable:bool default_expression
dependencies: object_id object_name referenced_id referenced_name
indexes: id name relation_id relation_name cluster_id key_columns
sources: id name topic format envelope errors_id
settings: name value
ddl_requests: request_id catalog_ts:int8 status message
"""


def _read(text: str) -> dict[str, dict[str, str]]:
    found = {}
    for line in text.strip().splitlines():
        name, _, columns = line.partition(":")
        found[name] = {
            column: kind or "text" for column, _, kind in (each.partition(":") for each in columns.split())
        }
    return found


SYSTEM: dict[str, dict[str, dict[str, str]]] = {
    "pg_catalog": _read(_PG_CATALOG),
    "information_schema": _read(_INFORMATION_SCHEMA),
    "tm_catalog": _read(_TM_CATALOG),
}
"""Schema -> relation -> column -> kind: a type of ``collection.types``, ``list`` (of text) or ``ints``."""

RELATIONS: dict[str, frozenset[str]] = {schema: frozenset(relations) for schema, relations in SYSTEM.items()}
"""What :class:`sql.names.Names` needs to know."""
