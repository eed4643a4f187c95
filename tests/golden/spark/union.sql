-- scan, line 2
n0 as (
  select c0, c1, c2, c3, _w, _s, cast(array() as ARRAY<BIGINT>) as _o, _late
  from source_0
),
-- project, line 5
n1 as (
  select c0, c1, _w, _s, _o, _late
  from n0
),
-- scan, line 4
n2 as (
  select c0, c1, c2, _w, _s, cast(array() as ARRAY<BIGINT>) as _o, _late
  from source_1
),
-- project, line 5
n3 as (
  select c0, c1, _w, _s, _o, _late
  from n2
),
-- union, line 5
n4 as (
  select c0, c1, _w, _s, concat(array(0L), _o) as _o, _late from n1
  union all select c0, c1, _w, _s, concat(array(1L), _o) as _o, _late from n3
),
-- aggregate, line 5
n5_rows as (
  select c0 as _k0, c1 as _a0, struct(_w, _s, _o) as _at
  from n4
),
n5 as (
  select _k0 as c0, min(_a0) as c1,
         9223372036854775807L as _w, 9223372036854775807L as _s, concat(array(min(_at)._w, min(_at)._s), min(_at)._o) as _o
  from n5_rows
  group by _k0
)
select c0, c1 from n5
-- c0: k BIGINT
-- c1: least BIGINT
