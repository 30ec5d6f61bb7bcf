/** All topics. */

import { useState } from "preact/hooks";

import { list, LIST_ENTRIES_MAX, type List, type Topic } from "../api";
import { count } from "../format";
import { useFilter } from "../parts/filter";
import { Cut, Empty, PageHead, WhenLoaded } from "../parts/notices";
import { Table } from "../parts/table";
import { usePolled } from "../polling";
import { links } from "../route";

export function TopicsPage() {
  const loaded = usePolled("topics", (signal) => list<Topic>("/topics", "topics", signal));
  const [withInternal, setWithInternal] = useState(false);
  const filter = useFilter("Filter topics by name");
  const passes = (topic: Topic) => (withInternal || !topic.is_internal) && filter.passes(topic.name);
  return (
    <>
      <PageHead crumbs={[]} title="Topics">
        <span class="end buttons">
          <label class="check">
            <input
              type="checkbox"
              checked={withInternal}
              onChange={(event) => setWithInternal(event.currentTarget.checked)}
            />
            Internal topics
          </label>
          {filter.field}
        </span>
      </PageHead>
      <WhenLoaded loaded={loaded}>
        {(topics) => <Topics topics={topics} shown={topics.entries.filter(passes)} isFiltered={filter.isActive} />}
      </WhenLoaded>
    </>
  );
}

function Topics({ topics, shown, isFiltered }: { topics: List<Topic>; shown: Topic[]; isFiltered: boolean }) {
  if (shown.length === 0 && isFiltered) {
    return <Empty title="No topic has this name">Change the filter, or remove it.</Empty>;
  }
  if (shown.length === 0) {
    return (
      <Empty title="There are no topics yet">
        A producer creates one when it sends its first record, or <code>kafka-topics --create</code> does.
      </Empty>
    );
  }
  return (
    <>
      <Table<Topic>
        caption="Topics"
        rows={shown}
        keyOf={(topic) => topic.name}
        columns={[
          { title: "Topic", isHead: true, cell: (topic) => <a href={links.topic(topic.name)}>{topic.name}</a> },
          { title: "Partitions", isNumber: true, cell: (topic) => count(topic.partition_count) },
        ]}
      />
      <Cut isCut={topics.isCut} text={`The first ${count(LIST_ENTRIES_MAX)} topics are shown.`} />
    </>
  );
}
