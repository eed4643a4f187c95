-- unnest, line 8
n1_elements as (
  select *, posexplode(if(c2 is null, null, if(:k0 = '', array(c2), split(c2, concat(r'\Q', replace(:k0, r'\E', r'\E\\E\Q'), r'\E'), -1)))) as (_n, _e)
  from n0
),
n1 as (
  select c0, c1, c2, c3, _e as c4, _w, _s, concat(_o, array(cast(coalesce(_n, 0) as BIGINT))) as _o, _late
  from n1_elements
),
-- over, line 6
n2_timed as (
  select *, unix_micros(cast(c3 as TIMESTAMP_LTZ)) as _u
  from n1
  where _late = 0
),
n2_in_order as (
  select c0, c1, c2, c3, c4, c4 as _k0, 1 as _a0, c1 as _a1, 0L as _d1,
         greatest(_w, _u) as _w, if(_u <= _w, _s, -1L) as _s, if(_u <= _w, concat(array(0L), _o), concat(array(1L, _w, _s), _o)) as _o
  from n2_timed
),
n2 as (
  select c0, c1, c2, c3, c4, _w, _s, _o,
         count(_a0) over (partition by _k0 order by _w, _s, _o rows between unbounded preceding and current row) as c5,
         lag(_a1, 2, _d1) over (partition by _k0 order by _w, _s, _o) as c6
  from n2_in_order
),
-- project, line 6
n3 as (
  select c4 as c0, c5 as c1, c6 as c2, _w, _s, _o
  from n2
)
select c0, c1, c2 from n3
order by _w, _s, _o
limit 3
-- c0: word VARCHAR NOT NULL
-- c1: n BIGINT NOT NULL
-- c2: before BIGINT
-- :k0 = ' '
