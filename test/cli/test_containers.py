"""Control groups and containers: args, the module linux.containers, and where recordings are compared."""
import csv
import io
import json

import harness

IDS = {"a": "0123456789abcdef" * 4, "b": "fedcba9876543210" * 4}
POD = "8f0a7c9e-1b2d-4e3f-a0b1-c2d3e4f50617"
MS = 1000000


def trace_text(side, busy_ms, cgroups=True):
    """Two processes take turns on a CPU: one in a container of Docker, one in a unit of systemd."""
    def process(pid, name, cgroup, more=""):
        said = f'cgroup: "{cgroup}"' if cgroups else ""
        return f'processes {{ pid: {pid} ppid: 1 cmdline: "{name}" uid: 0 {more} {said} }} threads {{ tid: {pid} tgid: {pid} }}'
    docker = f"/system.slice/docker-{IDS[side]}.scope"
    pod = f"/kubepods.slice/kubepods-pod{POD.replace('-', '_')}.slice/cri-containerd-{IDS[side]}.scope"
    out = [f"packet {{ timestamp: 1000 trusted_packet_sequence_id: 1 process_tree {{ {process(50, 'web', docker, 'nspid: 4 nspid: 1')} "
           f"{process(60, 'db', '/system.slice/db.service')} {process(70, 'pod', pod, 'is_kthread: false')} }} }}"]
    at, events = MS, []
    for _ in range(100):
        for prev, pid, dur in ((60, 50, busy_ms), (50, 60, 1)):
            events.append(f'event {{ timestamp: {at} pid: {prev} sched_switch {{ prev_comm: "x" prev_pid: {prev} prev_prio: 120 prev_state: 1 '
                          f'next_comm: "y" next_pid: {pid} next_prio: 120 }} }}')
            at += dur * MS
    out.append(f"packet {{ trusted_packet_sequence_id: 1 ftrace_events {{ cpu: 0 {' '.join(events)} }} }}")
    return "\n".join(out)


class Containers(harness.Case):
    def trace(self, name, side="a", busy_ms=2, **kw):
        text, path = self.dir / f"{name}.txt", self.dir / f"{name}.pftrace"
        text.write_text(trace_text(side, busy_ms, **kw))
        self.run_shell("util", "text_to_binary", text, path, code=0)
        return path

    def rows(self, sql, trace):
        return list(csv.DictReader(io.StringIO(self.query(sql, "--format", "csv", trace=trace))))

    def test_args_and_module(self):
        trace = self.trace("a")
        got = {r["key"]: r["v"] for r in self.rows("select key, coalesce(string_value, int_value) as v from args join process using (arg_set_id) "
                                                   "where pid = 50", trace)}
        self.assertEqual(got, {"process.cgroup": f"/system.slice/docker-{IDS['a']}.scope", "process.vpid": "1", "container.id": IDS["a"],
                               "container.runtime": "docker", "systemd.unit": f"docker-{IDS['a']}.scope"})
        got = {r["key"]: r["v"] for r in self.rows("select key, coalesce(string_value, int_value) as v from args join process using (arg_set_id) "
                                                   "where pid = 70", trace)}
        self.assertEqual((got["k8s.pod.uid"], got["container.runtime"], got["is_kthread"]), (POD, "containerd", "0"))
        rows = self.rows("include perfetto module linux.containers; select pid, namespace_pid, group_name, container_runtime from "
                         "linux_process_cgroup order by pid", trace)
        self.assertEqual([list(r.values()) for r in rows], [["50", "1", IDS["a"][:12], "docker"], ["60", "", "db.service", ""],
                                                            ["70", "", IDS["a"][:12], "containerd"]])
        rows = self.rows("include perfetto module linux.containers; select group_name, cpu_dur / 1000000 as ms from linux_cgroup_cpu", trace)
        self.assertEqual([list(r.values()) for r in rows][:2], [[IDS["a"][:12], "200"], ["db.service", "99"]])
        rows = self.rows("include perfetto module linux.containers; select container_id, process_count from linux_container", trace)
        self.assertEqual([list(r.values()) for r in rows], [[IDS["a"], "2"]])

    def test_without_control_groups_nothing_is_claimed(self):
        trace = self.trace("none", cgroups=False)
        self.assertEqual(self.rows("select 1 as n from args join process using (arg_set_id) where key != 'is_kthread'", trace), [])
        self.assertEqual(self.rows("include perfetto module linux.containers; select 1 from linux_process_cgroup", trace), [])
        out = self.run_shell("diff", "--by", "cgroup", trace, trace, code=2)
        self.assertIn("no control groups were recorded", out.stderr.decode())

    def test_diff_by_cgroup(self):
        a, b = self.trace("a"), self.trace("b", "b", 6)
        doc = json.loads(self.run_shell("diff", "--all", "--by", "cgroup", "--format", "json", a, b, code=None).stdout)
        cpu = {line["process"]: line for line in doc["lines"] if line["measure"] == "CPU time" and not line["thread"]}
        web = cpu["/system.slice/docker-*.scope"]
        self.assertGreater(web["b_mean"], web["a_mean"] * 1.2)
        self.assertIn("/system.slice/db.service", cpu)
        doc = json.loads(self.run_shell("diff", "--all", "--format", "json", a, b, code=None).stdout)
        self.assertIn("web", {line["process"] for line in doc["lines"]})
        for args, text in ((("--by", "cgrop"), "cgroup"), (("--by", "cgroup", "--sql", "select 1"), "--by does not belong")):
            self.assertIn(text, self.run_shell("diff", *args, a, b, code=2).stderr.decode())

    def test_rules_and_report(self):
        trace, rules = self.trace("a"), self.dir / "ci.rules"
        rules.write_text(f"sum(cpu_time where container = '{IDS['a']}') = 200ms\nsum(cpu_time where unit = 'db.service') = 99ms\n"
                         "count(cpu_time where cgroup glob '/system.slice/docker-*') = 100\n")
        self.run_shell("gate", "--rules", rules, trace, code=0)
        page = self.run_shell("report", "--markdown", trace, code=0).stdout.decode()
        part = page[page.index("CPU time by control group"):]
        self.assertIn("db.service", part[:part.index("How long threads wait")])
        page = self.run_shell("report", "--markdown", self.trace("none", cgroups=False), code=0).stdout.decode()
        self.assertIn("The control groups of processes were not recorded", page)


if __name__ == "__main__":
    harness.main()
