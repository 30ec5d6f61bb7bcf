/** One share-partition, live: the strip of offsets, the locks, rates and lag, and all ranges as a table. */

import { useEffect, useRef, useState } from "preact/hooks";

import type { LiveState, RecordRange, SharePartition } from "../api";
import { age, count, offsets, rate } from "../format";
import { LIVE_RANGES, useLive } from "../live";
import { actionsColumn, RangeActions } from "../parts/actions";
import { Chart } from "../parts/chart";
import { Empty, Failure, Figure, PageHead } from "../parts/notices";
import { Legend } from "../parts/state";
import { describe, Strip } from "../parts/strip";
import { Table } from "../parts/table";
import { links } from "../route";
import { EMPTY, extended, rates, type Totals } from "../series";
import { rangeAt } from "../strip_layout";
import { rangeColumns } from "./range_columns";

export function SharePartitionPage({ place }: { place: SharePartition }) {
  const [isPaused, setIsPaused] = useState(false);
  const { state, failure } = useLive(place, isPaused);
  return (
    <>
      <PageHead
        crumbs={[
          { text: "Groups", href: links.groups() },
          { text: place.group, href: links.group(place.group) },
        ]}
        title={`${place.topic} ${place.partition}`}
      >
        <LiveTag isPaused={isPaused} isLost={failure !== null} />
        <span class="end">
          <button type="button" aria-pressed={isPaused} onClick={() => setIsPaused(!isPaused)}>
            Pause
          </button>
        </span>
      </PageHead>
      <Failure text={failure} />
      {state === null && failure === null && <p class="quiet">Loading …</p>}
      {state !== null && <Following place={place} state={state} />}
    </>
  );
}

function LiveTag({ isPaused, isLost }: { isPaused: boolean; isLost: boolean }) {
  if (isPaused) return <span class="tag">paused</span>;
  return isLost ? <span class="tag">not live</span> : <span class="tag good">live</span>;
}

function Following({ place, state }: { place: SharePartition; state: LiveState }) {
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
        <Figure label="Lag" value={count(progress.lag)} hint="records not final" />
        <Figure label="Oldest" value={age(progress.oldest_record_timestamp_ms, Date.now())} hint="its age" />
        <Figure label="Locked" value={count(progress.locked_count)} hint="held by members" />
        <Figure label="Waiting" value={count(progress.waiting_count)} hint="released, not due" />
      </dl>
      <section>
        <h2>In flight</h2>
        {end > start ? (
          <InFlight place={place} state={state} ranges={inFlight} start={start} end={end} />
        ) : (
          <Empty title="No record is in flight">
            The strip shows records from their first delivery until they are final. Write a record, or start a member of
            the group.
          </Empty>
        )}
      </section>
      <div class="charts">
        <Chart title="Flow" unit="records per second" series={flow} lines={FLOW_LINES} format={rate} />
        <Chart title="Lag" unit="records" series={lag} lines={LAG_LINES} format={count} />
      </div>
      {inFlight.length > 0 && (
        <section>
          <h2>Ranges</h2>
          <Ranges place={place} ranges={inFlight} lockDurationMs={state.lock_duration_ms} />
        </section>
      )}
    </>
  );
}

function InFlight({ place, state, ranges, start, end }: {
  place: SharePartition;
  state: LiveState;
  ranges: RecordRange[];
  start: number;
  end: number;
}) {
  const [chosen, setChosen] = useState<number | null>(null);
  const isCut = state.ranges.length >= LIVE_RANGES;
  const lastShown = ranges.at(-1)?.last_offset ?? end - 1;
  const bounds = { first: start, last: Math.max(isCut ? lastShown : end - 1, start) };
  const isPresent = chosen !== null && chosen >= bounds.first && chosen <= bounds.last;
  return (
    <div class="card">
      <Strip
        ranges={ranges}
        bounds={bounds}
        lockDurationMs={state.lock_duration_ms}
        chosen={isPresent ? chosen : null}
        choose={setChosen}
        open={(offset) => {
          location.hash = links.record(place, offset);
        }}
      />
      {isPresent && <Chosen place={place} ranges={ranges} offset={chosen} />}
      {isCut && <p class="quiet">The strip shows the first {LIVE_RANGES} ranges behind the start offset.</p>}
      <Legend />
    </div>
  );
}

/** The chosen record with its actions. */
function Chosen({ place, ranges, offset }: { place: SharePartition; ranges: RecordRange[]; offset: number }) {
  const range = rangeAt(ranges, offset);
  const record = range === null ? null : { ...range, first_offset: offset, last_offset: offset };
  return (
    <div class="chosen">
      <span>{describe(ranges, offset)}</span>
      <a href={links.record(place, offset)}>History of record {offset}</a>
      {record !== null && <RangeActions place={place} range={record} />}
    </div>
  );
}

function Ranges({ place, ranges, lockDurationMs }: {
  place: SharePartition;
  ranges: RecordRange[];
  lockDurationMs: number;
}) {
  return (
    <Table<RecordRange>
      caption="Ranges in flight"
      rows={ranges}
      keyOf={(range) => range.first_offset}
      columns={[
        {
          title: "Offsets",
          isHead: true,
          cell: (range) => (
            <a href={links.record(place, range.first_offset)}>{offsets(range.first_offset, range.last_offset)}</a>
          ),
        },
        ...rangeColumns(lockDurationMs),
        actionsColumn(() => place),
      ]}
    />
  );
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
