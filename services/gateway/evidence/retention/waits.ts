/** Parts of the gateway that need the records of the ledger. */
export const CONSUMERS = ['sinks', 'collector', 'anchors', 'copy'] as const
export type Consumer = (typeof CONSUMERS)[number]

/** Reasons for which a segment that is due has to wait. */
export const WAITS = ['checkpoint', ...CONSUMERS, 'open calls', 'repair'] as const
export type Wait = (typeof WAITS)[number]
