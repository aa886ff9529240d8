/** The sealed segments of a ledger, or their list, could not be read. */
export class SegmentListError extends Error {}

/** The content of a compressed segment is damaged. */
export class SegmentDamagedError extends SegmentListError {}
