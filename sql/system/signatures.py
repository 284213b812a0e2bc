"""Types, casts, operators and functions of queries over system relations, as PostgreSQL has them.  Data only.

Written by ``python -m tests.adapter.system_signatures``, which asks PostgreSQL for them: the functions are those that
:mod:`adapter.duck.calls` has a meaning for, by Postgres's names and types.
``tests/differential/test_system_types.py`` asks again, and ``tests/adapter/test_system_macros.py`` holds that what a
macro is declared to give is what it gives.
"""

from __future__ import annotations

TYPES = """\
bool 16 1000 B!
bytea 17 1001 U
char 18 1002 Z
name 19 1003 S
int8 20 1016 N
int2 21 1005 N
int2vector 22 1006 A
int4 23 1007 N
regproc 24 1008 N
text 25 1009 S!
oid 26 1028 N!
tid 27 1010 U
xid 28 1011 U
cid 29 1012 U
oidvector 30 1013 A
json 114 199 U
pg_node_tree 194 0 Z
float4 700 1021 N
float8 701 1022 N!
unknown 705 0 X
inet 869 1041 I!
aclitem 1033 1034 U
bpchar 1042 1014 S
varchar 1043 1015 S
date 1082 1182 D
time 1083 1183 D
timestamp 1114 1115 D
timestamptz 1184 1185 D!
interval 1186 1187 T!
numeric 1700 1231 N
regprocedure 2202 2207 N
regoper 2203 2208 N
regoperator 2204 2209 N
regclass 2205 2210 N
regtype 2206 2211 N
record 2249 2287 P
cstring 2275 1263 P
any 2276 0 P
anyarray 2277 0 P
void 2278 0 P
anyelement 2283 0 P
anynonarray 2776 0 P
uuid 2950 2951 U
pg_lsn 3220 3221 U
pg_ndistinct 3361 0 Z
pg_dependencies 3402 0 Z
regconfig 3734 3735 N
regdictionary 3769 3770 N
jsonb 3802 3807 U
regnamespace 4089 4090 N
regrole 4096 4097 N
pg_mcv_list 5017 0 Z
xid8 5069 271 U
anycompatible 5077 0 P
anycompatiblearray 5078 0 P
"""
"""Name, oid, oid of its arrays, category; ``!`` of the category's preferred type."""

IMPLICIT = """\
char: text
name: text
int8: regproc oid float4 float8 numeric regprocedure regoper regoperator regclass regtype regconfig regdictionary
  regnamespace regrole
int2: int8 int4 regproc oid float4 float8 numeric regprocedure regoper regoperator regclass regtype regconfig
  regdictionary regnamespace regrole
int4: int8 regproc oid float4 float8 numeric regprocedure regoper regoperator regclass regtype regconfig regdictionary
  regnamespace regrole
regproc: oid regprocedure
text: name bpchar varchar regclass
oid: regproc regprocedure regoper regoperator regclass regtype regconfig regdictionary regnamespace regrole
pg_node_tree: text
float4: float8
bpchar: name text varchar
varchar: name text bpchar regclass
date: timestamp timestamptz
time: interval
timestamp: timestamptz
numeric: float4 float8
regprocedure: regproc oid
regoper: oid regoperator
regoperator: oid regoper
regclass: oid
regtype: oid
pg_ndistinct: bytea text
pg_dependencies: bytea text
regconfig: oid
regdictionary: oid
regnamespace: oid
regrole: oid
pg_mcv_list: bytea text
"""

ASSIGNED = """\
bool: text bpchar varchar
char: bpchar varchar
name: bpchar varchar
int8: int2 int4
int4: int2
regproc: int8 int4
text: char
oid: int8 int4
json: jsonb
float4: int8 int2 int4 numeric
float8: int8 int2 int4 float4 numeric
inet: text bpchar varchar
bpchar: char
varchar: char
timestamp: date time
timestamptz: date time timestamp
interval: time
numeric: int8 int2 int4
regprocedure: int8 int4
regoper: int8 int4
regoperator: int8 int4
regclass: int8 int4
regtype: int8 int4
regconfig: int8 int4
regdictionary: int8 int4
jsonb: json
regnamespace: int8 int4
regrole: int8 int4
"""
"""Casts that only an INSERT makes by itself; here they need ``::``."""

EXPLICIT = """\
bool: int4
char: int4
int4: bool char
jsonb: bool int8 int2 int4 float4 float8 numeric
xid8: xid
"""

OPERATORS = """\
!~ bool: name,text text,text bpchar,text
!~* bool: name,text text,text bpchar,text
!~~ bool: bytea,bytea name,text text,text bpchar,text
!~~* bool: name,text text,text bpchar,text
# int8: int8,int8
# int2: int2,int2
# int4: int4,int4
#- jsonb: jsonb,_text
#> json: json,_text
#> jsonb: jsonb,_text
#>> text: json,_text jsonb,_text
% int8: int8,int8
% int2: int2,int2
% int4: int4,int4
% numeric: numeric,numeric
& int8: int8,int8
& int2: int2,int2
& int4: int4,int4
& inet: inet,inet
&& bool: inet,inet anyarray,anyarray
* int8: int8,int8 int8,int2 int8,int4 int2,int8 int4,int8
* int2: int2,int2
* int4: int2,int4 int4,int2 int4,int4
* float4: float4,float4
* float8: float4,float8 float8,float4 float8,float8
* interval: float8,interval interval,float8
* numeric: numeric,numeric
+ int8: int8,int8 int8,int2 int8,int4 int2,int8 int4,int8
+ int2: int2,int2
+ int4: int2,int4 int4,int2 int4,int4
+ float4: float4,float4
+ float8: float4,float8 float8,float4 float8,float8
+ inet: int8,inet inet,int8
+ _aclitem: _aclitem,aclitem
+ date: int4,date date,int4
+ time: time,interval interval,time
+ timestamp: date,time date,interval time,date timestamp,interval interval,date interval,timestamp
+ timestamptz: timestamptz,interval interval,timestamptz
+ interval: interval,interval
+ numeric: numeric,numeric
+ pg_lsn: numeric,pg_lsn pg_lsn,numeric
- int8: int8,int8 int8,int2 int8,int4 int2,int8 int4,int8 inet,inet
- int2: int2,int2
- int4: int2,int4 int4,int2 int4,int4 date,date
- float4: float4,float4
- float8: float4,float8 float8,float4 float8,float8
- inet: inet,int8
- _aclitem: _aclitem,aclitem
- date: date,int4
- time: time,interval
- timestamp: date,interval timestamp,interval
- timestamptz: timestamptz,interval
- interval: time,time timestamp,timestamp timestamptz,timestamptz interval,interval
- numeric: numeric,numeric pg_lsn,pg_lsn
- pg_lsn: pg_lsn,numeric
- jsonb: jsonb,int4 jsonb,text jsonb,_text
-> json: json,int4 json,text
-> jsonb: jsonb,int4 jsonb,text
->> text: json,int4 json,text jsonb,int4 jsonb,text
/ int8: int8,int8 int8,int2 int8,int4 int2,int8 int4,int8
/ int2: int2,int2
/ int4: int2,int4 int4,int2 int4,int4
/ float4: float4,float4
/ float8: float4,float8 float8,float4 float8,float8
/ interval: interval,float8
/ numeric: numeric,numeric
< bool: bool,bool bytea,bytea char,char name,name name,text int8,int8 int8,int2 int8,int4 int2,int8 int2,int2
  int2,int4 int4,int8 int4,int2 int4,int4 text,name text,text oid,oid tid,tid oidvector,oidvector float4,float4
  float4,float8 float8,float4 float8,float8 inet,inet bpchar,bpchar date,date date,timestamp date,timestamptz
  time,time timestamp,date timestamp,timestamp timestamp,timestamptz timestamptz,date timestamptz,timestamp
  timestamptz,timestamptz interval,interval numeric,numeric record,record anyarray,anyarray uuid,uuid pg_lsn,pg_lsn
  jsonb,jsonb xid8,xid8
<< bool: inet,inet
<< int8: int8,int4
<< int2: int2,int4
<< int4: int4,int4
<= bool: bool,bool bytea,bytea char,char name,name name,text int8,int8 int8,int2 int8,int4 int2,int8 int2,int2
  int2,int4 int4,int8 int4,int2 int4,int4 text,name text,text oid,oid tid,tid oidvector,oidvector float4,float4
  float4,float8 float8,float4 float8,float8 inet,inet bpchar,bpchar date,date date,timestamp date,timestamptz
  time,time timestamp,date timestamp,timestamp timestamp,timestamptz timestamptz,date timestamptz,timestamp
  timestamptz,timestamptz interval,interval numeric,numeric record,record anyarray,anyarray uuid,uuid pg_lsn,pg_lsn
  jsonb,jsonb xid8,xid8
<> bool: bool,bool bytea,bytea char,char name,name name,text int8,int8 int8,int2 int8,int4 int2,int8 int2,int2
  int2,int4 int4,int8 int4,int2 int4,int4 text,name text,text oid,oid tid,tid xid,int4 xid,xid oidvector,oidvector
  float4,float4 float4,float8 float8,float4 float8,float8 inet,inet bpchar,bpchar date,date date,timestamp
  date,timestamptz time,time timestamp,date timestamp,timestamp timestamp,timestamptz timestamptz,date
  timestamptz,timestamp timestamptz,timestamptz interval,interval numeric,numeric record,record anyarray,anyarray
  uuid,uuid pg_lsn,pg_lsn jsonb,jsonb xid8,xid8
<@ bool: anyarray,anyarray jsonb,jsonb
= bool: bool,bool bytea,bytea char,char name,name name,text int8,int8 int8,int2 int8,int4 int2,int8 int2,int2
  int2,int4 int4,int8 int4,int2 int4,int4 text,name text,text oid,oid tid,tid xid,int4 xid,xid cid,cid
  oidvector,oidvector float4,float4 float4,float8 float8,float4 float8,float8 inet,inet aclitem,aclitem bpchar,bpchar
  date,date date,timestamp date,timestamptz time,time timestamp,date timestamp,timestamp timestamp,timestamptz
  timestamptz,date timestamptz,timestamp timestamptz,timestamptz interval,interval numeric,numeric record,record
  anyarray,anyarray uuid,uuid pg_lsn,pg_lsn jsonb,jsonb xid8,xid8
> bool: bool,bool bytea,bytea char,char name,name name,text int8,int8 int8,int2 int8,int4 int2,int8 int2,int2
  int2,int4 int4,int8 int4,int2 int4,int4 text,name text,text oid,oid tid,tid oidvector,oidvector float4,float4
  float4,float8 float8,float4 float8,float8 inet,inet bpchar,bpchar date,date date,timestamp date,timestamptz
  time,time timestamp,date timestamp,timestamp timestamp,timestamptz timestamptz,date timestamptz,timestamp
  timestamptz,timestamptz interval,interval numeric,numeric record,record anyarray,anyarray uuid,uuid pg_lsn,pg_lsn
  jsonb,jsonb xid8,xid8
>= bool: bool,bool bytea,bytea char,char name,name name,text int8,int8 int8,int2 int8,int4 int2,int8 int2,int2
  int2,int4 int4,int8 int4,int2 int4,int4 text,name text,text oid,oid tid,tid oidvector,oidvector float4,float4
  float4,float8 float8,float4 float8,float8 inet,inet bpchar,bpchar date,date date,timestamp date,timestamptz
  time,time timestamp,date timestamp,timestamp timestamp,timestamptz timestamptz,date timestamptz,timestamp
  timestamptz,timestamptz interval,interval numeric,numeric record,record anyarray,anyarray uuid,uuid pg_lsn,pg_lsn
  jsonb,jsonb xid8,xid8
>> bool: inet,inet
>> int8: int8,int4
>> int2: int2,int4
>> int4: int4,int4
? bool: jsonb,text
?& bool: jsonb,_text
?| bool: jsonb,_text
@> bool: _aclitem,aclitem anyarray,anyarray jsonb,jsonb
^ float8: float8,float8
^ numeric: numeric,numeric
^@ bool: text,text
| int8: int8,int8
| int2: int2,int2
| int4: int4,int4
| inet: inet,inet
|| bytea: bytea,bytea
|| text: text,text text,anynonarray anynonarray,text
|| jsonb: jsonb,jsonb
|| anycompatiblearray: anycompatible,anycompatiblearray anycompatiblearray,anycompatible
  anycompatiblearray,anycompatiblearray
~ bool: name,text text,text bpchar,text
~* bool: name,text text,text bpchar,text
~~ bool: bytea,bytea name,text text,text bpchar,text
~~* bool: name,text text,text bpchar,text
"""
"""Name and result; then the types of both operands, of each."""

FUNCTIONS = """\
_pg_expandarray (anyarray)*record
_pg_index_position (oid,int2)int4
abs (int8)int8 (int2)int2 (int4)int4 (float4)float4 (float8)float8 (numeric)numeric
acldefault (char,oid)_aclitem
aclexplode (_aclitem)*record
acos (float8)float8
acosh (float8)float8
age (xid)int4 (timestamp)interval (timestamptz)interval (timestamp,timestamp)interval
  (timestamptz,timestamptz)interval
array_agg (anyarray)anyarray (anynonarray)anyarray
array_append (anycompatiblearray,anycompatible)anycompatiblearray
array_cat (anycompatiblearray,anycompatiblearray)anycompatiblearray
array_in (cstring,oid,int4)anyarray
array_length (anyarray,int4)int4
array_lower (anyarray,int4)int4
array_out (anyarray)cstring
array_position (anycompatiblearray,anycompatible)int4 (anycompatiblearray,anycompatible,int4)int4
array_prepend (anycompatible,anycompatiblearray)anycompatiblearray
array_remove (anycompatiblearray,anycompatible)anycompatiblearray
array_to_json (anyarray)json (anyarray,bool)json
array_to_string (anyarray,text)text (anyarray,text,text)text
array_upper (anyarray,int4)int4
ascii (text)int4
asin (float8)float8
asinh (float8)float8
atan (float8)float8
atan2 (float8,float8)float8
atanh (float8)float8
avg (int8)numeric (int2)numeric (int4)numeric (float4)float8 (float8)float8 (interval)interval (numeric)numeric
bit_and (int8)int8 (int2)int2 (int4)int4
bit_length (bytea)int4 (text)int4
bit_or (int8)int8 (int2)int2 (int4)int4
bool_and (bool)bool
bool_or (bool)bool
btrim (text)text (bytea,bytea)bytea (text,text)text
cardinality (anyarray)int4
cbrt (float8)float8
ceil (float8)float8 (numeric)numeric
ceiling (float8)float8 (numeric)numeric
char_length (text)int4 (bpchar)int4
character_length (text)int4 (bpchar)int4
chr (int4)text
col_description (oid,int4)text
concat (any...)text
concat_ws (text,any...)text
corr (float8,float8)float8
cos (float8)float8
cosh (float8)float8
cot (float8)float8
count ()int8 (any)int8
covar_pop (float8,float8)float8
covar_samp (float8,float8)float8
cume_dist ()float8 (any...)float8
current_database ()name
current_schema ()name
current_schemas (bool)_name
current_setting (text)text (text,bool)text
current_user ()name
date (timestamp)date (timestamptz)date
date_part (text,date)float8 (text,time)float8 (text,timestamp)float8 (text,timestamptz)float8 (text,interval)float8
date_trunc (text,timestamp)timestamp (text,timestamptz)timestamptz (text,interval)interval
  (text,timestamptz,text)timestamptz
decode (text,text)bytea
degrees (float8)float8
dense_rank ()int8 (any...)int8
encode (bytea,text)text
exp (float8)float8 (numeric)numeric
factorial (int8)numeric
first_value (anyelement)anyelement
floor (float8)float8 (numeric)numeric
format (text)text (text,any...)text
format_type (oid,int4)text
gcd (int8,int8)int8 (int4,int4)int4 (numeric,numeric)numeric
gen_random_uuid ()uuid
generate_series (int8,int8)*int8 (int4,int4)*int4 (numeric,numeric)*numeric (int8,int8,int8)*int8
  (int4,int4,int4)*int4 (timestamp,timestamp,interval)*timestamp (timestamptz,timestamptz,interval)*timestamptz
  (numeric,numeric,numeric)*numeric
generate_subscripts (anyarray,int4)*int4 (anyarray,int4,bool)*int4
getdatabaseencoding ()name
getpgusername ()name
has_any_column_privilege (text,text)bool (oid,text)bool (name,text,text)bool (name,oid,text)bool (oid,text,text)bool
  (oid,oid,text)bool
has_column_privilege (text,int2,text)bool (text,text,text)bool (oid,int2,text)bool (oid,text,text)bool
  (name,text,int2,text)bool (name,text,text,text)bool (name,oid,int2,text)bool (name,oid,text,text)bool
  (oid,text,int2,text)bool (oid,text,text,text)bool (oid,oid,int2,text)bool (oid,oid,text,text)bool
has_database_privilege (text,text)bool (oid,text)bool (name,text,text)bool (name,oid,text)bool (oid,text,text)bool
  (oid,oid,text)bool
has_foreign_data_wrapper_privilege (text,text)bool (oid,text)bool (name,text,text)bool (name,oid,text)bool
  (oid,text,text)bool (oid,oid,text)bool
has_function_privilege (text,text)bool (oid,text)bool (name,text,text)bool (name,oid,text)bool (oid,text,text)bool
  (oid,oid,text)bool
has_language_privilege (text,text)bool (oid,text)bool (name,text,text)bool (name,oid,text)bool (oid,text,text)bool
  (oid,oid,text)bool
has_schema_privilege (text,text)bool (oid,text)bool (name,text,text)bool (name,oid,text)bool (oid,text,text)bool
  (oid,oid,text)bool
has_sequence_privilege (text,text)bool (oid,text)bool (name,text,text)bool (name,oid,text)bool (oid,text,text)bool
  (oid,oid,text)bool
has_server_privilege (text,text)bool (oid,text)bool (name,text,text)bool (name,oid,text)bool (oid,text,text)bool
  (oid,oid,text)bool
has_table_privilege (text,text)bool (oid,text)bool (name,text,text)bool (name,oid,text)bool (oid,text,text)bool
  (oid,oid,text)bool
has_tablespace_privilege (text,text)bool (oid,text)bool (name,text,text)bool (name,oid,text)bool (oid,text,text)bool
  (oid,oid,text)bool
has_type_privilege (text,text)bool (oid,text)bool (name,text,text)bool (name,oid,text)bool (oid,text,text)bool
  (oid,oid,text)bool
inet_client_addr ()inet
inet_client_port ()int4
inet_server_addr ()inet
inet_server_port ()int4
isfinite (date)bool (timestamp)bool (timestamptz)bool (interval)bool
json_agg (anyelement)json
json_array_length (json)int4
json_build_array ()json (any...)json
json_build_object ()json (any...)json
json_extract_path (json,_text...)json
json_extract_path_text (json,_text...)text
json_object (_text)json (_text,_text)json
jsonb_agg (anyelement)jsonb
jsonb_build_array ()jsonb (any...)jsonb
jsonb_build_object ()jsonb (any...)jsonb
lag (anyelement)anyelement (anyelement,int4)anyelement (anycompatible,int4,anycompatible)anycompatible
last_value (anyelement)anyelement
lcm (int8,int8)int8 (int4,int4)int4 (numeric,numeric)numeric
lead (anyelement)anyelement (anyelement,int4)anyelement (anycompatible,int4,anycompatible)anycompatible
left (text,int4)text
length (bytea)int4 (text)int4 (bpchar)int4 (bytea,name)int4
like_escape (bytea,bytea)bytea (text,text)text
ln (float8)float8 (numeric)numeric
log (float8)float8 (numeric)numeric (numeric,numeric)numeric
log10 (float8)float8 (numeric)numeric
lower (text)text
lpad (text,int4)text (text,int4,text)text
ltrim (text)text (bytea,bytea)bytea (text,text)text
make_date (int4,int4,int4)date
make_time (int4,int4,float8)time
make_timestamp (int4,int4,int4,int4,int4,float8)timestamp
max (int8)int8 (int2)int2 (int4)int4 (text)text (oid)oid (tid)tid (float4)float4 (float8)float8 (inet)inet
  (bpchar)bpchar (date)date (time)time (timestamp)timestamp (timestamptz)timestamptz (interval)interval
  (numeric)numeric (anyarray)anyarray (pg_lsn)pg_lsn (xid8)xid8
md5 (bytea)text (text)text
min (int8)int8 (int2)int2 (int4)int4 (text)text (oid)oid (tid)tid (float4)float4 (float8)float8 (inet)inet
  (bpchar)bpchar (date)date (time)time (timestamp)timestamp (timestamptz)timestamptz (interval)interval
  (numeric)numeric (anyarray)anyarray (pg_lsn)pg_lsn (xid8)xid8
mod (int8,int8)int8 (int2,int2)int2 (int4,int4)int4 (numeric,numeric)numeric
mode (anyelement)anyelement
now ()timestamptz
nth_value (anyelement,int4)anyelement
ntile (int4)int4
obj_description (oid)text (oid,name)text
octet_length (bytea)int4 (text)int4 (bpchar)int4
overlay (bytea,bytea,int4)bytea (text,text,int4)text (bytea,bytea,int4,int4)bytea (text,text,int4,int4)text
parse_ident (text,bool=1)_text
percent_rank ()float8 (any...)float8
percentile_cont (float8,float8)float8 (float8,interval)interval (_float8,float8)_float8 (_float8,interval)_interval
percentile_disc (float8,anyelement)anyelement (_float8,anyelement)anyarray
pg_advisory_unlock (int8)bool (int4,int4)bool
pg_advisory_unlock_all ()void
pg_backend_pid ()int4
pg_char_to_encoding (name)int4
pg_client_encoding ()name
pg_collation_actual_version (oid)text
pg_collation_for (any)text
pg_collation_is_visible (oid)bool
pg_column_is_updatable (regclass,int2,bool)bool
pg_column_size (any)int4
pg_conversion_is_visible (oid)bool
pg_database_size (name)int8 (oid)int8
pg_describe_object (oid,oid,int4)text
pg_encoding_to_char (int4)name
pg_filenode_relation (oid,oid)regclass
pg_function_is_visible (oid)bool
pg_get_constraintdef (oid)text (oid,bool)text
pg_get_expr (pg_node_tree,oid)text (pg_node_tree,oid,bool)text
pg_get_function_arg_default (oid,int4)text
pg_get_function_arguments (oid)text
pg_get_function_identity_arguments (oid)text
pg_get_function_result (oid)text
pg_get_function_sqlbody (oid)text
pg_get_functiondef (oid)text
pg_get_indexdef (oid)text (oid,int4,bool)text
pg_get_keywords ()*record
pg_get_partition_constraintdef (oid)text
pg_get_partkeydef (oid)text
pg_get_replica_identity_index (regclass)regclass
pg_get_ruledef (oid)text (oid,bool)text
pg_get_serial_sequence (text,text)text
pg_get_statisticsobjdef (oid)text
pg_get_statisticsobjdef_columns (oid)text
pg_get_triggerdef (oid)text (oid,bool)text
pg_get_userbyid (oid)name
pg_get_viewdef (text)text (oid)text (text,bool)text (oid,bool)text (oid,int4)text
pg_has_role (name,text)bool (oid,text)bool (name,name,text)bool (name,oid,text)bool (oid,name,text)bool
  (oid,oid,text)bool
pg_indexes_size (regclass)int8
pg_is_in_recovery ()bool
pg_is_other_temp_schema (oid)bool
pg_is_wal_replay_paused ()bool
pg_jit_available ()bool
pg_listening_channels ()*text
pg_my_temp_schema ()oid
pg_opclass_is_visible (oid)bool
pg_operator_is_visible (oid)bool
pg_opfamily_is_visible (oid)bool
pg_options_to_table (_text)*record
pg_partition_ancestors (regclass)*regclass
pg_partition_tree (regclass)*record
pg_relation_filenode (regclass)oid
pg_relation_filepath (regclass)text
pg_relation_is_publishable (regclass)bool
pg_relation_is_updatable (regclass,bool)int4
pg_relation_size (regclass)int8 (regclass,text)int8
pg_sequence_last_value (regclass)int8
pg_sequence_parameters (oid)record
pg_show_all_file_settings ()*record
pg_size_pretty (int8)text (numeric)text
pg_stat_get_blocks_fetched (oid)int8
pg_stat_get_last_analyze_time (oid)timestamptz
pg_stat_get_live_tuples (oid)int8
pg_stat_get_numscans (oid)int8
pg_stat_get_tuples_inserted (oid)int8
pg_statistics_obj_is_visible (oid)bool
pg_table_is_visible (oid)bool
pg_table_size (regclass)int8
pg_tablespace_databases (oid)*oid
pg_tablespace_location (oid)text
pg_tablespace_size (name)int8 (oid)int8
pg_total_relation_size (regclass)int8
pg_try_advisory_lock (int8)bool (int4,int4)bool
pg_ts_config_is_visible (oid)bool
pg_ts_dict_is_visible (oid)bool
pg_ts_parser_is_visible (oid)bool
pg_ts_template_is_visible (oid)bool
pg_type_is_visible (oid)bool
pg_typeof (any)regtype
pi ()float8
position (bytea,bytea)int4 (text,text)int4
pow (float8,float8)float8 (numeric,numeric)numeric
power (float8,float8)float8 (numeric,numeric)numeric
quote_ident (text)text
quote_literal (text)text (anyelement)text
quote_nullable (text)text (anyelement)text
radians (float8)float8
random ()float8
rank ()int8 (any...)int8
regexp_replace (text,text,text)text (text,text,text,int4)text (text,text,text,text)text (text,text,text,int4,int4)text
  (text,text,text,int4,int4,text)text
regexp_split_to_array (text,text)_text (text,text,text)_text
regr_avgx (float8,float8)float8
regr_avgy (float8,float8)float8
regr_count (float8,float8)int8
regr_intercept (float8,float8)float8
regr_r2 (float8,float8)float8
regr_slope (float8,float8)float8
regr_sxx (float8,float8)float8
regr_sxy (float8,float8)float8
regr_syy (float8,float8)float8
repeat (text,int4)text
replace (text,text,text)text
reverse (text)text
right (text,int4)text
round (float8)float8 (numeric)numeric (numeric,int4)numeric
row_number ()int8
row_to_json (record)json (record,bool)json
rpad (text,int4)text (text,int4,text)text
rtrim (text)text (bytea,bytea)bytea (text,text)text
session_user ()name
set_config (text,text,bool)text
sha256 (bytea)bytea
shobj_description (oid,name)text
sign (float8)float8 (numeric)numeric
sin (float8)float8
sinh (float8)float8
split_part (text,text,int4)text
sqrt (float8)float8 (numeric)numeric
starts_with (text,text)bool
stddev (int8)numeric (int2)numeric (int4)numeric (float4)float8 (float8)float8 (numeric)numeric
stddev_pop (int8)numeric (int2)numeric (int4)numeric (float4)float8 (float8)float8 (numeric)numeric
stddev_samp (int8)numeric (int2)numeric (int4)numeric (float4)float8 (float8)float8 (numeric)numeric
string_agg (bytea,bytea)bytea (text,text)text
string_to_array (text,text)_text (text,text,text)_text
strpos (text,text)int4
substr (bytea,int4)bytea (text,int4)text (bytea,int4,int4)bytea (text,int4,int4)text
substring (bytea,int4)bytea (text,int4)text (text,text)text (bytea,int4,int4)bytea (text,int4,int4)text
  (text,text,text)text
sum (int8)numeric (int2)int8 (int4)int8 (float4)float4 (float8)float8 (interval)interval (numeric)numeric
tan (float8)float8
tanh (float8)float8
timezone (text,timestamp)timestamptz (text,timestamptz)timestamp (interval,timestamp)timestamptz
  (interval,timestamptz)timestamp
to_hex (int8)text (int4)text
to_json (anyelement)json
to_regclass (text)regclass
to_regnamespace (text)regnamespace
to_regtype (text)regtype
to_timestamp (float8)timestamptz (text,text)timestamptz
transaction_timestamp ()timestamptz
translate (text,text,text)text
trunc (float8)float8 (numeric)numeric (numeric,int4)numeric
ts_token_type (text)*record (oid)*record
unnest (anyarray)*anyelement
upper (text)text
var_pop (int8)numeric (int2)numeric (int4)numeric (float4)float8 (float8)float8 (numeric)numeric
var_samp (int8)numeric (int2)numeric (int4)numeric (float4)float8 (float8)float8 (numeric)numeric
variance (int8)numeric (int2)numeric (int4)numeric (float4)float8 (float8)float8 (numeric)numeric
version ()text
"""
"""Name; of each signature the arguments (``...``: the last is an array, given item by item; ``=1``: so many of the last
have a default) and the result (``*`` before it where a call makes rows)."""
