package barnabas.testing;

/**
 * The state of a record for a share group: new, available, acquired, acknowledged, archiving, archived, or passed
 * if the group is done with it and keeps no state of it. The member is null unless the record is acquired.
 */
public record RecordState(
    String topic, int partition, long offset, String state, int deliveries, String member) {}
