/** One topic: its partitions with their offsets, and the rate of writes. */

import { useEffect, useRef, useState } from "preact/hooks";

import { list, LIST_ENTRIES_MAX, topicPath, type List, type Partition } from "../api";
import { topicDeletion } from "../changes";
import { count, rate } from "../format";
import { ChangeButton } from "../parts/actions";
import { Chart } from "../parts/chart";
import { Cut, Figure, PageHead, WhenLoaded } from "../parts/notices";
import { Search } from "../parts/search";
import { Table, type Column } from "../parts/table";
import { usePolled } from "../polling";
import { links } from "../route";
import { EMPTY, extended, rates, type Totals } from "../series";

export function TopicPage({ topic }: { topic: string }) {
  const loaded = usePolled(`topic ${topic}`, (signal) =>
    list<Partition>(`${topicPath(topic)}/partitions`, "partitions", signal),
  );
  return (
    <>
      <PageHead crumbs={[{ text: "Topics", href: links.topics() }]} title={topic}>
        {loaded.value !== null && (
          <span class="end">
            <ChangeButton change={topicDeletion(topic)} />
          </span>
        )}
      </PageHead>
      <WhenLoaded loaded={loaded}>
        {(partitions) => (
          <>
            <Partitions list={partitions} />
            <Search topic={topic} partitionCount={partitions.entries.length} />
          </>
        )}
      </WhenLoaded>
    </>
  );
}

const ERROR: Column<Partition> = { title: "Error", cell: (one) => one.error };
const LINES = [{ name: "written", label: "written", colour: "line-1" }];

function Partitions({ list: { entries: partitions, isCut } }: { list: List<Partition> }) {
  const [flow, setFlow] = useState(EMPTY);
  const before = useRef<Totals | null>(null);
  useEffect(() => {
    const time = Date.now() / 1000;
    const written = partitions.reduce((total, one) => total + (one.high_watermark ?? 0), 0);
    const found = rates(before.current, { time, totals: { written } });
    before.current = { time, totals: { written } };
    setFlow((last) => extended(last, time, found));
  }, [partitions]);
  const kept = partitions.reduce((total, one) => total + (one.high_watermark ?? 0) - (one.log_start_offset ?? 0), 0);
  return (
    <>
      <dl class="figures">
        <Figure label="Partitions" value={count(partitions.length)} />
        <Figure label="Offsets in the log" value={count(kept)} />
        <Figure label="Written" value={rate(flow.values["written"]?.at(-1) ?? null)} />
      </dl>
      <div class="charts">
        <Chart title="Flow" unit="records per second" series={flow} lines={LINES} format={rate} />
      </div>
      <section>
        <h2>Partitions</h2>
        <Table<Partition>
          caption="Partitions"
          rows={partitions}
          keyOf={(one) => one.partition}
          columns={[
            { title: "Partition", isHead: true, cell: (one) => one.partition },
            { title: "Log start", isNumber: true, cell: (one) => count(one.log_start_offset) },
            { title: "High watermark", isNumber: true, cell: (one) => count(one.high_watermark) },
            { title: "Last stable", isNumber: true, cell: (one) => count(one.last_stable_offset) },
            ...(partitions.some((one) => one.error !== null) ? [ERROR] : []),
          ]}
        />
        <Cut isCut={isCut} text={`The first ${count(LIST_ENTRIES_MAX)} partitions are shown and summed up.`} />
      </section>
    </>
  );
}
