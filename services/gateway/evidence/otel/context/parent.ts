/** Parent span stated by a caller (W3C Trace Context, section 3.2). Ids are lower-case hex. */
export interface Parent {
  readonly traceId: string
  readonly spanId: string
  /** Bit 0: sampled; bit 1: the trace id is random. */
  readonly flags: number
  /** `tracestate` as received; empty if there is none. */
  readonly state: string
}

export const SAMPLED = 1
export const RANDOM = 2

/** Maximum length of a propagated `tracestate`, in characters (section 3.3.1.5). */
const MAX_STATE = 512

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const TRACESTATE = /^[\x20-\x7e]*$/
const ZEROS = /^0+$/

/** Returns null if the header names no span. Later versions are read as far as known. */
export function readParent(traceparent: unknown, tracestate: unknown): Parent | null {
  const [, version, traceId = '', spanId = '', flags = '', more] =
    typeof traceparent === 'string' ? (TRACEPARENT.exec(traceparent) ?? []) : []
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return null
  if (ZEROS.test(traceId) || ZEROS.test(spanId)) return null
  return { traceId, spanId, flags: Number.parseInt(flags, 16) & (SAMPLED | RANDOM), state: stateOf(tracestate) }
}

function stateOf(text: unknown): string {
  const isState = typeof text === 'string' && text.length <= MAX_STATE && TRACESTATE.test(text)
  return isState ? text : ''
}

/** Formats `traceparent` for the next hop. */
export function writeParent({ traceId, spanId, flags }: Omit<Parent, 'state'>): string {
  return ['00', traceId, spanId, flags.toString(16).padStart(2, '0')].join('-')
}

/** Number of hex digits of the random part of a trace id (level 2, section 3.2.2.3), and number of its values. */
const RANDOM_DIGITS = 14
const RANDOM_VALUES = 2 ** 56

/** Samples by the trace id only, so that all services with the same ratio choose the same traces. */
export function isChosen(traceId: string, ratio: number): boolean {
  return Number.parseInt(traceId.slice(-RANDOM_DIGITS), 16) >= RANDOM_VALUES * (1 - ratio)
}
