-- temporal_join, line 8
n4_timed as (
  select *, unix_micros(cast(c3 as TIMESTAMP_LTZ)) as _u
  from n3
  where _late = 0
),
n4_left as (
  select c0 as _k0, struct(c0, c1, c2, c3) as _l, _u,
         greatest(_w, _u) as _w, if(_u <= _w, _s, -1L) as _s, if(_u <= _w, concat(array(0L), _o), concat(array(1L, _w, _s), _o)) as _o
  from n4_timed
),
n4_right as (
  select c1 as _k0, struct(c0, c1, c2) as _r,
         unix_micros(cast(c0 as TIMESTAMP_LTZ)) - 1L as _u, _w, _s, _o
  from n2
),
n4_both as (
  select _k0, _u, _w, _s, 1 as _side, _o, _l, null as _r from n4_left
  union all select _k0, _u, _w, _s, 0, _o, null, _r from n4_right
  where _k0 is not null
),
n4_seen as (
  select _side, _l, _w, _s, _o, last(_r, true) over (
    partition by _k0 order by _u, _w, _s, _side, _o rows between unbounded preceding and current row) as _r
  from n4_both
),
n4_matched as (
  select _l, if((_r.c2 > _l.c1), _r, null) as _r, _w, _s, _o
  from n4_seen
  where _side = 1
),
n4 as (
  select _l.c0 as c0, _l.c1 as c1, _l.c2 as c2, _l.c3 as c3, _r.c0 as c4, _r.c1 as c5, _r.c2 as c6,
         _w, _s, _o
  from n4_matched
),
-- project, line 8
n5 as (
  select c0, c6 as c1, _w, _s, _o
  from n4
)
select c0, c1 from n5
-- c0: k BIGINT
-- c1: most BIGINT
