/** One share-partition, live: the strip of offsets, the locks, rates and lag, and all ranges as a table. */

import { useEffect, useRef, useState } from "preact/hooks";

import type { LiveState, RecordRange, SharePartition } from "../api";
import { count, offsets, rate, seconds } from "../format";
import { RangeActions, useActions, type Asked } from "../parts/actions";
import { Chart } from "../parts/chart";
import { Empty, Failure, Figure, PageHead } from "../parts/notices";
import { Legend, StateOf } from "../parts/state";
import { describe, Strip } from "../parts/strip";
import { Table, type Column } from "../parts/table";
import { LIVE_RANGES, useLive } from "../polling";
import { links } from "../route";
import { EMPTY, extended, rates, type Totals } from "../series";
import { rangeAt } from "../strip_layout";

/** The most rows of the table; the strip shows all ranges of an event. */
const ROWS_MAX = 50;

export function SharePartitionPage({ place }: { place: SharePartition }) {
  const { state, failure } = useLive(place);
  const { ask, element } = useActions();
  return (
    <>
      <PageHead
        crumbs={[
          { text: "Groups", href: links.groups() },
          { text: place.group, href: links.group(place.group) },
        ]}
        title={`${place.topic} ${place.partition}`}
      >
        <span class="tag">live</span>
      </PageHead>
      <Failure text={failure} />
      {element}
      {state === null && failure === null && <p class="quiet">Loading …</p>}
      {state !== null && <Following place={place} state={state} ask={ask} />}
    </>
  );
}

function Following({ place, state, ask }: { place: SharePartition; state: LiveState; ask: (asked: Asked) => void }) {
  const { progress } = state;
  const start = progress.start_offset ?? -1;
  const end = progress.end_offset ?? -1;
  const inFlight = state.ranges.filter((range) => range.first_offset < end);
  const { lag, flow } = useHistory(state);
  return (
    <>
      <dl class="figures">
        <Figure label="Start offset" value={count(start)} hint="all before it are final" />
        <Figure label="End offset" value={count(end)} hint="new from here on" />
        <Figure label="Lag" value={count(progress.lag)} hint="records that are not final" />
        <Figure label="Locked" value={count(progress.locked_count)} hint="held by members" />
        <Figure label="Waiting" value={count(progress.waiting_count)} hint="released, not due" />
      </dl>
      <section>
        <h2>In flight</h2>
        {end > start ? (
          <InFlight place={place} ranges={inFlight} start={start} end={end} isCut={state.ranges.length >= LIVE_RANGES} />
        ) : (
          <Empty title="No record is in flight">
            The strip shows records from their first delivery until they are final. Records appear when a member
            fetches them.
          </Empty>
        )}
      </section>
      <div class="charts">
        <Chart title="Records per second" series={flow} lines={FLOW_LINES} format={rate} />
        <Chart title="Lag" series={lag} lines={LAG_LINES} format={count} />
      </div>
      <section>
        <h2>Ranges</h2>
        <Ranges place={place} ranges={inFlight} ask={ask} />
      </section>
    </>
  );
}

function InFlight({ place, ranges, start, end, isCut }: {
  place: SharePartition;
  ranges: RecordRange[];
  start: number;
  end: number;
  isCut: boolean;
}) {
  const [chosen, setChosen] = useState<number | null>(null);
  const lastShown = ranges.at(-1)?.last_offset ?? end - 1;
  const bounds = { first: start, last: Math.max(isCut ? lastShown : end - 1, start) };
  const isPresent = chosen !== null && chosen >= bounds.first && chosen <= bounds.last;
  return (
    <>
      <Strip ranges={ranges} bounds={bounds} chosen={isPresent ? chosen : null} choose={setChosen} />
      <p class="chosen">
        {isPresent ? (
          <>
            {describe(ranges, chosen)}
            <LockLeft range={rangeAt(ranges, chosen)} />
            {" · "}
            <a href={links.record(place, chosen)}>History of record {chosen}</a>
          </>
        ) : (
          "Point at the strip, or focus it and use the arrow keys; + and − zoom."
        )}
      </p>
      <Legend />
      {isCut && <p class="quiet">The strip shows the first {LIVE_RANGES} ranges behind the start offset.</p>}
    </>
  );
}

function LockLeft({ range }: { range: RecordRange | null }) {
  if (range === null || range.holder === null) return null;
  return <>, lock ends in {seconds(range.holder.lock_remaining_ms)}</>;
}

function Ranges({ place, ranges, ask }: {
  place: SharePartition;
  ranges: RecordRange[];
  ask: (asked: Asked) => void;
}) {
  if (ranges.length === 0) return <p class="quiet">No range is in flight.</p>;
  return (
    <>
      <Table<RecordRange>
        caption="Ranges in flight"
        rows={ranges.slice(0, ROWS_MAX)}
        keyOf={(range) => range.first_offset}
        columns={[
          ...rangeColumns(place),
          { title: "Actions", cell: (range) => <RangeActions place={place} range={range} ask={ask} /> },
        ]}
      />
      {ranges.length > ROWS_MAX && (
        <p class="quiet">
          The table shows the first {ROWS_MAX} of {count(ranges.length)} ranges.
        </p>
      )}
    </>
  );
}

export function rangeColumns(place: SharePartition): Column<RecordRange>[] {
  return [
    {
      title: "Offsets",
      isHead: true,
      cell: (range) => (
        <a href={links.record(place, range.first_offset)}>{offsets(range.first_offset, range.last_offset)}</a>
      ),
    },
    { title: "State", cell: (range) => <StateOf range={range} /> },
    { title: "Deliveries", isNumber: true, cell: (range) => count(range.delivery_count) },
    { title: "Member", cell: (range) => (range.holder === null ? "" : <code>{range.holder.member_id}</code>) },
    {
      title: "Lock ends in",
      isNumber: true,
      cell: (range) => (range.holder === null ? "" : seconds(range.holder.lock_remaining_ms)),
    },
    { title: "Waits for", cell: (range) => range.wait ?? "" },
  ];
}

const FLOW_LINES = [
  { name: "written", label: "written", colour: "line-1" },
  { name: "delivered", label: "first delivered", colour: "line-2", dash: [6, 4] },
  { name: "finished", label: "finished", colour: "line-3", dash: [2, 3] },
];
const LAG_LINES = [
  { name: "lag", label: "lag", colour: "line-1" },
  { name: "locked", label: "locked", colour: "line-2", dash: [6, 4] },
];

/** Lag and rates since the page was opened. */
function useHistory(state: LiveState) {
  const [history, setHistory] = useState({ lag: EMPTY, flow: EMPTY });
  const before = useRef<Totals | null>(null);
  useEffect(() => {
    const { progress } = state;
    const time = Date.now() / 1000;
    const totals = {
      written: progress.high_watermark ?? 0,
      delivered: Math.max(progress.end_offset ?? 0, 0),
      finished: Math.max(progress.start_offset ?? 0, 0),
    };
    const found = rates(before.current, { time, totals });
    before.current = { time, totals };
    setHistory((last) => ({
      lag: extended(last.lag, time, { lag: progress.lag, locked: progress.locked_count }),
      flow: extended(last.flow, time, found),
    }));
  }, [state]);
  return history;
}
