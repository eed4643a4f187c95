-- filter, line 7
n1 as (
  select *
  from n0
  where (c1 > 3L)
),
-- window, line 6
n2_timed as (
  select *, unix_micros(cast(c3 as TIMESTAMP_LTZ)) as _u
  from n1
  where _late = 0
),
n2_placed as (
  select _u - pmod(_u, 10000000L) as _start,
         c0 as _k0, c1 as _a0, case when (c2 like :k0) then 1 end as _a1, 1 as _a2, struct(_w, _s, _o) as _at
  from n2_timed
),
n2 as (
  select cast(timestamp_micros(_start) as TIMESTAMP_NTZ) as c0,
         cast(timestamp_micros(_start + 10000000L) as TIMESTAMP_NTZ) as c1,
         cast(timestamp_micros(_start + 10000000L - 1L) as TIMESTAMP_NTZ) as c2,
         _k0 as c3,
         coalesce(try_cast(sum(cast(_a0 as DECIMAL(38,0))) as BIGINT), cast(cast(sum(cast(_a0 as DECIMAL(38,0))) as DECIMAL(18,0)) as BIGINT)) as c4,
         count(_a1) as c5,
         count(_a2) as c6,
         _start + 10000000L as _w, -1L as _s, concat(array(_start, min(_at)._w, min(_at)._s), min(_at)._o) as _o
  from n2_placed
  group by _start, _k0
),
-- filter, line 8
n3 as (
  select *
  from n2
  where (c6 > 1L)
),
-- project, line 6
n4 as (
  select c0, c3 as c1, c4 as c2, c5 as c3, _w, _s, _o
  from n3
)
select c0, c1, c2, c3 from n4
-- c0: window_start TIMESTAMP NOT NULL
-- c1: k BIGINT
-- c2: total BIGINT
-- c3: n BIGINT NOT NULL
-- :k0 = 'a%'
