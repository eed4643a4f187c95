"""What a process may use is read from the files of the system; here the files are ours."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import cq
from cq.compiler.passes import compile
from cq.process_limits import cpu_quota, memory_limit_bytes, usable_cpus, usable_memory_bytes, usable_sockets


def system(root: Path, content: dict[str, str]) -> Path:
    for name, text in content.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


def test_processors_are_known_by_their_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 5}, raising=False)
    where = "sys/devices/system/cpu/cpu{}/topology/physical_package_id"
    two = system(tmp_path / "two", {where.format(cpu): str(cpu % 2) for cpu in range(8)})
    assert usable_sockets(two) == ((0, 2), (1, 5))
    assert usable_sockets(tmp_path) == ((0, 1, 2, 5),)  # nothing says where they are


V2 = "0::/shop/till"
V1 = "4:memory:/shop\n3:cpu,cpuacct:/shop/till\n1:name=systemd:/\n0::/"


@pytest.mark.parametrize(
    ("content", "quota"),
    [
        ({}, None),
        ({"proc/self/cgroup": V2}, None),
        ({"proc/self/cgroup": V2, "sys/fs/cgroup/shop/till/cpu.max": "max 100000"}, None),
        ({"proc/self/cgroup": V2, "sys/fs/cgroup/shop/till/cpu.max": "250000 100000"}, 2.5),
        # the group above grants less
        (
            {
                "proc/self/cgroup": V2,
                "sys/fs/cgroup/shop/till/cpu.max": "400000 100000",
                "sys/fs/cgroup/shop/cpu.max": "150000 100000",
            },
            1.5,
        ),
        # in a container the mount itself is the group
        ({"proc/self/cgroup": "0::/host/pods/x", "sys/fs/cgroup/cpu.max": "50000 100000"}, 0.5),
        # both versions at once, the second beside the first
        ({"proc/self/cgroup": V1, "sys/fs/cgroup/unified/cpu.max": "70000 100000"}, 0.7),
        (
            {
                "proc/self/cgroup": V1,
                "sys/fs/cgroup/cpu,cpuacct/shop/till/cpu.cfs_quota_us": "300000",
                "sys/fs/cgroup/cpu,cpuacct/shop/till/cpu.cfs_period_us": "100000",
            },
            3.0,
        ),
        (
            {
                "proc/self/cgroup": V1,
                "sys/fs/cgroup/cpu/shop/till/cpu.cfs_quota_us": "-1",
                "sys/fs/cgroup/cpu/shop/till/cpu.cfs_period_us": "100000",
            },
            None,
        ),
        ({"proc/self/cgroup": V2, "sys/fs/cgroup/shop/till/cpu.max": "nonsense 0"}, None),
        ({"proc/self/cgroup": "garbage", "sys/fs/cgroup/cpu.max": "100 0"}, None),
    ],
)
def test_quota_is_the_smallest_of_the_group_and_those_above(
    content: dict[str, str], quota: float | None, tmp_path: Path
) -> None:
    assert cpu_quota(system(tmp_path, content)) == quota


@pytest.mark.parametrize(
    ("content", "limit"),
    [
        ({"proc/meminfo": "MemTotal:       1024 kB\nMemFree: 5 kB"}, 1 << 20),
        (
            {
                "proc/meminfo": "MemTotal: 1024 kB",
                "proc/self/cgroup": V2,
                "sys/fs/cgroup/shop/memory.max": "300000",
                "sys/fs/cgroup/shop/till/memory.max": "max",
            },
            300_000,
        ),
        (
            {
                "proc/meminfo": "MemTotal: 1024 kB",
                "proc/self/cgroup": V1,
                "sys/fs/cgroup/memory/shop/memory.limit_in_bytes": "9223372036854771712",
            },
            1 << 20,
        ),
        (
            {
                "proc/meminfo": "MemTotal: 1024 kB",
                "proc/self/cgroup": V1,
                "sys/fs/cgroup/memory/shop/memory.limit_in_bytes": "4096",
            },
            4096,
        ),
        ({}, None),
    ],
)
def test_memory_is_what_the_machine_and_the_groups_leave(
    content: dict[str, str], limit: int | None, tmp_path: Path
) -> None:
    assert usable_memory_bytes(system(tmp_path, content)) == limit


def test_no_group_means_no_limit(tmp_path: Path) -> None:
    assert memory_limit_bytes(tmp_path) is None


@pytest.mark.parametrize(("quota", "cpus"), [("50000", 1), ("100000", 1), ("290000", 2), ("9900000", 6)])
def test_a_part_of_a_processor_does_not_count_but_one_always_does(
    quota: str, cpus: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    content = {"proc/self/cgroup": V2, "sys/fs/cgroup/cpu.max": f"{quota} 100000"}
    assert usable_cpus(system(tmp_path, content)) == cpus


def test_a_query_runs_on_the_processors_it_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5, 9}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr("cq.process_limits.cpu_quota", lambda _: None)
    stream = "CREATE STREAM t (x BIGINT) WITH (connector = 'memory');\n"
    assert compile(stream + "SELECT x FROM t;").workers() == 3
    assert compile(stream + "SET parallelism = 2; SELECT x FROM t;").workers() == 2
    assert compile(stream + "SET parallelism = 2; SELECT x FROM t;").workers(7) == 7
    monkeypatch.setattr("cq.process_limits.cpu_quota", lambda _: 1.9)
    assert compile(stream + "SELECT x FROM t;").workers() == 1


def test_another_platform_is_refused_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    query = cq.sql("SELECT x FROM t", t=[{"x": 1}])
    with pytest.raises(cq.UsageError, match="runs on Linux on x86-64, not on Darwin arm64") as refused:
        query.run()
    assert refused.value.first.help == ('run it in plain Python: engine="reference"',)
    assert query.run(engine="reference")["result"].to_pylist() == [{"x": 1}]
