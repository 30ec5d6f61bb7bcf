"""Small jobs: many producers that wait for each answer, many share consumers with one record at a time.

An efficient client (franz-go, see benchmarks/jobs) runs all of them, so that the broker is the limit.
"""

import json
import subprocess

from benchmarks.go_programs import go_program
from benchmarks.measurement import Metrics, Target, Workload

JOBS = 6_000
PARTITIONS = 4
_WARM_UP_JOBS = 800  # as in benchmarks/jobs/main.go


class Jobs(Workload):
    """Jobs per second from the first send to the last delivery, and CPU time of the broker for each.

    The CPU time includes the jobs of the warm-up, which are counted, and the joining of members, which is
    not.
    """

    name = "jobs"
    targets = (
        Target("jobs_per_second", ">=", 1.0, "kafka"),
        Target("cpu_us", "<=", 200),
    )

    def measure(self) -> Metrics:
        count = self.scale.records(JOBS)
        cpu_before = self.broker.cpu_seconds()
        outcome = self._play(count)
        cpu_after = self.broker.cpu_seconds()
        metrics = {"jobs_per_second": count / outcome["seconds"]}
        metrics |= {"p50_ms": outcome["p50_ms"], "p99_ms": outcome["p99_ms"]}
        if cpu_before is not None and cpu_after is not None:
            metrics["cpu_us"] = (cpu_after - cpu_before) * 1e6 / (count + _WARM_UP_JOBS)
        return metrics

    def _play(self, count: int) -> Metrics:
        topic, group = self.cluster.topic(PARTITIONS), self.cluster.group()
        command = [str(go_program("jobs")), self.bootstrap, topic, group, str(count)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"the jobs failed: {done.stderr.strip()[-1000:]}")
        metrics: Metrics = json.loads(done.stdout)
        return metrics
