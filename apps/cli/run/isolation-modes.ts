/** The values of `-isolate`. */
export const ISOLATION_MODES = ['auto', 'on', 'off'] as const
export type IsolationMode = (typeof ISOLATION_MODES)[number]
