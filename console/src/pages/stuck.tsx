/** The records of one share group, or of all, that may need a person, with their actions. */

import { useState } from "preact/hooks";

import {
  stuckRecords,
  type StuckAtLeast,
  type RecordRange,
  type SharePartition,
  type StuckPage as Found,
  type StuckRecords,
} from "../api";
import { counted, offsets } from "../format";
import { actionsColumn } from "../parts/actions";
import { CursorPages } from "../parts/cursor_pages";
import { Empty, PageHead, Time, WhenLoaded } from "../parts/notices";
import { Table, type Column } from "../parts/table";
import { usePolled } from "../polling";
import { links } from "../route";
import { rangeColumns } from "./range_columns";

/** The list is long enough for a person, and the broker looks further with the next page. */
const RANGES_MAX = 200;
const REQUESTS_MAX = 20;
/** A look may read many partitions, so it is rarer than others. */
const PAUSE_MS = 5000;
const FAILED_DELIVERIES = [1, 2, 3, 4, 5, 10];
const MINUTE_MS = 60_000;
const HELD_MINUTES = [1, 5, 30, 120];

/** Pages of the broker, which may be empty, until there are enough ranges. */
async function load(group: string | null, least: StuckAtLeast, begin: string, signal: AbortSignal): Promise<Found> {
  const found: Found = { records: [], unreadable: [], next_cursor: begin };
  for (let request = 0; request < REQUESTS_MAX && found.records.length < RANGES_MAX; request++) {
    const page = await stuckRecords(group, least, found.next_cursor ?? "", signal);
    found.records.push(...page.records);
    found.unreadable.push(...page.unreadable);
    found.next_cursor = page.next_cursor;
    if (page.next_cursor === null) break;
  }
  return found;
}

export function StuckPage({ group }: { group: string | null }) {
  const [least, setLeast] = useState<StuckAtLeast>({ failedDeliveries: 1, heldMs: 5 * MINUTE_MS });
  const page = useState("");
  const [cursor, setCursor] = page;
  const key = `stuck ${group ?? ""} ${least.failedDeliveries} ${least.heldMs} ${cursor}`;
  const loaded = usePolled(key, (signal) => load(group, least, cursor, signal), PAUSE_MS);
  const choose = (chosen: Partial<StuckAtLeast>) => {
    setCursor("");
    setLeast({ ...least, ...chosen });
  };
  const crumbs =
    group === null
      ? []
      : [
          { text: "Groups", href: links.groups() },
          { text: group, href: links.group(group) },
        ];
  return (
    <>
      <PageHead crumbs={crumbs} title="Stuck records">
        <span class="end buttons">
          <Choice
            label="Failed deliveries, at least"
            values={FAILED_DELIVERIES}
            chosen={least.failedDeliveries}
            choose={(failedDeliveries) => choose({ failedDeliveries })}
          />
          <Choice
            label="or minutes held, at least"
            values={HELD_MINUTES}
            chosen={least.heldMs / MINUTE_MS}
            choose={(minutes) => choose({ heldMs: minutes * MINUTE_MS })}
          />
        </span>
      </PageHead>
      <p class="lead">
        Records {group === null ? "of all share groups " : ""}whose deliveries have failed and that are not final, records
        that a member holds for a long time, and records that wait for their dead letter.
      </p>
      <WhenLoaded loaded={loaded}>
        {(found) => (
          <>
            <Unreadable found={found} />
            <Records found={found} isOneGroup={group !== null} isFirst={cursor === ""} done={loaded.again} />
            <CursorPages page={page} next={found.next_cursor} first="First records" further="Further records" />
          </>
        )}
      </WhenLoaded>
    </>
  );
}

function Choice({ label, values, chosen, choose }: {
  label: string;
  values: number[];
  chosen: number;
  choose: (value: number) => void;
}) {
  return (
    <label class="check">
      {label}
      <select value={chosen} onChange={(event) => choose(Number(event.currentTarget.value))}>
        {values.map((one) => (
          <option key={one} value={one}>
            {one}
          </option>
        ))}
      </select>
    </label>
  );
}

function Unreadable({ found }: { found: Found }) {
  const [first] = found.unreadable;
  if (first === undefined) return null;
  return (
    <p class="notice failure">
      {counted(found.unreadable.length, "partition")} cannot be read: {first.topic} {first.partition} in{" "}
      {first.group_id}: {first.error}
    </p>
  );
}

function Records({ found, isOneGroup, isFirst, done }: {
  found: Found;
  isOneGroup: boolean;
  isFirst: boolean;
  done: () => void;
}) {
  if (found.records.length === 0) {
    const isAll = isFirst && found.next_cursor === null;
    return (
      <Empty title={isAll ? "No record is stuck" : "No record on this page is stuck"}>
        {isAll
          ? "A record appears here when a member releases it, loses its lock, or holds it for long."
          : "Go on with the buttons below."}
      </Empty>
    );
  }
  const rows = found.records.map(({ range, ...place }) => ({ ...place, ...range }));
  rows.sort((one, other) => (other.delivery_count ?? 0) - (one.delivery_count ?? 0));
  return (
    <Table<StuckRange>
      caption="Stuck records, most deliveries first"
      rows={rows}
      keyOf={(one) => `${one.group_id} ${one.topic} ${one.partition} ${one.first_offset}`}
      columns={[
        RECORD,
        ...(isOneGroup ? [] : [GROUP]),
        ...rangeColumns(null, rows),
        LAST_CHANGE,
        actionsColumn(placeOf, done),
      ]}
    />
  );
}

/** A range with its place. */
type StuckRange = RecordRange & Omit<StuckRecords, "range">;

function placeOf(one: StuckRange): SharePartition {
  return { group: one.group_id, topic: one.topic, partition: one.partition };
}

const GROUP: Column<StuckRange> = {
  title: "Group",
  cell: (one) => <a href={links.group(one.group_id)}>{one.group_id}</a>,
};

const RECORD: Column<StuckRange> = {
  title: "Record",
  isHead: true,
  cell: (one) => (
    <a href={links.record(placeOf(one), one.first_offset)}>
      {one.topic} {one.partition}: {offsets(one.first_offset, one.last_offset)}
    </a>
  ),
};

const LAST_CHANGE: Column<StuckRange> = {
  title: "Last change",
  cell: (one) => <LastChange change={one.last_change} />,
};

function LastChange({ change }: { change: RecordRange["last_change"] }) {
  if (change === null) return <>none</>;
  return (
    <>
      {change.cause}
      {change.timestamp_ms !== null && (
        <>
          , <Time timestampMs={change.timestamp_ms} />
        </>
      )}
    </>
  );
}
