/** Where a caller says that a call comes from (W3C Trace Context, section 3.2). Ids are lower-case hex. */
export interface Parent {
  readonly traceId: string
  readonly spanId: string
  /** Bit 0: sampled; bit 1: the trace id is random. */
  readonly flags: number
  /** `tracestate` as it came; empty: none. */
  readonly state: string
}

export const SAMPLED = 1
export const RANDOM = 2

/** Longest `tracestate` that goes on, in characters (section 3.3.1.5). */
const MAX_STATE = 512

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const TRACESTATE = /^[\x20-\x7e]*$/
const ZEROS = /^0+$/

/** Null: nothing that names a span. A version that is not known yet is read as far as it is known. */
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

/** How the next one is told of a span. */
export function writeParent({ traceId, spanId, flags }: Omit<Parent, 'state'>): string {
  return ['00', traceId, spanId, flags.toString(16).padStart(2, '0')].join('-')
}

/** Digits of the random part of a trace id (level 2, section 3.2.2.3), and how many values it has. */
const RANDOM_DIGITS = 14
const RANDOM_VALUES = 2 ** 56

/** Whether a trace is in a part of all: by its id alone, so that everybody who asks for as large a part chooses the same ones. */
export function isChosen(traceId: string, ratio: number): boolean {
  return Number.parseInt(traceId.slice(-RANDOM_DIGITS), 16) >= RANDOM_VALUES * (1 - ratio)
}
