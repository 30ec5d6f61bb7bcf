/** The records of a share group that may need a person, over its partitions, with their actions. */

import {
  firstPage,
  recordsPath,
  shareGroupPath,
  type Progress,
  type RecordPage,
  type RecordRange,
  type SharePartition,
} from "../api";
import { offsets } from "../format";
import { RangeActions, useActions } from "../parts/actions";
import { Empty, PageHead, Time, WhenLoaded } from "../parts/notices";
import { Table, type Column } from "../parts/table";
import { usePolled } from "../polling";
import { links } from "../route";
import { isStuck } from "../states";
import { rangeColumns } from "./share_partition";

/** The most partitions that one look asks about: those with records in flight, the greatest lag first. */
const PARTITIONS_MAX = 20;

interface Stuck {
  place: SharePartition;
  range: RecordRange;
}

interface StuckNow {
  stuck: Stuck[];
  isCut: boolean;
}

async function load(group: string, signal: AbortSignal): Promise<StuckNow> {
  const progress = await firstPage<{ partitions: Progress[] }>(`${shareGroupPath(group)}/partitions`, signal);
  const busy = progress.partitions
    .filter((one) => (one.in_flight_count ?? 0) > 0)
    .sort((one, other) => (other.lag ?? 0) - (one.lag ?? 0));
  const stuck: Stuck[] = [];
  let isCut = busy.length > PARTITIONS_MAX;
  for (const { topic, partition } of busy.slice(0, PARTITIONS_MAX)) {
    const place = { group, topic, partition };
    const page = await firstPage<RecordPage>(recordsPath(place), signal);
    isCut ||= page.next_cursor !== null;
    stuck.push(...page.ranges.filter(isStuck).map((range) => ({ place, range })));
  }
  stuck.sort((one, other) => (other.range.delivery_count ?? 0) - (one.range.delivery_count ?? 0));
  return { stuck, isCut };
}

export function StuckPage({ group }: { group: string }) {
  const loaded = usePolled(`stuck ${group}`, (signal) => load(group, signal));
  const { ask, element } = useActions();
  return (
    <>
      <PageHead
        crumbs={[
          { text: "Groups", href: links.groups() },
          { text: group, href: links.group(group) },
        ]}
        title="Stuck records"
      />
      <p class="lead">Records that were delivered before and are not final, and records that wait for their dead letter.</p>
      {element}
      <WhenLoaded loaded={loaded}>
        {({ stuck, isCut }) => (
          <>
            {stuck.length === 0 ? (
              <Empty title="No record is stuck">Every record in flight is at its first delivery.</Empty>
            ) : (
              <Table<Stuck>
                caption="Stuck records, most deliveries first"
                rows={stuck}
                keyOf={(one) => `${one.place.topic} ${one.place.partition} ${one.range.first_offset}`}
                columns={[
                  ...columns(),
                  { title: "Actions", cell: ({ place, range }) => <RangeActions place={place} range={range} ask={ask} /> },
                ]}
              />
            )}
            {isCut && (
              <p class="quiet">
                The search is bounded: {PARTITIONS_MAX} partitions with the greatest lag, 1,000 ranges of each.
              </p>
            )}
          </>
        )}
      </WhenLoaded>
    </>
  );
}

function columns(): Column<Stuck>[] {
  const [, ...others] = rangeColumns({ group: "", topic: "", partition: 0 });
  return [
    {
      title: "Record",
      isHead: true,
      cell: ({ place, range }) => (
        <a href={links.record(place, range.first_offset)}>
          {place.topic} {place.partition}: {offsets(range.first_offset, range.last_offset)}
        </a>
      ),
    },
    ...others.map((column) => ({ ...column, cell: ({ range }: Stuck) => column.cell(range) })),
    {
      title: "Last change",
      cell: ({ range }) =>
        range.last_change === null ? (
          ""
        ) : (
          <>
            {range.last_change.cause}
            {range.last_change.timestamp_ms !== null && (
              <>
                {" "}
                <Time timestampMs={range.last_change.timestamp_ms} />
              </>
            )}
          </>
        ),
    },
  ];
}
