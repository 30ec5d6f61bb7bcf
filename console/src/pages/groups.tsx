/** All groups. */

import { list, LIST_ENTRIES_MAX, type Group, type List } from "../api";
import { count } from "../format";
import { useFilter } from "../parts/filter";
import { Cut, Empty, PageHead, WhenLoaded } from "../parts/notices";
import { GroupState } from "../parts/state";
import { Table } from "../parts/table";
import { usePolled } from "../polling";
import { links } from "../route";

export function GroupsPage() {
  const loaded = usePolled("groups", (signal) => list<Group>("/groups", "groups", signal));
  const filter = useFilter("Filter groups by name");
  return (
    <>
      <PageHead crumbs={[]} title="Groups">
        <span class="end">{filter.field}</span>
      </PageHead>
      <WhenLoaded loaded={loaded}>
        {(groups) => <Groups groups={groups} shown={groups.entries.filter((one) => filter.passes(one.group_id))} />}
      </WhenLoaded>
    </>
  );
}

function Groups({ groups, shown }: { groups: List<Group>; shown: Group[] }) {
  if (groups.entries.length === 0) {
    return (
      <Empty title="There are no groups yet">
        Start a consumer with a <code>group.id</code>. Its group appears here within seconds.
      </Empty>
    );
  }
  if (shown.length === 0) return <Empty title="No group has this name">Change the filter, or remove it.</Empty>;
  return (
    <>
      <Table<Group>
        caption="Groups"
        rows={shown}
        keyOf={(group) => group.group_id}
        columns={[
          { title: "Group", isHead: true, cell: (group) => <a href={links.group(group.group_id)}>{group.group_id}</a> },
          { title: "Type", cell: (group) => group.type },
          { title: "State", cell: (group) => <GroupState state={group.state} /> },
          { title: "Members", isNumber: true, cell: (group) => count(group.member_count) },
          { title: "Lag", isNumber: true, cell: (group) => count(group.lag) },
        ]}
      />
      <Cut isCut={groups.isCut} text={`The first ${count(LIST_ENTRIES_MAX)} groups are shown.`} />
    </>
  );
}
